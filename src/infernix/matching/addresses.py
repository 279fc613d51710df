"""Arrays at addresses: how one array of numbers stands for dozens of arrays.

To hand an array to a kernel takes as long as dozens of steps in it. What stays the same from call to call is handed
over as addresses instead, by whoever keeps the arrays.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from infernix.matching.jit import inner, numba_is_off


def address_of(array: NDArray[Any], dtype: type[np.generic]) -> int:
    """Where the content of an array of this type without gaps begins, for as long as somebody keeps the array."""
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise ValueError(f"an array of {array.dtype} is not one of {dtype.__name__} without gaps")
    return int(array.ctypes.data)


_carray: Any = numba.carray  # type: ignore[attr-defined]


if numba_is_off():

    def _array_at(address: int, shape: tuple[int, ...], dtype: type[np.generic]) -> Any:
        num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if num_bytes == 0:
            return np.zeros(shape, dtype)
        content: Any = (ctypes.c_char * num_bytes).from_address(int(address))
        return np.frombuffer(content, dtype).reshape(shape)

else:

    @intrinsic
    def _pointer(_: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], cgutils.voidptr_t)

        return types.voidptr(types.int64), generate

    @inner
    def _array_at(address: int, shape: tuple[int, ...], dtype: type[np.generic]) -> Any:
        pointer: Any = _pointer(address)  # type: ignore[call-arg]
        return _carray(pointer, shape, dtype)


@inner
def uint8_at(address: int, length: int) -> NDArray[np.uint8]:
    """uint8 [length]."""
    found: NDArray[np.uint8] = _array_at(address, (length,), np.uint8)
    return found


@inner
def int32_at(address: int, length: int) -> NDArray[np.int32]:
    """int32 [length]."""
    found: NDArray[np.int32] = _array_at(address, (length,), np.int32)
    return found


@inner
def int64_at(address: int, length: int) -> NDArray[np.int64]:
    """int64 [length]."""
    found: NDArray[np.int64] = _array_at(address, (length,), np.int64)
    return found


@inner
def uint32_at(address: int, length: int) -> NDArray[np.uint32]:
    """uint32 [length]."""
    found: NDArray[np.uint32] = _array_at(address, (length,), np.uint32)
    return found


@inner
def int32_rows_at(address: int, num_rows: int, width: int) -> NDArray[np.int32]:
    """int32 [num_rows, width]."""
    found: NDArray[np.int32] = _array_at(address, (num_rows, width), np.int32)
    return found


@inner
def int64_rows_at(address: int, num_rows: int, width: int) -> NDArray[np.int64]:
    """int64 [num_rows, width]."""
    found: NDArray[np.int64] = _array_at(address, (num_rows, width), np.int64)
    return found


@inner
def uint32_rows_at(address: int, num_rows: int, width: int) -> NDArray[np.uint32]:
    """uint32 [num_rows, width]."""
    found: NDArray[np.uint32] = _array_at(address, (num_rows, width), np.uint32)
    return found
