"""The short way to compile kernels leads to what numba's own way leads to."""

from __future__ import annotations

import operator
from typing import Any

import numba
import numpy as np
import pytest

from infernix.matching.kernel_compiler import InnerCompiler, KernelCompiler, remembered_call_types

SIGNATURE = (numba.int32[::1], numba.int64)
_njit: Any = numba.njit


def _count_down(xs: Any, begin: int) -> int:
    total = 0
    for i in range(begin, -1, -1):
        total += xs[i] * min(i, 3)
    return total


def _halves(xs: Any, number: int) -> tuple[int, int]:
    count = 0
    while number > 0 and (xs[number % len(xs)] != 7 or count < 2):
        number //= 2
        count += 1
    return number, count


def _compiled(is_short: bool) -> Any:
    """A kernel that calls two functions, one of which calls the other."""
    inner: dict[str, Any] = {"pipeline_class": InnerCompiler} if is_short else {}
    outer: dict[str, Any] = {"pipeline_class": KernelCompiler} if is_short else {}
    decorate = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **inner)
    halves = decorate(_halves)
    count_down = decorate(_count_down)

    @decorate
    def more(xs: Any, number: int) -> Any:
        half, count = halves(xs, number)
        return count_down(xs, half % len(xs)) + (count << 2)

    @_njit(nogil=True, **outer)
    def both(xs: Any, number: int) -> Any:
        half, _ = halves(xs, number)
        if half > 3:
            return count_down(xs, len(xs) - 1) - half
        return more(xs, number) if xs[0] > 0 else -number

    return both


def test_a_kernel_returns_what_it_does_otherwise() -> None:
    short, usual = _compiled(True), _compiled(False)
    for first in (3, -3):
        xs = np.array([first, 7, -2, 9, 7], np.int32)
        with remembered_call_types():
            found = [short(xs, number) for number in range(60)]
        assert found == [usual(xs, number) for number in range(60)]
        assert len(set(found)) > 10


def _has_machine_code(dispatcher: Any) -> bool:
    (overload,) = dispatcher.overloads.values()
    engine = overload.library._codegen._engine
    return bool(engine.is_symbol_defined(overload.fndesc.llvm_func_name))


def test_only_kernels_have_machine_code() -> None:
    """What a kernel calls would otherwise be compiled to the end twice, and again at each level of calls."""
    inner = _njit(pipeline_class=InnerCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True)(_count_down)
    inner.compile(SIGNATURE)
    kernel = _njit(pipeline_class=KernelCompiler)(_count_down)
    kernel.compile(SIGNATURE)
    assert not _has_machine_code(inner)
    assert _has_machine_code(kernel)


def test_a_call_type_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    function: Any = numba.types.Function
    looked_for: list[tuple[Any, ...]] = []
    find_call_type = function.get_call_type

    def counted(self: Any, context: Any, arguments: Any, keywords: Any) -> Any:
        looked_for.append(arguments)
        return find_call_type(self, context, arguments, keywords)

    monkeypatch.setattr(function, "get_call_type", counted)
    context: Any = _njit(_count_down).typingctx
    context.refresh()
    pairs = [(numba.int64, numba.int64), (numba.int64, numba.float64)] * 3
    expected = [context.resolve_function_type(operator.add, pair, {}) for pair in pairs]
    looked_for.clear()
    with remembered_call_types():
        assert [context.resolve_function_type(operator.add, pair, {}) for pair in pairs] == expected
    assert looked_for == pairs[:2]
    assert function.get_call_type is counted


def test_an_error_is_numbas_own_and_leaves_nothing_behind() -> None:
    function: Any = numba.types.Function
    before = function.get_call_type
    kernel = _njit(pipeline_class=KernelCompiler)(lambda xs, number: xs + "a" * number)
    with pytest.raises(numba.TypingError, match="No implementation of function"), remembered_call_types():
        kernel.compile(SIGNATURE)
    assert function.get_call_type is before
