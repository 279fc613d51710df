"""Loops that are entered: their rows by what is left behind the loop against rows token by token."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from infernix.grammar import ir
from infernix.grammar.unicode import character_class
from infernix.matching import DEAD, CompiledGrammar, slices
from infernix.matching import network as network_module
from infernix.matching.atoms import ATOM_OF_ASCII
from infernix.matching.entries import entry_of_slice, find_entry
from infernix.matching.forest import FIRST_TOKEN, NEXT_TOKEN
from infernix.matching.loop_entering import (
    BEHIND_LOOP,
    BEHIND_SPACE,
    BEHIND_SPACED_LOOP,
    ENTERS_LOOP,
    ENTERS_SPACED_LOOP,
    FROM_HERE,
    SPACE,
    SUFFIXES_FROM_HERE,
)
from infernix.matching.masks import VocabularyIndex
from infernix.matching.row_kinds import LOOP_ENTERED, can_be_entered
from infernix.matching.row_making import MADE, NOT_OF_KIND, STATUS
from support.plain_rows import check_rows_along_walks, note_kinds, plain_epoch
from support.vocabularies import text_vocabulary

_RNG = Random(11)
TEXTS = [
    *'abfnlz09_ ;(!"é',
    "\u2028",
    b"\xc3",
    b"a\xe2\x80",
    *(
        "fn",
        "fn ",
        " fn",
        "let",
        " let ",
        "fnz",
        " fnz;",
        "zz",
        "zz!",
        " zz",
        '"fn"',
        " a;",
        "  a",
        "0a",
        " 0",
        "\n",
        "\n a",
    ),
    *("".join(_RNG.choices("abfnlz0_ ;é", k=_RNG.randint(2, 6))) for _ in range(250)),
    *(" " + "".join(_RNG.choices("fnletz_0", k=_RNG.randint(1, 6))) for _ in range(100)),
]
VOCABULARY = text_vocabulary(TEXTS)

LETTER = character_class([(ord("a"), ord("z")), (ord("_"), ord("_"))])
LETTER_OR_DIGIT = character_class([(ord("a"), ord("z")), (ord("_"), ord("_")), (ord("0"), ord("9"))])
NOT_QUOTE = character_class([(ord('"'), ord('"'))], negated=True)
SPACE_CHARACTER = character_class([(0x20, 0x20), (0x0A, 0x0A)])
NAME = ir.sequence(LETTER, ir.Repeat(LETTER_OR_DIGIT, 0, None))
SPACES = ir.Repeat(SPACE_CHARACTER, 1, None)
GAP = ir.Repeat(SPACE_CHARACTER, 0, None)


def counted_names(length: int) -> ir.Automaton:
    """Names of up to `length` characters, two of which are digits at least: a state for each count."""
    numbers = {(0, 0): 0}
    edges: list[tuple[int, int, int, int]] = []
    pending = [(0, 0)]
    for count, num_digits in pending:
        for low, high, target in (("a", "z", (count + 1, num_digits)), ("0", "9", (count + 1, min(num_digits + 1, 2)))):
            if count < length:
                if target not in numbers:
                    numbers[target] = len(numbers)
                    pending.append(target)
                edges.append((numbers[count, num_digits], ord(low), ord(high), numbers[target]))
    final = frozenset(number for (_, num_digits), number in numbers.items() if num_digits == 2)
    return ir.Automaton(len(numbers), tuple(edges), final)


def statements(*kinds: ir.Expression) -> ir.Grammar:
    return ir.Grammar.of(ir.Repeat(ir.sequence(ir.choice(*kinds), ir.text(";"), GAP), 0, None))


GRAMMARS = {
    "names beside keywords": statements(
        ir.sequence(ir.text("fn"), SPACES, NAME),
        ir.sequence(ir.text("let"), SPACES, NAME, GAP, ir.text("("), NAME),
        NAME,
    ),
    "two kinds of names": statements(ir.sequence(NAME, ir.text("(")), ir.sequence(NAME, ir.text("!")), ir.text("fn")),
    "names behind a space": ir.Grammar.of(ir.sequence(ir.text("f"), ir.text(" "), NAME, ir.text(";"))),
    "names here, behind a space, and both": statements(
        ir.sequence(ir.text("0"), NAME),
        ir.sequence(ir.text("("), ir.text(" "), NAME),
        ir.sequence(ir.text("!"), ir.choice(NAME, ir.sequence(ir.text(" "), NAME))),
    ),
    "any name in quotes or one of some": ir.Grammar.of(
        ir.sequence(
            ir.text('"'),
            ir.choice(
                ir.sequence(ir.text("fn"), ir.text('"'), ir.text("!")),
                ir.sequence(ir.text("é"), ir.text('"'), ir.text("(")),
                ir.sequence(ir.Repeat(NOT_QUOTE, 0, None), ir.text('"'), ir.text(";")),
            ),
        )
    ),
    "what goes on beside the loop once": statements(ir.sequence(ir.text("zz"), ir.text("!")), NAME),
    "a count in the way": statements(ir.sequence(ir.Repeat(LETTER, 1, 3), ir.text("!")), NAME),
    "an automaton that counts": ir.Grammar.of(ir.sequence(ir.text("a"), counted_names(60), ir.text(";"))),
}


@pytest.fixture(autouse=True)
def _made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "ENTRY_REQUESTS", 1)
    monkeypatch.setattr(slices, "MIN_ENTRY_SHARE", 0)
    monkeypatch.setattr(network_module, "MIN_AUTOMATON_STATES", 1)


@pytest.mark.parametrize("min_share", [0, 1 / 4])
@pytest.mark.parametrize("name", GRAMMARS)
def test_rows_are_those_of_a_walk_over_whole_tokens(
    name: str, min_share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "MIN_SHARE", min_share)
    index = VocabularyIndex(VOCABULARY)
    epoch, plain = CompiledGrammar(GRAMMARS[name], index).epoch, plain_epoch(GRAMMARS[name], index, monkeypatch)
    kinds = note_kinds(epoch, monkeypatch)
    check_rows_along_walks(epoch, plain, len(TEXTS), Random(name), 12)
    # Far from its bound an automaton goes round, so there are slices for it.
    assert LOOP_ENTERED in kinds or name == "an automaton that counts"


@pytest.mark.parametrize("name", ["names beside keywords", "any name in quotes or one of some"])
def test_a_row_that_was_dropped_is_made_by_the_way_of_its_kind(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MIN_SHARE", 0)
    index = VocabularyIndex(VOCABULARY)
    epoch = CompiledGrammar(GRAMMARS[name], index).epoch
    places = [epoch.table.start]
    for character in {"names beside keywords": "fn ab;let  z", "any name in quotes or one of some": '"fn"'}[name]:
        places.append(epoch.table.step_byte(places[-1], ord(character)))
    kinds = note_kinds(epoch, monkeypatch)
    found = []
    for _ in range(2):
        kinds.clear()
        rows = []
        for place in places:
            words = epoch.row(place).words()
            assert words is not None
            rows.append(words.tolist())
            while index.rows.num_rows:
                index.rows._drop_oldest()
        found.append((rows, kinds.copy()))
    assert found[0] == found[1]
    assert LOOP_ENTERED in found[1][1]


def test_what_is_no_loop_is_not_taken_for_one() -> None:
    index = VocabularyIndex(VOCABULARY)
    epoch = CompiledGrammar(GRAMMARS["a count in the way"], index).epoch
    table, plans, buffer = epoch.table, epoch._begin_plans(), index.rows.take_buffer()
    entry = find_entry(index.trie, index.forest, WORD, VOCABULARY.num_tokens, min_share=0)
    assert entry is not None
    inside = table.step_byte(table.start, ord("a"))
    further = [inside]
    for _ in range(3):
        further.append(table.step_byte(further[-1], ord("a")))
    found = []
    for loop in (table.start, *further):
        (head,), _ = table.make_rows(plans, buffer, table.start, way=entry.way(True, False), loops=(loop, DEAD))
        found.append(head[STATUS])
    assert found == [NOT_OF_KIND] * 4 + [MADE]


def atoms_of(characters: str) -> int:
    return sum({1 << int(ATOM_OF_ASCII[ord(character)]) for character in characters})


WORD = atoms_of("azAZ09_")


def test_every_token_is_in_one_place() -> None:
    """A row, what is left behind the set, or a place in the forest of all tokens."""
    index = VocabularyIndex(VOCABULARY)
    forest = index.forest
    entry = find_entry(index.trie, forest, WORD, VOCABULARY.num_tokens, min_share=0)
    assert entry is not None
    rows = [
        set(np.flatnonzero(np.unpackbits(row.words.view(np.uint8), bitorder="little")).tolist()) for row in entry.rows
    ]

    def is_word(data: bytes) -> bool:
        return data != b"" and all(byte < 128 and WORD >> int(ATOM_OF_ASCII[byte]) & 1 for byte in data)

    texts = {token: data for token, data in enumerate(VOCABULARY.token_bytes[: len(TEXTS)]) if data}
    assert rows[0] == {token for token, data in texts.items() if is_word(data)}
    assert rows[1] == {token for token, data in texts.items() if data[:1] == b" " and is_word(data[1:])}
    assert rows[2] == rows[0] | rows[1]
    tokens_below: dict[int, set[int]] = {kind: set() for kind in range(8)}
    for first, last, kind in entry.parts.tolist():
        within = entry.suffixes if kind in (BEHIND_LOOP, BEHIND_SPACED_LOOP) else forest
        for node in range(first, last):
            row = within.nodes[node]
            end = NEXT_TOKEN if kind == SPACE else NEXT_TOKEN + 1
            tokens_below[kind] |= set(within.token_ids[row[FIRST_TOKEN] : row[end]].tolist())
    assert tokens_below[SUFFIXES_FROM_HERE] == set()
    assert tokens_below[ENTERS_LOOP] == {token for token, data in texts.items() if is_word(data[:1])}
    assert tokens_below[BEHIND_LOOP] == tokens_below[ENTERS_LOOP] - rows[0]
    spaced = {token for token, data in texts.items() if data[:1] == b" "}
    assert tokens_below[ENTERS_SPACED_LOOP] == {token for token in spaced if is_word(texts[token][1:2])}
    assert tokens_below[BEHIND_SPACED_LOOP] == tokens_below[ENTERS_SPACED_LOOP] - rows[1]
    assert tokens_below[SPACE] == {token for token in spaced if texts[token] == b" "}
    assert tokens_below[BEHIND_SPACE] == spaced - tokens_below[SPACE] - tokens_below[ENTERS_SPACED_LOOP]
    assert tokens_below[FROM_HERE] == set(texts) - tokens_below[ENTERS_LOOP] - spaced


def test_too_few_tokens_are_not_worth_it() -> None:
    index = VocabularyIndex(VOCABULARY)
    assert find_entry(index.trie, index.forest, WORD, VOCABULARY.num_tokens, min_share=0.99) is None
    empty = VocabularyIndex(text_vocabulary([]))
    assert find_entry(empty.trie, empty.forest, WORD, empty.vocabulary.num_tokens, min_share=0) is None


def test_sets_that_can_be_entered() -> None:
    assert can_be_entered(WORD)
    assert not can_be_entered(0)
    assert not can_be_entered(WORD | atoms_of(" "))
    assert not can_be_entered(WORD | 1 << 46)


def test_of_a_slice_all_leads_beyond_ascii_may_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MIN_SHARE", 0)
    index = VocabularyIndex(VOCABULARY)
    atoms = WORD | 1 << int(ATOM_OF_ASCII.max()) + 3
    part = index.slices.find(atoms, 1 << 30)
    assert part is not None
    assert part.suffixes is not None
    entry = entry_of_slice(part.row, part.suffixes, index.forest, atoms)
    kinds = entry.parts[:, 2].tolist()
    assert {SUFFIXES_FROM_HERE, BEHIND_LOOP, ENTERS_LOOP} == set(kinds)
    entering = entry.parts[entry.parts[:, 2] == ENTERS_LOOP]
    found = {int(byte) for first, last, _ in entering.tolist() for byte in index.forest.node_bytes[first:last]}
    roots = {
        int(byte) for first, last in pairwise(index.forest.root_begins) for byte in index.forest.node_bytes[first:last]
    }
    assert found == {byte for byte in roots if byte >= 0xC2 or (byte < 128 and WORD >> int(ATOM_OF_ASCII[byte]) & 1)}
    assert entry.num_bytes > 0
