"""What the helper process compiles is what requests use."""

from __future__ import annotations

from inspect import signature

from infernix.matching import warm_kernels
from infernix.matching.jit import numba_is_off
from infernix.matching.warmup import _STEPPING


def test_kernels_that_are_compiled_apart_get_the_arguments_of_requests() -> None:
    warm_kernels()
    for kernel, arguments in _STEPPING:
        function = getattr(kernel, "py_func", kernel)
        assert len(arguments) == len(signature(function).parameters)
        # With any other types they would be compiled once more for the first request.
        assert numba_is_off() or list(kernel.signatures) == [tuple(map(kernel.typeof_pyval, arguments))]
