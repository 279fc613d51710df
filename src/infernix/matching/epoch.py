"""One lifetime of a grammar's configuration table, with what was remembered about its configurations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from infernix.matching.arena import NO_LIMIT
from infernix.matching.configurations import DEAD, NO_DRAFTS, ConfigurationTable
from infernix.matching.entries import PROBE_ATOMS
from infernix.matching.masks import TokenTerminals, VocabularyIndex
from infernix.matching.network import Network
from infernix.matching.plans import Plans
from infernix.matching.row_buffer import MAX_MADE_ROWS, RowBuffer
from infernix.matching.row_kinds import COUNTED_LOOP, ENDLESS_LOOP, EXACT_STRETCH, MIN_RUN_LEFT, RUN, can_be_entered
from infernix.matching.row_making import (
    BEGIN,
    CLAMPED,
    CONFIGURATION,
    DESCRIPTION,
    DIGEST,
    ENDED,
    ENTRY_ATOMS,
    KIND_OF_COUNT,
    KIND_OF_ENTRY,
    KIND_OF_ROW,
    KNOWN,
    LOOP,
    MADE,
    NO_KIND,
    NOT_ASKED,
    NUM_CHANGED,
    SPACED_LOOP,
    STATUS,
    UNDECIDED,
)
from infernix.matching.rows import NO_WORDS, ListedWords, MaskRow, copy_row, listed_words
from infernix.matching.ways import Way

# Remembered token steps are dropped as a whole beyond this figure, and worked out again when they are needed.
MAX_REMEMBERED_STEPS = 1 << 18
# A rough figure for one entry of a dictionary from integers to small objects.
_ENTRY_BYTES = 100


class Epoch:
    """Token steps and mask rows of configurations; configuration numbers mean something in their own epoch only.

    Safe to use from several threads: what was worked out is found in dictionaries without a lock, the rest is worked
    out under the configuration table's.
    """

    def __init__(self, network: Network, index: VocabularyIndex, terminals: TokenTerminals, limit_bytes: int) -> None:
        # Matchers look at this on every token, so it is a plain flag.
        self.is_full = False
        self.table = ConfigurationTable(network, max(index.trie.max_token_bytes, 1))
        self.limit_bytes = limit_bytes
        # All sets of atoms that a loop goes round on, as bits, and whether it is counted.
        self.loop_sets = self.table.loop_sets()
        self._index = index
        self._store = index.rows
        self._terminals = terminals
        self._num_tokens = index.vocabulary.num_tokens
        self._can_step = index.can_step
        self._text_bytes = index.text_bytes
        self._text_begins = index.text_begins
        self._has_terminals = bool(terminals.rows)
        self._membership = terminals.membership
        self._steps: dict[int, int] = {}
        self._may_end: dict[int, bool] = {}
        self._rows: dict[int, MaskRow] = {}
        self._plans: Plans | None = None
        self._num_plan_bytes = 0

    @property
    def num_bytes(self) -> int:
        """Memory of the table and of what is remembered beside it, rows not counted."""
        num_entries = len(self._steps) + len(self._may_end) + len(self._rows)
        return self.table.num_bytes + self._num_plan_bytes + _ENTRY_BYTES * num_entries

    @property
    def num_row_bytes(self) -> int:
        """Memory of its configurations' rows in the vocabulary's store, without the rows that they differ from."""
        return sum(row.num_bytes for row in set(self._rows.values()) if row.content is not None)

    def may_end(self, configuration: int) -> bool:
        """Whether an EOS token is legal."""
        known = self._may_end.get(configuration)
        if known is None:
            known = self._may_end[configuration] = self.table.may_end(configuration)
        return known

    def step(self, configuration: int, token: int) -> int:
        """The configuration after a token that is not EOS; DEAD where it is not legal."""
        if not 0 <= token < self._num_tokens:
            return DEAD
        key = configuration * self._num_tokens + token
        known = self._steps.get(key)
        if known is not None:
            return known
        begin, end = self._text_begins[token], self._text_begins[token + 1]
        if begin == end and not (self._has_terminals and self._can_step[token]):
            return DEAD
        following = self.table.step_token(configuration, self._text_bytes, begin, end, token, self._membership)
        if len(self._steps) >= MAX_REMEMBERED_STEPS:
            self._steps.clear()
        self._steps[key] = following
        self._check_size()
        return following

    def step_bytes(self, configuration: int, data: NDArray[np.uint8], begin: int, end: int) -> int:
        """Where data[begin:end] leads, whatever tokens it came in; DEAD where it leaves the language."""
        following = self.table.step_bytes(configuration, data, begin, end)
        self._check_size()
        return following

    def _check_size(self) -> None:
        # As `num_bytes` has it, but called whenever something is remembered.
        num_entries = len(self._steps) + len(self._may_end) + len(self._rows)
        if self.table.num_bytes + self._num_plan_bytes + _ENTRY_BYTES * num_entries > self.limit_bytes:
            self.is_full = True

    def extend(self) -> None:
        """Makes the limit twice what is there: what is alive takes its place in any table."""
        self.limit_bytes = max(self.limit_bytes, 2 * self.num_bytes)
        self.is_full = False

    def copy_row(
        self, configuration: int, target: NDArray[np.int32], drafts: Sequence[int] = (), position: int = 0
    ) -> bool:
        """Copies the mask row to `target`, int32 [num_mask_words]; whether any token is legal.

        drafts[position:] are tokens that are going to be followed from here: their rows are made at the same go.
        ValueError for another length.
        """
        row = self._rows.get(configuration)
        # Another thread's rows may push this one out of the store between finding and copying it.
        while row is None or (content := row.content) is None:
            row = self.row(configuration, drafts, position)
        if len(target) != row.num_mask_words:
            raise ValueError(f"a mask row has {row.num_mask_words} words, not {len(target)}")
        copy_row(content, target)
        row.last_used = self._store.clock
        if row.is_long:
            if row.is_used:
                self._store.write_out(row)
            row.is_used = True
        return not row.is_empty

    def row(self, configuration: int, drafts: Sequence[int] = (), position: int = 0) -> MaskRow:
        """The mask row, kept in the vocabulary's store until that needs the room; see `copy_row`."""
        row = self._rows.get(configuration)
        if row is None or row.content is None:
            row = self._make_rows(configuration, drafts[position : position + MAX_MADE_ROWS - 1])
            self._check_size()
        row.last_used = self._store.clock
        return row

    def _make_rows(self, configuration: int, drafts: Sequence[int]) -> MaskRow:
        """Makes the row, and those along the drafts as far as that goes at one go."""
        plans = self._plans or self._begin_plans()
        followed = NO_DRAFTS
        # With token terminals, tokens lead on by more than their text.
        if len(drafts) and not self._has_terminals:
            with suppress(OverflowError):  # no token has such a number
                followed = np.array(drafts, np.int64)
        buffer = self._store.take_buffer()
        heads, ways = self.table.make_rows(plans, buffer, configuration, followed)
        first = self._take_row(plans, buffer, 0, heads[0], ways[0])
        if len(heads) > 1:
            if len(self._steps) >= MAX_REMEMBERED_STEPS:
                self._steps.clear()
            before = configuration
            for position in range(1, len(heads)):
                head = heads[position]
                if head[STATUS] == ENDED:
                    break
                self._steps[before * self._num_tokens + drafts[position - 1]] = before = head[CONFIGURATION]
                self._take_row(plans, buffer, position, head, ways[position])
        self._store.give_back(buffer)
        assert first is not None
        return first

    def _take_row(
        self, plans: Plans, buffer: RowBuffer, position: int, head: list[int], way: Way | None
    ) -> MaskRow | None:
        """Remembers what the kernel made; None for a row that is known, but not kept any more, further on."""
        status, clamped = head[STATUS], head[CLAMPED]
        row: MaskRow | None
        if status == MADE and way is not None:
            row = self._intern(way, buffer, head)
        else:
            row = self._rows.get(clamped)
            if status != KNOWN:
                row = self._decide(plans, buffer.found[position].tolist(), way)
            elif position == 0 and (row is None or row.content is None):
                # The store has dropped it, or another thread is about to keep it.
                self.table.forget_row(clamped)
                row = self._make_rows(clamped, ())
            elif row is None:
                return None
        self._rows[clamped] = self._rows[head[CONFIGURATION]] = row
        return row

    def _begin_plans(self) -> Plans:
        has_words = any(can_be_entered(atoms) and atoms & PROBE_ATOMS for atoms, _ in self.loop_sets)
        counts = any(is_counted for _, is_counted in self.loop_sets)
        plans = Plans(self._index.plan, has_words=has_words, counts=counts, has_terminals=self._has_terminals)
        self._plans = plans
        self._num_plan_bytes = plans.numbers.nbytes
        self._index.slices.add_user(self)
        return plans

    def forget_slices(self) -> None:
        """Lets go of what was made of slices, as when the vocabulary's store drops some."""
        if self._plans is not None:
            self.table.forget_ways(self._plans)

    def _intern(self, way: Way, buffer: RowBuffer, head: list[int]) -> MaskRow:
        return self._store.intern(way.base, buffer.made_row(head[NUM_CHANGED], head[BEGIN]), head[DIGEST])

    def _decide(self, plans: Plans, columns: list[int], failed: Way | None) -> MaskRow:
        """Makes a row by the first way that is one to it, except for the one that was taken already.

        columns: what the kernel found out about it. The first way is taken for all rows of its kind from now on.
        """
        clamped = columns[CLAMPED]
        added = self._terminal_words(clamped) if self._has_terminals else NO_WORDS
        num_put_off = self._index.slices.num_put_off
        is_open = columns[STATUS] == UNDECIDED and not self._has_terminals
        for way, kind_of_row in self._ways(columns):
            if is_open and kind_of_row != NO_KIND and self._index.slices.num_put_off == num_put_off:
                self.table.choose_way(plans, kind_of_row, way)
                if way is None:
                    return self._make_rows(clamped, ())
            is_open = False
            row = None if way is None or way is failed else self._by_way(plans, way, columns, added)
            if row is not None:
                return row
        raise AssertionError("the last way is one to every row")

    def _by_way(self, plans: Plans, way: Way, columns: list[int], added: ListedWords) -> MaskRow | None:
        """The row, or None where the configuration is not of the way's kind."""
        buffer = self._store.take_buffer()
        loops = (columns[LOOP], columns[SPACED_LOOP])
        heads, _ = self.table.make_rows(plans, buffer, columns[CLAMPED], NO_DRAFTS, way, loops, added)
        row = self._intern(way, buffer, heads[0]) if heads[0][STATUS] == MADE else None
        self._store.give_back(buffer)
        return row

    def _terminal_words(self, configuration: int) -> ListedWords:
        """The words of the row of the tokens that token terminals take, and their places."""
        row = np.zeros(self._store.num_mask_words, np.uint32)
        for token_set in self.table.open_token_sets(configuration):
            row |= self._terminals.rows[token_set]
        return listed_words(row)

    def _ways(self, columns: list[int]) -> Iterator[tuple[Way | None, int]]:
        """Ways to a row, the shortest first, as far as they may be; and to which kind of rows each is the first one.

        None where the kernel would have to look for loops that are entered.
        """
        _, _, atoms, num_left, kind, run_atoms, run_left, _ = columns[DESCRIPTION : DESCRIPTION + 8]
        kind_of_row = columns[KIND_OF_ROW]
        kind_of_count = kind_of_row if columns[KIND_OF_COUNT] == NO_KIND else columns[KIND_OF_COUNT]
        slices = self._index.slices
        if kind == COUNTED_LOOP:
            counted = slices.find_counted(atoms)
            if counted is not None:
                yield counted.way(num_left), kind_of_count
        elif kind == ENDLESS_LOOP:
            part = slices.find(atoms, NO_LIMIT)
            if part is not None and part.way_past_loop is not None:
                yield part.way_past_loop, kind_of_row
        elif kind == EXACT_STRETCH:
            exact = slices.find_exact(atoms)
            if exact is not None:
                yield exact.way(num_left), kind_of_count
        if columns[ENTRY_ATOMS] > 0:
            entry = slices.find_entry(columns[ENTRY_ATOMS])
            if entry is not None:
                yield entry.way(columns[LOOP] != DEAD, columns[SPACED_LOOP] != DEAD), columns[KIND_OF_ENTRY]
            kind_of_row = kind_of_count = NO_KIND
        elif columns[ENTRY_ATOMS] == NOT_ASKED and kind_of_row & 1:
            yield None, kind_of_row
            kind_of_row = kind_of_count = NO_KIND
        # On few characters, such as white space.
        if kind == ENDLESS_LOOP:
            beginnings = slices.find_beginnings(atoms)
            if beginnings is not None:
                yield beginnings.way(ENDLESS_LOOP, NO_LIMIT), kind_of_row
        elif run_left >= MIN_RUN_LEFT:
            beginnings = slices.find_beginnings(run_atoms)
            if beginnings is not None:
                yield beginnings.way(RUN, run_left), kind_of_count
        part = slices.find(atoms, num_left)
        yield self._index.whole_way if part is None else part.way, kind_of_row
