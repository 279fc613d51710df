"""How numba compiles our kernels, in half of its usual time and to code as fast.

numba gives every function machine code of its own and optimises it with all that it calls, again at each level of
calls. Here only kernels get machine code: what they call is handed on to them and optimised there, once. Passes for
what no kernel contains (closures, `with`, literal unrolling, array expressions) are left out. And the type of a call,
which numba looks for among dozens of templates each time, is remembered.

This reaches into numba's own classes, for the one release that the project names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba.core.codegen
import numba.core.compiler
import numba.core.compiler_lock
import numba.core.compiler_machinery
import numba.core.typed_passes
import numba.core.untyped_passes

_core: Any = numba.core
_machinery: Any = _core.compiler_machinery
typed_passes: Any = _core.typed_passes
untyped_passes: Any = _core.untyped_passes

_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.NoPythonSupportedFeatureValidation,
    typed_passes.IRLegalization,
    typed_passes.AnnotateTypes,
)
_LOWERING_PASSES = (typed_passes.NativeLowering, typed_passes.NoPythonBackend)


class _LibraryToLink(_core.codegen.JITCodeLibrary):  # type: ignore[misc]
    """Code that is there to be linked into kernels."""

    @property
    def codegen(self) -> Any:
        return _WithoutEnvironments(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        """Null, as for every name without machine code."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _WithoutEnvironments:
    """A code generator for functions whose environment, which only object mode reads, has no address."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, env_name: str, env: Any) -> None:
        """Nothing: a kernel that is loaded from disk does not set those of what it calls either."""


@_machinery.register_pass(mutates_CFG=False, analysis_only=True)
class _OnlyToLink(_core.compiler_machinery.AnalysisPass):  # type: ignore[misc]
    """Chooses the library that the next pass writes to."""

    _name = "only_to_link"

    def __init__(self) -> None:
        _machinery.AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.library = _LibraryToLink(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


def _pipeline(name: str, passes: tuple[Any, ...]) -> Any:
    manager = _machinery.PassManager(name)
    for each in passes:
        manager.add_pass(each, each.__name__)
    manager.finalize()
    return manager


class KernelCompiler(_core.compiler.CompilerBase):  # type: ignore[misc]
    """For functions that Python calls."""

    def define_pipelines(self) -> list[Any]:
        return [_pipeline("kernel", _PASSES + _LOWERING_PASSES)]


class InnerCompiler(_core.compiler.CompilerBase):  # type: ignore[misc]
    """For functions that kernels call."""

    def define_pipelines(self) -> list[Any]:
        return [_pipeline("inner", (*_PASSES, _OnlyToLink, *_LOWERING_PASSES))]


@contextmanager
def remembered_call_types() -> Iterator[None]:
    """Meanwhile a builtin function that is called with types as before has the signature that it had before."""
    function: Any = numba.types.Function
    known: dict[tuple[Any, ...], Any] = {}
    # The lock is the one that numba itself takes to compile, so nobody else's code meets the change.
    with _core.compiler_lock.global_compiler_lock:
        find_call_type = function.get_call_type

        def get_call_type(self: Any, context: Any, arguments: Any, keywords: Any) -> Any:
            if keywords:
                return find_call_type(self, context, arguments, keywords)
            key = (context, self, tuple(arguments))
            signature = known.get(key)
            if signature is None:
                signature = known[key] = find_call_type(self, context, arguments, keywords)
            return signature

        function.get_call_type = get_call_type
        try:
            yield
        finally:
            function.get_call_type = find_call_type
