"""Rows near the bounds of automata that count, found by stretches: against a step for each token.

Vocabularies are full of tokens of several characters, some of them cut, and the stretches of one, two or three places
at once are near their ends.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.grammar.unicode import character_class
from infernix.matching import DEAD, CompiledGrammar, Vocabulary, beginnings, slices
from infernix.matching import network as network_module
from infernix.matching.epoch import Epoch
from infernix.matching.masks import VocabularyIndex
from infernix.matching.row_kinds import EXACT_STRETCH, LOOP_ENTERED
from infernix.matching.vocabulary import TokenClass
from infernix.options import OutputConstraint
from support.plain_rows import description_of, note_kinds, plain_epoch
from support.vocabularies import byte_vocabulary

CHARACTERS = 'tTaz019 .,-_"\\\n\té在\u2028\u00a0😀'
CUT = (b"\xe2\x80", b"a\xe5\x9c", b"\xc3(", b"\xa8t", b"tt\x80", b"z\xf4\x90", b"\xed\xa0\x80", b"at\xf0\x9f", b"t\xc2")


def random_vocabulary(rng: Random) -> Vocabulary:
    """All bytes, and tokens of two to nine characters, many of them letters alone."""
    texts: list[bytes | str] = list(CUT)
    for _ in range(110):
        some = rng.choice(("tz", "tza01", "tz ", "tTé在 ", CHARACTERS))
        texts.append("".join(rng.choices(some, k=rng.randint(2, 9))))
    return byte_vocabulary(texts)


PATTERNS = (
    "[0-9]{2}",
    r"\S",
    r"^\S(.*\S)?$",
    r"^(?:\S+\s+){0,4}\S+$",
    "(t0|[a-z]{3}[0-9])",
    "^[a-z]{1,6}(-[a-z]{1,6}){0,2}$",
    "^[^é]*é?[^é]*0$",
    "^[^\u2028]*[\u00a0t][^\u2028]*$",
    "[A-Z].*[0-9]",
)


def random_schema(rng: Random, depth: int = 1) -> dict[str, object]:
    """A string with a pattern and lengths; one of several; an array of such, or what an object has under a name."""
    kind = rng.random() if depth else 0.0
    if kind < 0.5:
        minimum = rng.choice((0, 0, 3))
        lengths = {"minLength": minimum, "maxLength": minimum + rng.randint(2, 14)}
        if rng.random() < 0.15:
            del lengths["maxLength"]
        return {"type": "string", "pattern": rng.choice(PATTERNS), **lengths}
    if kind < 0.8:
        return {"anyOf": [random_schema(rng, depth - 1) for _ in range(2)]}
    if kind < 0.9:
        return {"type": "array", "items": random_schema(rng, depth - 1), "maxItems": 3}
    properties = {"t": random_schema(rng, depth - 1)}
    return {"type": "object", "properties": properties, "required": ["t"], "additionalProperties": False}


# Two counted parts beside each other, behind each other, and called from several places.
GRAMMARS = (
    'root ::= "<" ([a-z]{1,9} " "){2} [a-zé]{3} ">"',
    'root ::= [^0]{0,7} "0" | [^1]{3,5} "1" [^\\n]{0,6}',
    'root ::= (word "," | [A-Z] root)+ word\nword ::= [a-z]{2,6} tail\ntail ::= [a-z0-9]{0,4}',
    'root ::= [^"]{0,9} [t-z]{3,6} "."',
)


def legal_tokens(epoch: Epoch, configuration: int) -> list[int]:
    words = epoch.row(configuration).words()
    assert words is not None
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()


def check_rows(grammar: ir.Grammar, rng: Random, num_texts: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Rows along random texts, token by token; returns how many were made by an exact stretch."""
    vocabulary = random_vocabulary(rng)
    epoch = CompiledGrammar(grammar, VocabularyIndex(vocabulary)).epoch
    eos = vocabulary.num_tokens - 1
    kinds = note_kinds(epoch, monkeypatch)
    for _ in range(num_texts):
        configuration = epoch.table.start
        for _ in range(14):
            expected = [token for token in range(eos) if epoch.step(configuration, token) != DEAD]
            assert legal_tokens(epoch, configuration) == expected + [eos] * epoch.may_end(configuration)
            if not expected:
                break
            # What ends a string is put off.
            inside = [token for token in expected if b'"' not in vocabulary.token_bytes[token]]
            configuration = epoch.step(configuration, rng.choice(inside or expected))
    return kinds.count(EXACT_STRETCH)


@pytest.fixture(params=[0, 1 / 4], ids=["all slices", "large slices"])
def _min_share(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MIN_SHARE", request.param)
    monkeypatch.setattr(slices, "MIN_ENTRY_SHARE", 0)
    monkeypatch.setattr(slices, "ENTRY_REQUESTS", 1)
    monkeypatch.setattr(slices, "CHARACTER_STEPS", (1 << 30, 10, 8))
    # So ways are for a few lengths each.
    monkeypatch.setattr(beginnings, "MAX_LEFT_OUT", 5)
    monkeypatch.setattr(network_module, "MIN_AUTOMATON_STATES", 1)


@pytest.mark.usefixtures("_min_share")
@pytest.mark.parametrize("first_seed", range(0, 80, 20))
def test_rows_of_strings_with_patterns_and_lengths(first_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    num_exact = 0
    for seed in range(first_seed, first_seed + 20):
        rng = Random(seed)
        grammar = build_grammar(OutputConstraint.json_schema(random_schema(rng)))
        num_exact += check_rows(grammar, rng, 4, monkeypatch)
    assert num_exact > 40


@pytest.mark.usefixtures("_min_share")
@pytest.mark.parametrize("number", range(len(GRAMMARS)))
def test_rows_of_counted_parts_that_are_written_out(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check_rows(build_grammar(OutputConstraint.grammar(GRAMMARS[number])), Random(number), 10, monkeypatch)


def test_a_stretch_beside_another_place_that_takes_longer_texts() -> None:
    """Only one of two strings ends after five letters, so the length of a token does not decide."""
    schemas = [{"type": "string", "pattern": "t", "maxLength": length} for length in (6, 8)]
    schemas[1]["pattern"] = "z"
    grammar = build_grammar(OutputConstraint.json_schema({"anyOf": schemas}))
    vocabulary = byte_vocabulary(["t" * length for length in range(2, 10)])
    epoch = CompiledGrammar(grammar, VocabularyIndex(vocabulary)).epoch
    text = np.frombuffer(b'"t', np.uint8).copy()
    inside = epoch.step_bytes(epoch.table.start, text, 0, len(text))
    longest = max(len(vocabulary.token_bytes[token]) for token in legal_tokens(epoch, inside))
    assert longest == 6
    assert {vocabulary.classes[token] for token in legal_tokens(epoch, inside)} == {TokenClass.TEXT}


@pytest.mark.usefixtures("_min_share")
def test_a_short_stretch_beside_a_loop_that_is_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words, or up to nine letters, digits and spaces that begin with t: tokens with t are walked beside the words."""
    edges = [(0, "t", "t", 1)]
    for count in range(1, 9):
        edges += [(count, low, high, count + 1) for low, high in ("  ", "09", "az")]
    numbers = tuple((state, ord(low), ord(high), target) for state, low, high, target in edges)
    counted = ir.Automaton(10, numbers, frozenset(range(1, 10)))
    word = ir.Repeat(character_class([(ord("a"), ord("z"))]), 1, None)
    grammar = ir.Grammar.of(ir.choice(ir.sequence(word, ir.text("!")), ir.sequence(counted, ir.text("."))))
    rng = Random(5)
    texts = ["".join(rng.choices("tz0 ", k=rng.randint(1, 11))) for _ in range(200)]
    texts += ["t" + "".join(rng.choices("tz0 ", k=rng.randint(6, 10))) for _ in range(100)]
    vocabulary = byte_vocabulary(texts)
    index = VocabularyIndex(vocabulary)
    epoch, plain = CompiledGrammar(grammar, index).epoch, plain_epoch(grammar, index, monkeypatch)
    kinds = note_kinds(epoch, monkeypatch)
    # The plain way takes subtrees by stretches, too.
    eos = vocabulary.num_tokens - 1
    expected = [token for token in range(eos) if plain.step(plain.table.start, token) != DEAD]
    assert legal_tokens(epoch, epoch.table.start) == legal_tokens(plain, plain.table.start) == expected
    assert kinds == [LOOP_ENTERED]


def test_near_the_bound_no_row_is_walked_for_tokens_of_its_characters() -> None:
    """Rows are found by the stretch, whose length counts, and by few tokens beside it."""
    schema = OutputConstraint.json_schema({"type": "string", "pattern": "[0-9]{3}", "maxLength": 30})
    epoch = CompiledGrammar(build_grammar(schema), VocabularyIndex(byte_vocabulary(["t" * 40]))).epoch
    text = np.frombuffer(b'"' + b"t" * 30, np.uint8).copy()
    found = []
    for length in range(2, 28):
        inside = epoch.step_bytes(epoch.table.start, text, 0, length)
        _, _, atoms, num_left, kind, *_ = description_of(epoch, inside)
        assert kind == EXACT_STRETCH
        assert atoms.bit_count() > 35
        found.append(num_left)
    assert found == [*range(26, 0, -1)]
