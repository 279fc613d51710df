"""How kernels are compiled: once per installation, outside the interpreter lock.

A kernel is ordinary Python over NumPy arrays; with NUMBA_DISABLE_JIT=1 it runs as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def kernel(function: FunctionT) -> FunctionT:
    """Compiled, callable from Python."""
    compiled: FunctionT = numba.njit(cache=True, nogil=True)(function)
    return compiled


def inner(function: FunctionT) -> FunctionT:
    """Compiled, called by kernels only: without a Python entry it compiles a quarter faster."""
    compiled: FunctionT = numba.njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return compiled
