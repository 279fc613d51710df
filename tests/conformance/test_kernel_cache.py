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
print(sum(len(kernel.stats.cache_misses) for kernel in jit.kernels()), len(jit.kernels()))
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
    for lines, _ in outputs:
        assert lines.count("Compiling the matching kernels, once per installation") == 1
    output, errors = start(tmp_path).communicate()
    lines, counts = output.splitlines()
    num_misses, num_kernels = map(int, counts.split())
    assert (lines, num_misses, errors) == ("[]", 0, "")
    assert num_kernels > 10
