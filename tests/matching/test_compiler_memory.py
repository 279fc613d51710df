"""What the compile cache keeps, and what it lets go."""

from __future__ import annotations

import gc

import pytest

from infernix.errors import (
    InvalidRegex,
)
from infernix.matching import CompiledGrammar, GrammarCompiler
from infernix.matching import sources as sources_module
from infernix.options import OutputConstraint
from infernix.results import CacheAccess
from support.vocabularies import byte_vocabulary

VOCABULARY = byte_vocabulary()
GRAMMAR = OutputConstraint.grammar
SCHEMA = OutputConstraint.json_schema
CHOICE = OutputConstraint.choice
REGEX = OutputConstraint.regex


class _NamedGrammar(CompiledGrammar):
    """A grammar without content, of any size."""

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def num_bytes(self) -> int:
        return self.size


def stub_builds(monkeypatch: pytest.MonkeyPatch, stub: GrammarCompiler, size: int) -> list[OutputConstraint]:
    """Lets a compiler build grammars of `size` bytes out of nothing; returns the list of what was built."""
    built: list[OutputConstraint] = []

    def build(source: sources_module.ConstraintSource) -> CompiledGrammar:
        built.append(source.constraint)
        return _NamedGrammar(size)

    monkeypatch.setattr(stub, "_compile_cold", build)
    return built


class TestMemory:
    def test_ten_thousand_constraints_stay_inside_the_budget(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compiler = GrammarCompiler(VOCABULARY, cache_bytes=4 << 20)
        built = stub_builds(monkeypatch, compiler, 50_000)
        most = 0
        for number in range(10_000):
            compiler.compile(SCHEMA(f'{{"const": {number}}}'))
            most = max(most, compiler.num_cached_bytes)
        assert len(built) == 10_000
        assert 1 << 20 < most <= 4 << 20
        assert len(compiler._cache) == most // (50_000 + 1024)
        assert compiler.compile(SCHEMA('{"const": 9999}')).access is CacheAccess.HIT
        assert compiler.compile(SCHEMA('{"const": 0}')).access is CacheAccess.BUILT
        assert compiler.num_live_bytes == 0

    def test_many_real_constraints_stay_inside_the_budget(self) -> None:
        compiler = GrammarCompiler(VOCABULARY, cache_bytes=1 << 20)
        for number in range(150):
            compiler.compile(SCHEMA({"enum": [number, str(number)]}))
            with pytest.raises(InvalidRegex):
                compiler.compile(REGEX("(" + "a" * number))
            assert compiler.num_cached_bytes <= 1 << 20
        assert compiler.index.rows.num_bytes <= 1 << 18
        assert 0 < len(compiler._cache) < 300

    def test_failures_are_bounded_too(self) -> None:
        compiler = GrammarCompiler(VOCABULARY, cache_bytes=1 << 18)
        for number in range(400):
            with pytest.raises(InvalidRegex):
                compiler.compile(REGEX("(" + "a" * number))
            assert compiler.num_cached_bytes <= 1 << 18

    def test_sources_are_not_kept(self) -> None:
        compiler = GrammarCompiler(VOCABULARY, cache_bytes=1 << 20)
        comment = "# " + "x" * 100_000
        for number in range(40):
            compiler.compile(GRAMMAR(f'root ::= "a"\n{comment}{number}'))
        assert all(len(key) == 32 for key in compiler._cache._kept)

    def test_the_least_recently_used_goes_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compiler = GrammarCompiler(VOCABULARY, cache_bytes=600_000)
        built = stub_builds(monkeypatch, compiler, 90_000)  # three have room in a half
        for name in ("a", "b", "c", "a", "d"):
            compiler.compile(CHOICE([name]))
        assert [constraint.choices[0] for constraint in built] == ["a", "b", "c", "d"]
        for name in ("c", "a", "d", "b"):
            compiler.compile(CHOICE([name]))
        assert [constraint.choices[0] for constraint in built] == ["a", "b", "c", "d", "b"]

    def test_what_is_used_outlives_being_dropped(self) -> None:
        compiler = GrammarCompiler(VOCABULARY, cache_bytes=0)
        compilation = compiler.compile(SCHEMA({"type": "string", "maxLength": 9}))
        matcher = compilation.grammar.new_matcher()
        assert len(compiler._cache) == 0
        size = compilation.grammar.num_bytes
        assert compiler.num_live_bytes == size
        assert compiler.num_cached_bytes == compiler.index.rows.num_bytes + compiler.index.slices.num_bytes
        compiler.compile(CHOICE(["other"]))
        assert all(matcher.accept(byte) for byte in b'"abc"')
        assert matcher.may_end
        # Who asks for it again while it lives gets the same one.
        again = compiler.compile(SCHEMA({"type": "string", "maxLength": 9}))
        assert (again.grammar, again.access) == (compilation.grammar, CacheAccess.HIT)
        del compilation, matcher, again
        gc.collect()
        assert compiler.num_live_bytes == 0
        assert compiler.compile(SCHEMA({"type": "string", "maxLength": 9})).access is CacheAccess.BUILT

    def test_one_that_comes_back_counts_as_kept_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compiler = GrammarCompiler(VOCABULARY, cache_bytes=600_000)
        stub_builds(monkeypatch, compiler, 90_000)
        held = [compiler.compile(CHOICE([name])).grammar for name in "abcd"]
        assert compiler.num_live_bytes == 90_000
        assert compiler.compile(CHOICE(["a"])).grammar is held[0]
        assert compiler.num_live_bytes == 90_000  # now b
        assert compiler.num_cached_bytes == 3 * (90_000 + 1024)
        del held[1]
        assert compiler.num_live_bytes == 0

    def test_growth_counts_when_it_is_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compiler = GrammarCompiler(VOCABULARY, cache_bytes=1 << 20)
        stub_builds(monkeypatch, compiler, 10_000)
        grammars = [compiler.compile(CHOICE([str(number)])).grammar for number in range(40)]
        before = compiler.num_cached_bytes
        for grammar in grammars:
            assert isinstance(grammar, _NamedGrammar)
            grammar.size = 100_000
        assert compiler.num_cached_bytes == before + 40 * 90_000
        # Hits alone bring it back under the budget: nothing has to be built for that.
        compiler.compile(CHOICE(["39"]))
        assert compiler.num_cached_bytes <= 1 << 20
        assert compiler.compile(CHOICE(["39"])).access is CacheAccess.HIT
        assert compiler.num_live_bytes >= 30 * 100_000

    def test_a_real_grammar_grows_while_it_is_used(self) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        matcher = compiler.compile(OutputConstraint.json_object()).grammar.new_matcher()
        before = compiler.num_cached_bytes
        assert all(matcher.accept(byte) for byte in b'{"a":' + b"[" * 300)
        assert compiler.num_cached_bytes > before

    def test_looking_at_sizes_stays_cheap_with_many_entries(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        stub_builds(monkeypatch, compiler, 1)
        num_looks = 0

        def size(self: _NamedGrammar) -> int:
            nonlocal num_looks
            num_looks += 1
            return 1

        monkeypatch.setattr(_NamedGrammar, "num_bytes", property(size))
        for number in range(2_000):
            compiler.compile(CHOICE([str(number)]))
        assert num_looks < 20 * 2_000

    def test_rows_have_a_quarter(self) -> None:
        compiler = GrammarCompiler(VOCABULARY, cache_bytes=4 * 5_000)
        for length in range(1, 40):
            compiler.compile(REGEX(f"[{''.join(chr(97 + i % 26) for i in range(length))}]"))
        assert compiler.index.rows.num_bytes <= 5_000
        assert compiler.num_cached_bytes >= compiler.index.rows.num_bytes > 0
