"""All kernels compiled by two processes that start together on an empty cache: about a minute of processor time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = """
from infernix.matching import jit, warm_kernels
lines = []
warm_kernels(lines.append)
print(lines)
print(*(kernel.__name__ for kernel in jit.kernels() if kernel.stats.cache_misses))
print(len(jit.kernels()))
"""


def start(cache: Path) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CODE],
        env={**environment, "XDG_CACHE_HOME": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_that_start_together_fill_one_cache(tmp_path: Path) -> None:
    outputs = []
    for process in [start(tmp_path), start(tmp_path)]:
        output, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
        outputs.append(output.splitlines())
    for lines, compiled, _ in outputs:
        assert lines.count("Compiling the matching kernels, once per installation") == 1
        # The rest was compiled at the same time by another process of each.
        assert "advance" not in compiled.split()
        assert "_determinize" in compiled.split()
    output, errors = start(tmp_path).communicate()
    lines, compiled, num_kernels = output.splitlines()
    assert (lines, compiled, errors) == ("[]", "", "")
    assert int(num_kernels) > 10
