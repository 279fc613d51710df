"""Tokens by the white space that they begin with, and rows along runs of it against rows token by token."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from infernix.grammar import ir
from infernix.grammar.unicode import character_class
from infernix.matching import CompiledGrammar, beginnings, slices
from infernix.matching.atoms import ATOM_OF_ASCII
from infernix.matching.beginnings import find_beginnings, share_of_beginnings
from infernix.matching.forest import FIRST_TOKEN, LAST_TOKEN
from infernix.matching.masks import VocabularyIndex
from infernix.matching.row_kinds import ENDLESS_LOOP, RUN
from infernix.matching.row_making import NOT_OF_KIND, STATUS
from support.plain_rows import check_rows_along_walks, description_of, note_kinds, plain_epoch
from support.vocabularies import text_vocabulary

_RNG = Random(3)
TEXTS = [
    *' \n\tab"é',
    "\xa0",
    *(" " * length for length in range(2, 12)),
    *("".join(_RNG.choices(' \n"ab', k=_RNG.randint(2, 8))) for _ in range(200)),
    *(" " * _RNG.randint(0, 5) + "\n" * _RNG.randint(0, 3) + _RNG.choice(('"', "a", "b ", '" "')) for _ in range(80)),
]
VOCABULARY = text_vocabulary(TEXTS)
WHITE_SPACE = character_class([(0x20, 0x20), (0x0A, 0x0A)])
ATOMS = 1 << int(ATOM_OF_ASCII[0x20]) | 1 << int(ATOM_OF_ASCII[0x0A])


def gap(maximum: int | None) -> ir.Expression:
    return ir.Repeat(WHITE_SPACE, 0, maximum)


def between(*parts: ir.Expression) -> ir.Grammar:
    return ir.Grammar.of(ir.sequence(ir.text('"'), *parts))


GRAMMARS = {
    "a run": between(gap(9), ir.text("a"), gap(9), ir.text("b")),
    "a short run": between(gap(2), ir.text("a")),
    "a run at the end": between(ir.text("a"), gap(5)),
    "a loop": between(gap(None), ir.text("a"), gap(None), ir.text("b")),
    "a run behind a run": between(gap(6), gap(6), ir.text("a")),
    "a run that may be left for more white space": between(gap(6), ir.optional(ir.text(" a")), ir.text("b")),
    "a run around calls": ir.Grammar.of(
        ir.Repeat(
            ir.sequence(gap(7), ir.choice(ir.text("a"), ir.sequence(ir.text('"'), gap(4), ir.text('"')))), 0, None
        )
    ),
}
FILLED = {"a run", "a run behind a run", "a run at the end", "a loop", "a run around calls"}


@pytest.fixture(autouse=True)
def _however_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MIN_SHARE", 0.1)


@pytest.mark.parametrize("name", GRAMMARS)
def test_rows_are_those_of_a_walk_over_whole_tokens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = VocabularyIndex(VOCABULARY)
    epoch, plain = CompiledGrammar(GRAMMARS[name], index).epoch, plain_epoch(GRAMMARS[name], index, monkeypatch)
    # No slice is in the way.
    monkeypatch.setattr(index.slices, "find", lambda *_: None)
    kinds = note_kinds(epoch, monkeypatch)

    def short_ones(legal: list[int]) -> list[int]:
        return [token for token in legal if len(VOCABULARY.token_bytes[token]) < 3] or legal

    check_rows_along_walks(epoch, plain, len(TEXTS), Random(name), 20, short_ones)
    assert {RUN, ENDLESS_LOOP} & set(kinds) or name not in FILLED


def test_parts_hold_the_tokens_behind_their_white_space() -> None:
    index = VocabularyIndex(VOCABULARY)
    found = find_beginnings(index.trie, index.forest, ATOMS, VOCABULARY.num_tokens)
    assert found is not None
    nodes, token_ids = index.forest.nodes, index.forest.token_ids
    positions: dict[int, int] = {}
    for first, last, position in found.parts.tolist():
        for node in range(first, last):
            for token in token_ids[nodes[node, FIRST_TOKEN] : nodes[node, LAST_TOKEN]].tolist():
                assert token not in positions
                positions[token] = position
    expected = {}
    whole = {}
    for token, data in enumerate(VOCABULARY.token_bytes[: len(TEXTS)]):
        rest = data.lstrip(b" \n")
        if rest:
            expected[token] = len(data) - len(rest)
        elif data:
            whole[token] = len(data)
    assert positions == expected
    assert found.parts[:, 2].tolist() == sorted(found.parts[:, 2].tolist())
    for num_left in range(13):
        tokens = found.tokens.up_to(num_left)
        legal = np.flatnonzero(np.unpackbits(tokens.row.words.view(np.uint8), bitorder="little")).tolist()
        assert legal == [token for token, length in whole.items() if length <= tokens.max_characters]
        # Few of these are too long.
        assert tokens.max_characters == (found.tokens.max_characters if num_left > 8 else 8)
    assert found.tokens.max_characters == max(whole.values())
    assert found.num_bytes > 0


def test_where_many_tokens_are_too_long_the_row_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    index = VocabularyIndex(VOCABULARY)
    found = find_beginnings(index.trie, index.forest, ATOMS, VOCABULARY.num_tokens)
    assert found is not None
    monkeypatch.setattr(beginnings, "MAX_LEFT_OUT", 2)
    lengths = sorted(len(data) for data in VOCABULARY.token_bytes if data and not data.strip(b" \n"))
    for num_left in range(13):
        longest = found.tokens.up_to(num_left).max_characters
        num_longer = sum(num_left < length <= longest for length in lengths)
        assert num_longer <= 2
        assert longest == 0 or longest in lengths
    assert found.tokens.up_to(2) is not found.tokens.up_to(1)
    assert found.tokens.up_to(12) is found.tokens.up_to(100)


def test_a_set_with_too_many_beginnings_is_not_small(monkeypatch: pytest.MonkeyPatch) -> None:
    index = VocabularyIndex(VOCABULARY)
    monkeypatch.setattr(beginnings, "MAX_BEGINNINGS", 3)
    assert find_beginnings(index.trie, index.forest, ATOMS, VOCABULARY.num_tokens) is None


def test_shares_count_first_characters() -> None:
    trie = VocabularyIndex(text_vocabulary([" a", " ", "a ", "b"])).trie
    assert share_of_beginnings(trie, ATOMS) == 1 / 2
    assert share_of_beginnings(trie, ATOMS | 1 << 46) == 0
    assert share_of_beginnings(VocabularyIndex(text_vocabulary([])).trie, ATOMS) == 0


def test_a_run_too_near_its_end_is_walked_otherwise() -> None:
    index = VocabularyIndex(VOCABULARY)
    epoch = CompiledGrammar(GRAMMARS["a short run"], index).epoch
    inside = epoch.table.step_byte(epoch.table.start, ord('"'))
    *_, run_atoms, run_left, _ = description_of(epoch, inside)
    assert (run_atoms, run_left) == (ATOMS, 2)
    found = index.slices.find_beginnings(ATOMS)
    assert found is not None
    buffer = index.rows.take_buffer()
    (head,), _ = epoch.table.make_rows(epoch._begin_plans(), buffer, inside, way=found.way(RUN, 2))
    assert head[STATUS] == NOT_OF_KIND
