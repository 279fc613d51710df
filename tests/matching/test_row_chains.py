"""Rows made at one go along drafts, and the choice of ways to rows."""

from __future__ import annotations

import gc
from random import Random

import numpy as np
import pytest

from infernix.errors import ConstraintTooLarge
from infernix.grammar import ir
from infernix.grammar.unicode import character_class
from infernix.matching import DEAD, CompiledGrammar, analysis, arena, beginnings, plans, slices
from infernix.matching import rows as rows_module
from infernix.matching.beginnings import TokensByLength
from infernix.matching.configurations import ConfigurationTable
from infernix.matching.forest import Forest
from infernix.matching.masks import VocabularyIndex
from infernix.matching.plans import Plans
from infernix.matching.row_buffer import MADE_WORDS_ROOM, MAX_MADE_ROWS
from infernix.matching.row_kinds import ENDLESS_LOOP
from infernix.matching.rows import BaseRow, RowStore
from infernix.matching.slices import forest_by_kind
from infernix.matching.ways import (
    BASE,
    BY_LENGTH,
    NODE_BYTES,
    NODES,
    NUM_BY_LENGTH,
    PARTS,
    SUFFIX_BYTES,
    TOKEN_IDS,
    TokensUpTo,
    Way,
)
from support.made_rows import kept_row
from support.plain_rows import note_kinds, plain_epoch
from support.vocabularies import text_vocabulary

_RNG = Random(21)
TEXTS = [*'ab" ,[]é', *("".join(_RNG.choices('ab", []é', k=_RNG.randint(2, 6))) for _ in range(400))]
VOCABULARY = text_vocabulary(TEXTS)
EOS = VOCABULARY.num_tokens - 1
ODD_DRAFTS = [EOS, 0, 7, EOS + 1, 1 << 50, 1 << 70, -1, -(1 << 50), -(1 << 70)]
# Fewer would be no whole atom, so no set that a loop is found on.
LETTER = character_class([(ord("a"), ord("z")), (0xE9, 0xE9)])
GAP = ir.Repeat(ir.text(" "), 0, 8)


def nested(body: ir.Expression) -> ir.Grammar:
    """Lists in lists of quoted texts."""
    builder = ir.GrammarBuilder()
    root = builder.declare("root")
    quoted = ir.sequence(ir.text('"'), body, ir.text('"'))
    value = ir.choice(quoted, ir.sequence(ir.text("["), root, ir.text("]")))
    builder.define(root, ir.sequence(GAP, value, GAP, ir.Repeat(ir.sequence(ir.text(","), GAP, value, GAP), 0, None)))
    return builder.build(root)


GRAMMARS = {
    "endless": nested(ir.Repeat(LETTER, 0, None)),
    "counted": nested(ir.Repeat(LETTER, 0, 30)),
    "counted from a minimum": nested(ir.Repeat(LETTER, 20, 40)),
    "words": ir.Grammar.of(
        ir.Repeat(ir.sequence(ir.choice(ir.text("ab"), ir.Repeat(LETTER, 1, None)), ir.text(" "), GAP), 0, None)
    ),
    "with a token terminal": ir.Grammar.of(
        ir.Repeat(ir.choice(ir.TokenSet((3, 20)), ir.sequence(LETTER, ir.text(","))), 0, None)
    ),
}


@pytest.fixture(autouse=True)
def _shortcuts_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    # In so short rows nearly every word is changed.
    monkeypatch.setattr(rows_module, "_WORDS_PER_CHANGED_WORD", 1)
    monkeypatch.setattr(slices, "MIN_SHARE", 0)
    monkeypatch.setattr(slices, "MIN_ENTRY_SHARE", 0)
    monkeypatch.setattr(slices, "ENTRY_REQUESTS", 1)


@pytest.mark.parametrize("words_per_changed_word", [1, 5])
@pytest.mark.parametrize("name", GRAMMARS)
def test_rows_along_drafts_are_those_one_by_one(
    name: str, words_per_changed_word: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is known before, where drafts lead nowhere, and with rows that are kept whole."""
    monkeypatch.setattr(rows_module, "_WORDS_PER_CHANGED_WORD", words_per_changed_word)
    grammar = GRAMMARS[name]
    index = VocabularyIndex(VOCABULARY)
    plain = plain_epoch(grammar, index, monkeypatch)
    rng = Random(name)
    num_ahead = 0
    for _ in range(25):
        compiled = CompiledGrammar(grammar, index)
        matcher = compiled.new_matcher()
        place = plain.table.start
        for _ in range(4):
            drafts: list[int] = []
            expected = []
            current = place
            while len(drafts) < 2 * MAX_MADE_ROWS:
                words = plain.row(current).words()
                assert words is not None
                expected.append(words.tolist())
                legal = [token for token in range(EOS) if plain.step(current, token) != DEAD]
                token = rng.choice(legal) if legal and rng.random() < 0.95 else rng.choice(ODD_DRAFTS)
                drafts.append(token)
                current = DEAD if token == EOS else plain.step(current, token)
                if current == DEAD:
                    break
            else:
                words = plain.row(current).words()
                assert words is not None
                expected.append(words.tolist())
            rows = np.zeros((len(drafts) + 1, VOCABULARY.num_mask_words), np.int32)
            found = matcher.look_ahead(drafts, rows)
            assert found.num_ready + bool(found.dead_positions) == len(expected)
            assert rows[: found.num_ready].tolist() == expected[: found.num_ready]
            num_ahead += found.num_ready
            for token in drafts[: rng.randint(0, len(drafts))]:
                after = DEAD if token == EOS else plain.step(place, token)
                if after == DEAD:
                    break
                assert matcher.accept(token)
                place = after
    assert num_ahead > 500


def test_a_chain_is_made_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = CompiledGrammar(GRAMMARS["endless"], VocabularyIndex(VOCABULARY))
    num_calls = 0
    make_rows = ConfigurationTable.make_rows

    def counted_make_rows(*arguments: object, **named: object) -> object:
        nonlocal num_calls
        num_calls += 1
        return make_rows(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(ConfigurationTable, "make_rows", counted_make_rows)
    rows = np.zeros((9, VOCABULARY.num_mask_words), np.int32)
    drafts = [TEXTS.index(character) for character in '["a"]']
    compiled.new_matcher().look_ahead(drafts, rows[:6])
    assert num_calls > 0
    # All ways are chosen now: another text of new configurations takes one call.
    num_calls = 0
    drafts = [TEXTS.index(character) for character in '[["ab"]]']
    assert compiled.new_matcher().look_ahead(drafts, rows).num_ready == 9
    assert num_calls == 1


def test_what_one_go_has_no_room_for_is_made_at_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that differ in so many words that not all of a chain have room."""
    texts = [chr(0x4E00 + number) for number in range(20_000)]
    vocabulary = text_vocabulary(texts)
    index = VocabularyIndex(vocabulary)
    lists = [
        character_class([(0x4E00 + 64 * i + shift, 0x4E00 + 64 * i + shift) for i in range(300)]) for shift in (0, 1)
    ]
    grammar = ir.Grammar.of(ir.sequence(*(lists[number % 2] for number in range(MAX_MADE_ROWS))))
    assert MADE_WORDS_ROOM < 300 * MAX_MADE_ROWS
    plain = plain_epoch(grammar, index, monkeypatch)
    drafts = [number % 2 for number in range(MAX_MADE_ROWS - 1)]
    rows = np.zeros((MAX_MADE_ROWS, vocabulary.num_mask_words), np.int32)
    assert CompiledGrammar(grammar, index).new_matcher().look_ahead(drafts, rows).num_ready == MAX_MADE_ROWS
    place = plain.table.start
    for row, draft in zip(rows, [*drafts, 0], strict=True):
        words = plain.row(place).words()
        assert words is not None
        assert np.count_nonzero(words) == 300
        assert row.tolist() == words.tolist()
        place = plain.step(place, draft)


def test_a_long_row_is_written_out_when_it_is_used_again() -> None:
    vocabulary = text_vocabulary([chr(0x4E00 + number) for number in range(10_000)])
    epoch = CompiledGrammar(
        ir.Grammar.of(character_class([(0x4E00 + 64 * i, 0x4E00 + 64 * i) for i in range(150)])),
        VocabularyIndex(vocabulary),
    ).epoch
    row = epoch.row(epoch.table.start)
    targets = np.zeros((3, vocabulary.num_mask_words), np.int32)
    found = []
    for target in targets:
        found.append(row.is_long)
        assert epoch.copy_row(epoch.table.start, target)
    assert found == [True, True, False]
    assert (targets == targets[0]).all()
    assert np.count_nonzero(targets[0]) == 150


def test_a_row_that_was_dropped_is_made_again_and_so_is_one_further_on() -> None:
    index = VocabularyIndex(VOCABULARY)
    matcher = CompiledGrammar(GRAMMARS["counted"], index).new_matcher()
    drafts = [TEXTS.index(character) for character in '["ab","b"]']
    rows = np.zeros((2, len(drafts) + 1, VOCABULARY.num_mask_words), np.int32)
    matcher.look_ahead(drafts, rows[0])
    for number in range(40):
        kept_row(index.rows, np.arange(VOCABULARY.num_mask_words) == number % VOCABULARY.num_mask_words)
    while index.rows.num_rows:
        index.rows._drop_oldest()
    matcher.look_ahead(drafts, rows[1])
    assert (rows[0] == rows[1]).all()
    assert index.rows.num_rows > 0


def test_a_draft_that_a_token_terminal_takes_leads_on_by_more_than_its_text() -> None:
    vocabulary = text_vocabulary(["a", "x", "y"])
    grammar = ir.Grammar.of(
        ir.choice(ir.sequence(ir.TokenSet((0,)), ir.text("x")), ir.sequence(ir.text("a"), ir.text("y")))
    )
    index = VocabularyIndex(vocabulary)
    compiled = CompiledGrammar(grammar, index)
    rows = np.zeros((2, vocabulary.num_mask_words), np.int32)
    # Where a row was made before, too, and is not kept any more.
    assert compiled.new_matcher().fill(rows[0])
    while index.rows.num_rows:
        index.rows._drop_oldest()
    assert compiled.new_matcher().look_ahead([0], rows).num_ready == 2
    assert rows.tolist() == [[1], [6]]


def test_a_draft_without_bytes_leads_nowhere() -> None:
    vocabulary = text_vocabulary([*TEXTS, ""])
    empty = len(TEXTS)
    matcher = CompiledGrammar(GRAMMARS["endless"], VocabularyIndex(vocabulary)).new_matcher()
    rows = np.zeros((3, vocabulary.num_mask_words), np.int32)
    # From the second one on, the way to such rows is chosen already.
    for _ in range(4):
        assert matcher.look_ahead([empty, 0], rows).num_ready == 1
        assert not matcher.accept(empty)
        assert matcher.accept(TEXTS.index("["))


def test_a_way_keeps_what_its_addresses_lead_to() -> None:
    index = VocabularyIndex(VOCABULARY)
    forests = [forest_by_kind(index.trie, np.ones(len(index.trie.token_ids), np.bool_)) for _ in range(2)]
    base = RowStore(VOCABULARY.num_mask_words).no_tokens
    tokens = TokensByLength(index.trie, np.ones(len(index.trie.token_ids), np.bool_), VOCABULARY.num_tokens).up_to(4)
    way = Way(forests[0], forests[0].whole.copy(), base, suffixes=forests[1], tokens=tokens)
    columns = (NODE_BYTES, NODES, TOKEN_IDS, SUFFIX_BYTES, PARTS, BASE, BY_LENGTH, NUM_BY_LENGTH)
    addresses = set(way.numbers[list(columns)].tolist())
    assert len(addresses) == len(columns)
    del forests, base, tokens
    gc.collect()
    pending: list[object] = [way]
    seen: set[int] = set()
    while pending:
        for found in gc.get_referents(pending.pop()):
            if isinstance(found, np.ndarray):
                addresses.discard(found.ctypes.data)
            if id(found) not in seen and isinstance(found, (tuple, dict, np.ndarray, BaseRow, TokensUpTo, Forest)):
                seen.add(id(found))
                pending.append(found)
    assert not addresses


@pytest.mark.parametrize(("first", "second"), [(5, 8), (3, 8), (8, 5), (20, 32), (9, 33), (5, 6), (20, 21)])
@pytest.mark.parametrize("is_counted", [True, False])
def test_a_way_for_few_characters_is_not_taken_where_more_are_left(
    first: int, second: int, is_counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly as many as the ways chosen for about as many are looked up by."""
    monkeypatch.setattr(beginnings, "MAX_LEFT_OUT", 0)
    monkeypatch.setattr(analysis, "MAX_EXPANDED_EDGES", 0 if is_counted else 160)
    texts = [*'12"', *(" " * length for length in range(1, 41))]
    vocabulary = text_vocabulary(texts)
    parts = [
        ir.sequence(ir.text(f'{number}"'), ir.Repeat(ir.text(" "), 0, most), ir.text('"'))
        for number, most in ((1, first), (2, second))
    ]
    compiled = CompiledGrammar(ir.Grammar.of(ir.Repeat(ir.choice(*parts), 0, None)), VocabularyIndex(vocabulary))
    row = np.zeros(vocabulary.num_mask_words, np.int32)
    for number, most in ((0, first), (1, second)):
        one = compiled.new_matcher()
        assert one.accept(number)
        assert one.accept(2)
        assert one.fill(row)
        legal = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
        assert [texts[token] for token in legal] == ['"', *texts[3 : 3 + most]]


def test_ways_are_forgotten_with_their_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    index = VocabularyIndex(VOCABULARY)
    compiled = CompiledGrammar(GRAMMARS["counted"], index)
    matcher = compiled.new_matcher()
    row = np.zeros(VOCABULARY.num_mask_words, np.int32)
    for character in '["a':
        matcher.fill(row)
        matcher.accept(TEXTS.index(character))
    assert compiled.epoch._plans is not None
    assert compiled.epoch._plans._ways
    monkeypatch.setattr(index.slices, "max_bytes", 0)
    for _ in range(slices.CROWDED_REQUESTS):
        index.slices.find(2, 1 << 30)
    assert compiled.epoch._plans._ways == [index.whole_way]
    expected = np.zeros_like(row)
    other = CompiledGrammar(GRAMMARS["counted"], VocabularyIndex(VOCABULARY)).new_matcher()
    for character in '["ab"':
        assert other.accept(TEXTS.index(character))
    for character in 'b"':
        assert matcher.accept(TEXTS.index(character))
    assert matcher.fill(row)
    assert other.fill(expected)
    assert row.tolist() == expected.tolist()


def test_a_bound_met_further_on_does_not_concern_the_rows_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gets as far as that hears of it."""
    compiled = CompiledGrammar(GRAMMARS["endless"], VocabularyIndex(VOCABULARY))
    epoch = compiled.epoch
    drafts = [TEXTS.index(character) for character in '[["ab"]]'] * 1
    first = epoch.row(epoch.table.start)
    stopped = []

    def no_room() -> None:
        stopped.append(1)
        raise ConstraintTooLarge("no room")

    # Leaves no room for another configuration.
    control = epoch.table._control
    control[arena.CAPACITY + arena.CONFIGURATIONS] = control[arena.COUNT + arena.CONFIGURATIONS] + 3
    monkeypatch.setattr(epoch.table, "_make_room", no_room)
    rows = np.zeros((len(drafts) + 1, VOCABULARY.num_mask_words), np.int32)
    with pytest.raises(ConstraintTooLarge):
        compiled.new_matcher().look_ahead(drafts, rows)
    assert stopped
    words = first.words()
    assert words is not None
    assert rows[0].tolist() == words.tolist()


def test_where_a_bound_is_met_a_chain_ends_where_rows_one_by_one_do(monkeypatch: pytest.MonkeyPatch) -> None:
    drafts = [TEXTS.index(character) for character in '[["ab"],["a"]']
    known, further = drafts[:6], [drafts[0], *drafts]

    def num_made(num_free: int, num_at_once: int) -> int:
        """How many rows there are before there is no room for another configuration."""
        compiled = CompiledGrammar(GRAMMARS["endless"], VocabularyIndex(VOCABULARY))
        compiled.new_matcher().look_ahead(known, np.zeros((7, VOCABULARY.num_mask_words), np.int32))
        table = compiled.epoch.table
        control = table._control
        control[arena.CAPACITY + arena.CONFIGURATIONS] = control[arena.COUNT + arena.CONFIGURATIONS] + num_free

        def no_room() -> None:
            control[arena.FULL] = 0
            raise ConstraintTooLarge("no room")

        monkeypatch.setattr(table, "_make_room", no_room)
        rows = np.full((len(further) + 1, VOCABULARY.num_mask_words), -1, np.int32)
        matcher = compiled.new_matcher()
        try:
            for begin in range(0, len(further), num_at_once):
                some = further[begin : begin + num_at_once]
                matcher.look_ahead(some, rows[begin : begin + len(some) + 1])
                assert matcher.preview(some) == len(some)
                matcher.confirm()
        except ConstraintTooLarge:
            pass
        return int((rows[:, 0] != -1).sum())

    found = [num_made(num_free, len(further)) for num_free in range(40)]
    assert found == [num_made(num_free, 1) for num_free in range(40)]
    assert len(set(found)) > 3


def test_no_lesser_way_is_chosen_while_a_slice_is_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be taken for good, also when the slice is in demand."""
    monkeypatch.setattr(slices, "CROWDED_REQUESTS", 8)
    index = VocabularyIndex(VOCABULARY, slice_bytes=1)
    grammar = nested(ir.Repeat(character_class([(ord("a"), ord("f"))]), 0, None))
    epoch = CompiledGrammar(grammar, index).epoch
    kinds = note_kinds(epoch, monkeypatch)
    outside, found = epoch.table.start, []
    for _ in range(10):
        outside = epoch.table.step_byte(outside, ord("["))
        inside = epoch.table.step_byte(outside, ord('"'))
        epoch.row(inside)
        found.append(kinds[-1])
    assert found[0] != ENDLESS_LOOP
    assert found[-1] == ENDLESS_LOOP


class TestPlans:
    def make(self) -> tuple[Plans, list[Way]]:
        index = VocabularyIndex(VOCABULARY)
        made = Plans(index.plan, has_words=False, counts=False, has_terminals=False)
        store = RowStore(VOCABULARY.num_mask_words)
        others = [Way(index.forest, index.forest.whole, store.no_tokens) for _ in range(plans.MAX_WAYS)]
        return made, [index.whole_way, *others]

    @staticmethod
    def choices(made: Plans) -> dict[int, int]:
        pairs = made.numbers[plans.CHOICES : plans.WAYS].reshape(-1, 2).tolist()
        return {key - 1: number for key, number in pairs if key}

    def test_ways_are_numbered_until_there_is_no_room(self) -> None:
        made, ways = self.make()
        numbers = [made.number_of(way) for way in ways[:-1]]
        assert numbers == list(range(plans.MAX_WAYS))
        assert [made.number_of(way) for way in ways[:-1]] == numbers
        assert made.way(3) is ways[3]
        made.choose(5, ways[4])
        assert self.choices(made) == {plans.NOTHING_KNOWN: 0, 5: 4}
        # All but the first go. A choice of a way that has no number any more would be one of another way.
        assert made.number_of(ways[-1]) == 1
        assert [made.way(number) for number in range(2)] == [ways[0], ways[-1]]
        assert self.choices(made) == {plans.NOTHING_KNOWN: 0}

    def test_choices_begin_anew_when_they_fill_half_of_their_room(self) -> None:
        made, ways = self.make()

        counts = []
        for key in range(1, 3 * plans.NUM_CHOICES):
            made.choose(key, ways[key % 7])
            found = self.choices(made)
            assert found[key] == key % 7
            assert all(found[other] == other % 7 for other in found)
            counts.append(len(found))
        assert max(counts) == plans.NUM_CHOICES // 2
        assert counts[plans.NUM_CHOICES // 2 - 1 :][0] == 2
        made.choose(key, ways[3])
        made.choose(key + 1, None)
        assert self.choices(made)[key] == 3
        assert self.choices(made)[key + 1] == plans.IS_ENTERED
        assert len(self.choices(made)) == counts[-1] + 1
