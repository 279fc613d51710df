"""How kernels are compiled: once per installation, outside the interpreter lock.

A kernel is ordinary Python over NumPy arrays; with NUMBA_DISABLE_JIT=1 it runs as such.

Compiled kernels are kept on disk. numba notices a change of the file that a kernel stands in, but not of the files
that the kernel calls into, and by default writes beside the sources, which may be read-only. So the cache lies in the
user's cache directory, in a folder named after a digest of all kernel sources.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_KERNEL_SOURCES = (
    "arena.py",
    "atoms.py",
    "closure.py",
    "determinize.py",
    "interning.py",
    "jit.py",
    "minimization.py",
    "network.py",
    "rule_nfa.py",
    "stepping.py",
    "tabulation.py",
    "transplant.py",
    "trie.py",
    "unrolling.py",
)


@cache
def kernel_cache_directory() -> str:
    """Where compiled kernels are kept: NUMBA_CACHE_DIR, the user's cache directory, or else a temporary one."""
    digest = hashlib.sha256()
    for name in _KERNEL_SOURCES:
        digest.update((Path(__file__).parent / name).read_bytes())
    folder = f"kernels-{digest.hexdigest()[:16]}"
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    for base in (os.environ.get("NUMBA_CACHE_DIR"), Path(user_cache) / "infernix"):
        if base and _is_writable(path := Path(base) / folder):
            return str(path)
    return str(Path(tempfile.mkdtemp(prefix="infernix-")) / folder)


def _is_writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


def kernel(function: FunctionT) -> FunctionT:
    """Compiled, callable from Python, kept on disk."""
    compiled: Any = numba.njit(nogil=True)(function)
    config: Any = numba.config
    if not config.DISABLE_JIT:
        configured = config.CACHE_DIR
        config.CACHE_DIR = kernel_cache_directory()
        try:
            compiled.enable_caching()
        finally:
            config.CACHE_DIR = configured
    return compiled  # type: ignore[no-any-return]


def inner(function: FunctionT) -> FunctionT:
    """Compiled, called by kernels only: without a Python entry it compiles a quarter faster."""
    compile_inner: Any = numba.njit
    return compile_inner(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)  # type: ignore[no-any-return]
