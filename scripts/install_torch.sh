#!/bin/sh
# install_torch.sh PYTHON: installs the PyTorch release that pyproject.toml pins, the CPU build where there is no NVIDIA
# driver (a tenth of the size).
set -eu
python=$1
cd "$(dirname "$0")/.."

pin=$("$python" - <<'PYTHON'
import tomllib

with open("pyproject.toml", "rb") as file:
    dependencies = tomllib.load(file)["project"]["dependencies"]
print(next(entry for entry in dependencies if entry.startswith("torch==")))
PYTHON
)

if [ -e /proc/driver/nvidia/version ] || nvidia-smi >/dev/null 2>&1; then
    echo "Installing $pin (there is an NVIDIA driver) ..."
    "$python" -m pip install --quiet "$pin"
else
    echo "Installing $pin, CPU build (no NVIDIA driver) ..."
    # The configured places may have the CPU build by its name. Where they do not, pip says so at once, and PyTorch's
    # own index is asked too; systems for which no build carries that name (macOS) take the ordinary one.
    "$python" -m pip install --quiet "$pin+cpu" 2>/dev/null ||
        "$python" -m pip install --quiet "$pin" --extra-index-url https://download.pytorch.org/whl/cpu
fi
"$python" -c 'from importlib.metadata import version; print("PyTorch", version("torch"))'
