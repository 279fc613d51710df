"""Many threads, one grammar: everybody gets what a single thread gets."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pytest

from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.matching import CompiledGrammar, GrammarCompiler, Matcher, Vocabulary
from infernix.matching.masks import VocabularyIndex
from infernix.matching.rows import BaseRow, MadeRow, MaskRow, RowStore
from infernix.matching.vocabulary import TokenClass
from infernix.options import OutputConstraint
from infernix.results import CacheAccess
from support.vocabularies import byte_vocabulary, spell

NUM_THREADS = 8
MERGED = ['{"', '":', '": ', '", "', '"}', "}}", "[[", "]]", "],", "true", "null", "12", " \n", "xy", "é", "在"]
VOCABULARY = byte_vocabulary(MERGED)

Trace = list[tuple[bytes, bool, int]]


@pytest.fixture(autouse=True)
def _busy_switching() -> Iterator[None]:
    """Threads take turns a hundred times as often as usual."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(interval)


def recursive(make: Callable[[ir.RuleReference], ir.Expression]) -> ir.Grammar:
    builder = ir.GrammarBuilder()
    rule = builder.declare("root")
    builder.define(rule, make(rule))
    return builder.build(rule)


GRAMMARS = {
    "json": build_grammar(OutputConstraint.json_object()),
    "counted": build_grammar(
        OutputConstraint.json_schema({"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": 90})
    ),
    "ambiguous": recursive(
        lambda s: ir.choice(ir.sequence(s, ir.text("x"), s), ir.sequence(ir.text("["), s, ir.text("]")), ir.text("xy"))
    ),
    "tokens": recursive(
        lambda s: ir.choice(ir.sequence(ir.TokenSet((258, 260)), s, ir.text("}")), ir.text("true"), ir.TokenSet((266,)))
    ),
}


def walk(matcher: Matcher, vocabulary: Vocabulary, rng: Random, num_steps: int) -> Trace:
    """A random text with everything that a request asks for on the way."""
    trace: Trace = []
    row = np.zeros(vocabulary.num_mask_words, np.int32)
    rows = np.zeros((4, vocabulary.num_mask_words), np.int32)
    for _ in range(num_steps):
        if not matcher.fill(row):
            break
        bits = np.unpackbits(row.view(np.uint8), count=vocabulary.num_tokens, bitorder="little").astype(np.bool_)
        legal = np.flatnonzero(bits & (vocabulary.classes != TokenClass.EOS)).tolist()
        if not legal:
            trace.append((row.tobytes(), matcher.may_end, -1))
            break
        # Merged tokens and structure more often than one of 200 characters of a string.
        likely = [token for token in legal if token >= 256 or token in b'[]{}":,x']
        tokens = [rng.choice(likely if likely and rng.random() < 0.7 else legal) for _ in range(3)]
        found = matcher.look_ahead(tokens, rows)
        token = tokens[0]
        trace.append((row.tobytes() + rows[: found.num_ready].tobytes(), matcher.may_end, token))
        if rng.random() < 0.3:
            mark = matcher.mark()
            assert matcher.accept(token)
            matcher.rollback(mark)
            assert matcher.preview([token]) == 1
            matcher.confirm()
        else:
            assert matcher.accept(token)
    return trace


def random_value(rng: Random, depth: int) -> object:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([True, None, 12, -0.5, "", "xy é在", '"\\'])
    if rng.random() < 0.5:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {f"k{number}": random_value(rng, depth - 1) for number in range(rng.randrange(3))}


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("room_bytes", [0, 4_000, 16 << 20])
def test_threads_on_one_grammar_get_what_one_thread_gets(name: str, room_bytes: int) -> None:
    alone = [
        walk(CompiledGrammar(GRAMMARS[name], VocabularyIndex(VOCABULARY)).new_matcher(), VOCABULARY, Random(seed), 60)
        for seed in range(NUM_THREADS)
    ]
    index = VocabularyIndex(VOCABULARY)
    index.rows = RowStore(VOCABULARY.num_mask_words, max_bytes=40 * 8)
    empty = CompiledGrammar(GRAMMARS[name], index)
    shared = CompiledGrammar(GRAMMARS[name], index, empty.epoch.num_bytes + room_bytes)
    first_epoch = shared.epoch
    together = threading.Barrier(NUM_THREADS)

    def run(seed: int) -> Trace:
        together.wait(60)
        return walk(shared.new_matcher(), VOCABULARY, Random(seed), 60)

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        assert list(pool.map(run, range(NUM_THREADS))) == alone
    assert sum(map(len, alone)) > NUM_THREADS * 3
    assert (shared.epoch is not first_epoch) == (room_bytes < 16 << 20)


def test_requests_are_prepared_while_others_go_on() -> None:
    """Submitting threads compile, meet the cache and take first masks; a worker advances many texts all the while."""
    rng = Random(11)
    texts = [
        spell(VOCABULARY, json.dumps({"k": random_value(rng, 5)}, ensure_ascii=False).encode(), rng) for _ in range(60)
    ]
    compiler = GrammarCompiler(VOCABULARY, cache_bytes=1 << 18)  # a few grammars at a time
    json_object = compiler.compile(OutputConstraint.json_object()).grammar
    are_done = threading.Event()
    num_rounds = 0

    def work() -> None:
        nonlocal num_rounds
        row = np.zeros(VOCABULARY.num_mask_words, np.int32)
        while num_rounds < 3 or not are_done.is_set():
            matchers = [json_object.new_matcher() for _ in texts]
            for position in range(max(map(len, texts))):
                for matcher, tokens in zip(matchers, texts, strict=True):
                    if position < len(tokens):
                        assert matcher.fill(row)
                        token = tokens[position]
                        assert row[token >> 5] >> (token & 31) & 1
                        assert matcher.accept(token)
            assert all(matcher.may_end for matcher in matchers)
            num_rounds += 1

    def submit(seed: int) -> list[CacheAccess]:
        rng = Random(seed)
        accesses = []
        row = np.zeros(VOCABULARY.num_mask_words, np.int32)
        for _ in range(40):
            constant = rng.randrange(30)
            compilation = compiler.compile(OutputConstraint.json_schema({"const": constant}))
            matcher = compilation.grammar.new_matcher()
            for digit in str(constant).encode():
                assert matcher.fill(row)
                assert row[digit >> 5] >> (digit & 31) & 1
                assert matcher.accept(digit)
            assert matcher.may_end
            accesses.append(compilation.access)
        return accesses

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        worker = pool.submit(work)
        accesses = [access for seen in pool.map(submit, range(NUM_THREADS - 1)) for access in seen]
        are_done.set()
        worker.result()
    assert {CacheAccess.HIT, CacheAccess.BUILT} <= set(accesses)
    assert compiler.num_cached_bytes <= 1 << 18
    assert num_rounds >= 3


def test_a_row_that_another_thread_drops_meanwhile_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between finding a row and copying it, other threads may make the store drop it."""
    index = VocabularyIndex(VOCABULARY)
    compiled = CompiledGrammar(GRAMMARS["json"], index)
    expected = np.zeros(VOCABULARY.num_mask_words, np.int32)
    CompiledGrammar(GRAMMARS["json"], VocabularyIndex(VOCABULARY)).new_matcher().fill(expected)
    intern = index.rows.intern
    num_drops = 0

    def dropped_at_once(base: BaseRow, made: MadeRow, digest: int) -> MaskRow:
        nonlocal num_drops
        kept = intern(base, made, digest)
        if num_drops < 3:
            num_drops += 1
            index.rows._drop_oldest()
            assert kept.content is None
        return kept

    monkeypatch.setattr(index.rows, "intern", dropped_at_once)
    row = np.zeros(VOCABULARY.num_mask_words, np.int32)
    assert compiled.new_matcher().fill(row)
    assert row.tolist() == expected.tolist()
    assert num_drops == 3
