"""Kernels are compiled once in an installation, whatever state its directories are in."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import infernix.matching
from infernix.matching import jit, warm_kernels, warmup

PROJECT = Path(__file__).parents[2]
MATCHING = Path(infernix.matching.__file__).parent

SMALL_MODULE = """
import numpy as np
from infernix.matching.jit import inner, kernel

@inner
def square(x):
    return x * x

@kernel
def sum_of_squares(xs):
    total = 0
    for x in xs:
        total += square(x)
    return total

if __name__ == "__main__":
    raise SystemExit("import me")
"""
CALL_SMALL = """
import numpy as np, small
assert small.sum_of_squares(np.arange(5)) == 30
print(sum(small.sum_of_squares.stats.cache_hits.values()), sum(small.sum_of_squares.stats.cache_misses.values()))
print(small.sum_of_squares.stats.cache_path)
"""


def start(code: str, **environment: str) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        cwd=PROJECT,
        env={**inherited, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output_of(process: subprocess.Popen[str]) -> list[str]:
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert errors == ""
    return output.splitlines()


@pytest.fixture
def small(tmp_path: Path) -> dict[str, str]:
    """The environment of a program with one small kernel and an empty cache."""
    (tmp_path / "small.py").write_text(SMALL_MODULE)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")}


class SmallKernel:
    """The small kernel in this process; `call` begins with nothing but what is on disk."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.after_declaring: Callable[[], object] = lambda: None
        self.function = importlib.import_module("small").sum_of_squares.py_func

    def call(self) -> tuple[int, int]:
        """Calls that were answered from the disk, and compilations."""
        kernel: Any = jit.kernel(self.function)
        self.after_declaring()
        assert kernel(np.arange(5)) == 30
        return sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())


@pytest.fixture
def small_kernel(small: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallKernel]:
    cache = tmp_path / "cache"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(jit, "_kernels", [])
    monkeypatch.setattr(jit, "kernel_cache_directory", lambda: str(cache))
    yield SmallKernel(cache)
    del sys.modules["small"]


def _is_kernel(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(decorator, ast.Name) and decorator.id in ("kernel", "inner") for decorator in node.decorator_list
    )


class TestSources:
    def test_every_file_that_kernels_are_made_of_is_known(self) -> None:
        trees = {path: ast.parse(path.read_text("utf-8")) for path in MATCHING.glob("*.py")}
        imports = {
            path: {
                MATCHING / f"{name}.py"
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("infernix.matching")
                for name in [(node.module or "").removeprefix("infernix.matching").strip(".")]
                + [alias.name for alias in node.names]
            }
            & set(trees)
            for path, tree in trees.items()
        }
        expected = {path for path, tree in trees.items() if any(map(_is_kernel, ast.walk(tree)))}
        while more := {other for path in expected for other in imports[path]} - expected:
            expected |= more
        assert {MATCHING / name for name in ("arena.py", "atoms.py", "jit.py", "stepping.py")} <= expected
        assert jit.kernel_sources() == sorted(expected)

    def test_each_change_of_a_source_has_a_folder_of_its_own(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
        source = tmp_path / "source.py"
        monkeypatch.setattr(jit, "kernel_sources", lambda: [source])
        folders = []
        for text in ("a = 1\n", "a = 2\n", "a = 1\n"):
            source.write_text(text)
            folders.append(jit.kernel_cache_directory.__wrapped__())
        assert folders[0] == folders[2] != folders[1]
        assert all(Path(folder).parent == tmp_path / "infernix" for folder in folders)


class TestDirectories:
    @pytest.fixture(autouse=True)
    def _bare(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.chdir(tmp_path)

    def test_the_users_choice_goes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
        assert Path(jit.kernel_cache_directory.__wrapped__()).parent == tmp_path / "numba"
        monkeypatch.delenv("NUMBA_CACHE_DIR")
        assert Path(jit.kernel_cache_directory.__wrapped__()).parent == tmp_path / "xdg" / "infernix"
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert Path(jit.kernel_cache_directory.__wrapped__()).parent == tmp_path / "home" / ".cache" / "infernix"

    def test_a_directory_that_cannot_be_written_is_passed_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        assert Path(jit.kernel_cache_directory.__wrapped__()).parent == tmp_path / "home" / ".cache" / "infernix"

    def test_a_relative_cache_directory_is_no_cache_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert Path(jit.kernel_cache_directory.__wrapped__()).parent == tmp_path / "home" / ".cache" / "infernix"
        assert not (tmp_path / "relative").exists()

    def test_a_user_without_a_home_has_a_temporary_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_home() -> Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setattr(Path, "home", no_home)
        monkeypatch.setattr(jit.tempfile, "tempdir", str(tmp_path))
        assert Path(jit.kernel_cache_directory.__wrapped__()).parents[1] == tmp_path


class TestFiles:
    def test_what_was_compiled_is_found(self, small_kernel: SmallKernel) -> None:
        assert small_kernel.call() == (0, 1)
        assert small_kernel.call() == (1, 0)

    @pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
    def test_a_damaged_file_is_written_again(self, small_kernel: SmallKernel, suffix: str) -> None:
        small_kernel.call()
        (file,) = small_kernel.cache.rglob(f"*{suffix}")
        for damaged in (b"", file.read_bytes()[:-20], b"\x80\x05garbage"):
            file.write_bytes(damaged)
            assert small_kernel.call() == (0, 1)
            assert small_kernel.call() == (1, 0)

    def test_a_directory_that_disappears_stops_nothing(self, small_kernel: SmallKernel) -> None:
        """A full disk is the same to the program: a file cannot be written."""
        small_kernel.after_declaring = lambda: (shutil.rmtree(small_kernel.cache), small_kernel.cache.write_text(""))
        assert small_kernel.call() == (0, 1)

    def test_processes_may_start_together_on_an_empty_cache(self, small: dict[str, str]) -> None:
        processes = [start(CALL_SMALL, **small) for _ in range(3)]
        for process in processes:
            output_of(process)
        assert output_of(start(CALL_SMALL, **small))[0] == "1 0"

    def test_without_any_directory_a_process_has_one_of_its_own(self, small: dict[str, str], tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        (tmp_path / "temporary").mkdir()
        small |= {"XDG_CACHE_HOME": str(tmp_path / "file"), "HOME": str(tmp_path / "file")}
        counts, path = output_of(start(CALL_SMALL, **small, TMPDIR=str(tmp_path / "temporary")))
        assert counts == "0 1"
        assert Path(path).is_relative_to(tmp_path / "temporary")
        assert list((tmp_path / "temporary").iterdir()) == []  # and takes it along at its end


class TestEntries:
    def test_an_entry_is_the_kernel_until_that_is_compiled(self, small_kernel: SmallKernel) -> None:
        kernel: Any = jit.kernel(small_kernel.function)
        assert jit.entry_of(kernel) is kernel
        assert kernel(np.arange(5)) == 30
        entry = jit.entry_of(kernel)
        assert entry is not kernel
        assert [entry(np.arange(length)) for length in (1, 5, 6)] == [0, 30, 55]
        assert len(kernel.signatures) == 1


class TestWarming:
    def test_everything_is_warm_and_stays_so(self) -> None:
        code = """
from infernix.matching import warm_kernels
warm_kernels()
"""
        environment = {name: os.environ[name] for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR") if name in os.environ}
        output_of(start(code, **environment))  # from now on they are in the cache, if they were not before
        code = f"""
import sys
sys.path[:0] = [{str(PROJECT / "tests")!r}, {str(PROJECT)!r}]
from infernix.matching import jit, warm_kernels
lines = []
warm_kernels(lines.append)
assert lines == []
signatures = {{kernel.__name__: kernel.signatures for kernel in jit.kernels()}}
assert len(signatures) == len(jit.kernels()) > 10
assert [name for name, found in signatures.items() if len(found) != 1] == []
assert [kernel.__name__ for kernel in jit.kernels() if kernel.stats.cache_misses] == []
assert [kernel.__name__ for kernel in jit.kernels() if sum(kernel.stats.cache_hits.values()) != 1] == []
from infernix.matching import configurations
configurations.entry_of = lambda kernel: kernel  # an entry would not look at its arguments
from matching.test_jit import ask_for_everything
ask_for_everything()
assert {{kernel.__name__: kernel.signatures for kernel in jit.kernels()}} == signatures
"""
        output_of(start(code, **environment))

    @pytest.fixture
    def compiling(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Numbers of kernels that were not in the cache; warming takes until a line was said, or could have been."""
        misses = [0]
        kernels = (SimpleNamespace(stats=SimpleNamespace(cache_misses=misses)),)
        monkeypatch.setattr(warmup, "kernels", lambda: kernels)
        monkeypatch.setattr(warmup, "NOTICE_SECONDS", 0.0)
        return misses

    def test_a_line_is_said_while_kernels_are_compiled(
        self, compiling: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said = Event()
        lines: list[str] = []
        monkeypatch.setattr(warmup, "_call_every_kernel", lambda: said.wait(60))

        def progress(line: str) -> None:
            lines.append(line)
            said.set()

        warm_kernels(progress)
        assert lines == [warmup.NOTICE]

    def test_no_line_is_said_while_they_are_loaded(self, compiling: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
        compiling.clear()
        monkeypatch.setattr(warmup, "_call_every_kernel", lambda: Event().wait(0.1))
        lines: list[str] = []
        warm_kernels(lines.append)
        assert lines == []

    def test_no_line_is_said_when_it_was_quick(self, compiling: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(warmup, "NOTICE_SECONDS", 3600.0)
        monkeypatch.setattr(warmup, "_call_every_kernel", lambda: None)
        lines: list[str] = []
        warm_kernels(lines.append)
        assert lines == []

    def test_a_failure_is_the_callers_and_ends_the_notice(
        self, compiling: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail() -> None:
            raise MemoryError

        monkeypatch.setattr(warmup, "NOTICE_SECONDS", 3600.0)
        monkeypatch.setattr(warmup, "_call_every_kernel", fail)
        with pytest.raises(MemoryError):
            warm_kernels(lambda line: None)


def ask_for_everything() -> None:
    """What requests do, with grammars of all kinds, masks and growth included."""
    from random import Random

    from infernix.errors import ConstraintError
    from infernix.matching import CompiledGrammar, GrammarCompiler
    from infernix.matching.masks import VocabularyIndex
    from infernix.options import OutputConstraint
    from matching.test_threads import GRAMMARS, VOCABULARY, walk
    from support.random_grammars import ALPHABET, FAMILIES, random_grammar
    from support.vocabularies import random_vocabulary

    for grammar in GRAMMARS.values():
        for table_bytes in (0, 1 << 20):
            compiled = CompiledGrammar(grammar, VocabularyIndex(VOCABULARY), table_bytes)
            walk(compiled.new_matcher(), VOCABULARY, Random(1), 60)
            compiled.new_matcher().accept_bytes(b"[1, ")
    for family in FAMILIES:
        for seed in range(5):
            rng = Random(seed)
            vocabulary = random_vocabulary(rng, ALPHABET)
            try:
                compiled = CompiledGrammar(random_grammar(rng, family, (0, 1, 2)), VocabularyIndex(vocabulary), 0)
            except ConstraintError:
                continue
            walk(compiled.new_matcher(), vocabulary, rng, 20)
    matcher = CompiledGrammar(GRAMMARS["json"], VocabularyIndex(VOCABULARY)).new_matcher()
    matcher.look_ahead(list(b'{"a": [1, 2]}'), np.zeros((14, VOCABULARY.num_mask_words), np.int32))
    compiler = GrammarCompiler(VOCABULARY)
    for constraint in (
        OutputConstraint.json_object(),
        OutputConstraint.choice(["a", "b", ""]),
        OutputConstraint.regex("[a-z]{3,90}é?"),
        OutputConstraint.grammar('root ::= "a" root "b" | Token(258)? | "x"{3,2000}'),
        OutputConstraint.json_schema({"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}}),
        OutputConstraint.json_schema({"type": "string", "maxLength": 8000}),
    ):
        walk(compiler.compile(constraint).grammar.new_matcher(), VOCABULARY, Random(2), 40)


class TestPlainPython:
    def test_the_same_code_runs_without_numba(self) -> None:
        tests = ["test_compiler.py::TestLanguages", "test_field_cases.py::TestCharacters", "test_epochs.py"]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k"]
        command += ["not long and not counted_string and not moves and not side_by_side and not dropped_row"]
        command += [str(PROJECT / "tests" / "matching" / test) for test in tests]
        done = subprocess.run(
            command,
            cwd=PROJECT,
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        assert " passed" in done.stdout

    def test_kernels_are_plain_functions_then(self) -> None:
        code = """
import types
from infernix.matching import jit, stepping, warm_kernels
assert jit.kernels() == ()
assert isinstance(stepping.advance, types.FunctionType)
warm_kernels(print)
"""
        assert output_of(start(code, NUMBA_DISABLE_JIT="1")) == []
