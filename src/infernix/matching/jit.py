"""How kernels are compiled: once per installation, outside the interpreter lock.

A kernel is ordinary Python over NumPy arrays; with NUMBA_DISABLE_JIT=1 it runs as such.

Compiled kernels are kept on disk. numba notices a change of the file that a kernel stands in, but not of the files
that the kernel calls into, and by default writes beside the sources, which may be read-only. So the cache lies in the
user's cache directory, in a folder named after a digest of all kernel sources.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

from infernix.matching.kernel_compiler import InnerCompiler, KernelCompiler, remembered_call_types
from infernix.matching.kernel_folders import remove_unused_folders

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_IMPORTED_MODULE = re.compile(r"^from infernix\.matching(?:\.(\w+))? import ([\w ,]*)", re.MULTILINE)
_DECORATED = re.compile(r"^@(?:kernel|inner)$", re.MULTILINE)
_kernels: list[Any] = []


def kernels() -> tuple[Any, ...]:
    """All kernels, as numba's dispatchers; none where compilation is switched off."""
    return tuple(_kernels)


def kernel_sources() -> list[Path]:
    """The files whose code or constants are compiled into kernels: those with kernels, and what they import."""
    texts = {path.stem: path.read_text("utf-8") for path in Path(__file__).parent.glob("*.py")}
    found: set[str] = set()
    waiting = [name for name, text in texts.items() if _DECORATED.search(text)]
    while waiting:
        name = waiting.pop()
        if name in texts and name not in found:
            found.add(name)
            waiting += _imported_modules(texts[name])
    return sorted(Path(__file__).parent / f"{name}.py" for name in found)


def _imported_modules(text: str) -> list[str]:
    """Names behind `from infernix.matching` import statements."""
    return [
        name.strip()
        for module, names in _IMPORTED_MODULE.findall(text)
        for name in ([module] if module else names.split(","))
    ]


@cache
def kernel_cache_directory() -> str:
    """Where compiled kernels are kept: in NUMBA_CACHE_DIR, in the user's cache directory, or for this process only."""
    digest = hashlib.sha256()
    for path in kernel_sources():
        digest.update(path.read_bytes())
    folder = f"kernels-{digest.hexdigest()[:16]}"
    for base in _base_directories():
        if _is_writable(base / folder):
            remove_unused_folders(base / folder, time.time())
            return str(base / folder)
    temporary = tempfile.mkdtemp(prefix="infernix-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return str(Path(temporary) / folder)


def _base_directories() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
    user_cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if user_cache.is_absolute():  # anything else is to be ignored (XDG Base Directory Specification)
        yield user_cache / "infernix"
    with suppress(RuntimeError):  # a user id without an entry in the user database has no home
        yield Path.home() / ".cache" / "infernix"


def _is_writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


def _forgive_files(kernel_cache: Any) -> None:
    """Takes a damaged file of a kernel's cache for none, and a full disk for no reason to stop."""
    load, save = kernel_cache.load_overload, kernel_cache.save_overload

    def load_overload(signature: Any, target_context: Any) -> Any:
        try:
            return load(signature, target_context)
        except Exception:  # whatever unpickling makes of damaged bytes
            with suppress(OSError):
                kernel_cache.flush()
            return None

    def save_overload(signature: Any, compiled: Any) -> None:
        with suppress(OSError):
            save(signature, compiled)

    kernel_cache.load_overload = load_overload
    kernel_cache.save_overload = save_overload


def is_kept(compiled: Any, arguments: Sequence[Any]) -> bool:
    """Whether a kernel for arguments like these is on disk."""
    signature = tuple(map(compiled.typeof_pyval, arguments))
    return compiled._cache.load_overload(signature, compiled.targetctx) is not None


def numba_is_off() -> bool:
    """Whether kernels run as plain Python (NUMBA_DISABLE_JIT)."""
    config: Any = numba.config
    return bool(config.DISABLE_JIT)


def kernel(function: FunctionT) -> FunctionT:
    """Compiled, callable from Python, kept on disk."""
    compiled: Any = numba.njit(nogil=True, pipeline_class=KernelCompiler)(function)
    config: Any = numba.config
    if not numba_is_off():
        configured = config.CACHE_DIR
        config.CACHE_DIR = kernel_cache_directory()
        try:
            compiled.enable_caching()
        finally:
            config.CACHE_DIR = configured
        _forgive_files(compiled._cache)
        _compile_faster(compiled)
        _kernels.append(compiled)
    return compiled  # type: ignore[no-any-return]


def entry_of(compiled: FunctionT) -> FunctionT:
    """The machine code's own entry of a kernel; the kernel itself where it is not compiled yet.

    The entry takes arguments of exactly the types that the kernel was compiled for and does not look whether they are:
    looking takes a third of a call's time.
    """
    dispatcher: Any = compiled
    if numba_is_off() or not dispatcher.signatures:
        return compiled
    (signature,) = dispatcher.signatures
    return dispatcher.overloads[signature].entry_point  # type: ignore[no-any-return]


def inner(function: FunctionT) -> FunctionT:
    """Compiled, called by kernels only, without an entry for Python or machine code of its own."""
    compile_inner: Any = numba.njit
    compiled: Any = compile_inner(
        nogil=True, pipeline_class=InnerCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True
    )(function)
    if not numba_is_off():
        _widen_integers(compiled)
    return compiled  # type: ignore[no-any-return]


def _compile_faster(dispatcher: Any) -> None:
    """Lets numba remember call types while it compiles a kernel and what that calls."""
    compile_signature = dispatcher.compile

    def compile(signature: Any) -> Any:
        with remembered_call_types():
            return compile_signature(signature)

    dispatcher.compile = compile


def _widen_integers(dispatcher: Any) -> None:
    """Lets a function be compiled once, for 64-bit integers, whatever integers it is called with.

    Left alone, numba compiles it again for every mixture of 32-bit values and literals.
    """
    find_template = dispatcher.get_call_template

    def get_call_template(arguments: Any, keywords: Any) -> Any:
        return find_template(tuple(map(_widened, arguments)), keywords)

    dispatcher.get_call_template = get_call_template


def _widened(argument: Any) -> Any:
    types: Any = numba.types
    plain = types.unliteral(argument)
    return types.int64 if isinstance(plain, types.Integer) else plain
