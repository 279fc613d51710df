"""One lifetime of a grammar's configuration table, with what was remembered about its configurations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.arena import NO_LIMIT
from infernix.matching.configurations import DEAD, ConfigurationTable
from infernix.matching.entries import PROBE_ATOMS, SPACE_ATOM, can_be_entered
from infernix.matching.masks import TokenTerminals, VocabularyIndex
from infernix.matching.network import Network
from infernix.matching.row_buffer import RowBuffer
from infernix.matching.row_filling import (
    COUNTED_LOOP,
    ENDLESS_LOOP,
    MIN_RUN_LEFT,
    RUN,
    SPACE_BYTE,
    SPACE_FOLLOWS,
)
from infernix.matching.rows import MaskRow

# Remembered token steps are dropped as a whole beyond this figure, and worked out again when they are needed.
MAX_REMEMBERED_STEPS = 1 << 18
# A rough figure for one entry of a dictionary from integers to small objects.
_ENTRY_BYTES = 100

_NO_PLACES = np.zeros(0, np.int64)


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
        self._has_words = any(can_be_entered(atoms) and atoms & PROBE_ATOMS for atoms, _ in self.loop_sets)
        self._index = index
        self._store = index.rows
        self._terminals = terminals
        self._num_tokens = index.vocabulary.num_tokens
        self._can_step = index.can_step
        self._text_bytes = index.text_bytes
        self._text_begins = index.text_begins
        self._has_terminals = bool(terminals.rows)
        self._steps: dict[int, int] = {}
        self._may_end: dict[int, bool] = {}
        self._rows: dict[int, MaskRow] = {}

    @property
    def num_bytes(self) -> int:
        """Memory of the table and of what is remembered beside it, rows not counted."""
        return self.table.num_bytes + _ENTRY_BYTES * (len(self._steps) + len(self._may_end) + len(self._rows))

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
        if known is None:
            known = self._work_out_step(configuration, token)
            if len(self._steps) >= MAX_REMEMBERED_STEPS:
                self._steps.clear()
            self._steps[key] = known
            self._check_size()
        return known

    def step_bytes(self, configuration: int, data: NDArray[np.uint8], begin: int, end: int) -> int:
        """Where data[begin:end] leads, whatever tokens it came in; DEAD where it leaves the language."""
        following = self.table.step_bytes(configuration, data, begin, end)
        self._check_size()
        return following

    def _check_size(self) -> None:
        if self.num_bytes > self.limit_bytes:
            self.is_full = True

    def extend(self) -> None:
        """Makes the limit twice what is there: what is alive takes its place in any table."""
        self.limit_bytes = max(self.limit_bytes, 2 * self.num_bytes)
        self.is_full = False

    def _work_out_step(self, configuration: int, token: int) -> int:
        if not self._can_step[token]:
            return DEAD
        begin, end = self._text_begins[token], self._text_begins[token + 1]
        if begin == end and not self._has_terminals:
            return DEAD
        return self.table.step_token(configuration, self._text_bytes, begin, end, token, self._terminals.membership)

    def copy_row(self, configuration: int, target: NDArray[np.int32]) -> bool:
        """Copies the mask row to `target`, int32 [num_mask_words]; whether any token is legal.

        ValueError for another length.
        """
        row = self._rows.get(configuration)
        # Another thread's rows may push this one out of the store between finding and copying it.
        while row is None or (words := row.words) is None:
            row = self.row(configuration)
        sparse = row.sparse
        if sparse is None:
            target[:] = words
        elif len(target) != len(words):
            raise ValueError(f"a mask row has {len(words)} words, not {len(target)}")
        else:
            target.fill(0)
            target[sparse[0]] = sparse[1]
        row.last_used = self._store.clock
        return not row.is_empty

    def row(self, configuration: int) -> MaskRow:
        """The mask row, kept in the vocabulary's store until that needs the room."""
        row = self._rows.get(configuration)
        if row is None or row.words is None:
            clamped, *description = self.table.describe_row(configuration)
            row = self._rows.get(clamped)
            if row is None or row.words is None:
                row = self._rows[clamped] = self._store.intern(self._work_out_row(clamped, *description))
            self._rows[configuration] = row
            self._check_size()
        row.last_used = self._store.clock
        return row

    def _work_out_row(
        self,
        configuration: int,
        may_end: int,
        atoms: int,
        num_left: int,
        kind: int,
        run_atoms: int,
        run_left: int,
        follow: int,
    ) -> RowBuffer:
        row = self._store.new_row()
        if not (
            self._take_slice(row, configuration, atoms, num_left, kind)
            or self._take_entered_loop(row, configuration, follow, is_spaced=_is_spaced(atoms, kind, run_left))
            or self._take_beginnings(row, configuration, atoms, kind, run_atoms, run_left)
        ):
            part = self._index.slices.find(atoms, num_left)
            if part is None:
                forest = self._index.forest
                self.table.fill_text_bits(forest, forest.whole, configuration, row)
            else:
                others = part.others
                self.table.fill_text_bits(others, others.whole, configuration, row, (part.row, _NO_PLACES))
        for token_set in self.table.open_token_sets(configuration):
            row.add_row(self._terminals.rows[token_set])
        if may_end:
            for place, bits in self._index.eos_words:
                row.add(place, bits)
        return row

    def _take_slice(self, row: RowBuffer, configuration: int, atoms: int, num_left: int, kind: int) -> bool:
        """Writes the row of a configuration in which nothing goes on but a loop; False where that is not so."""
        fill = self.table.fill_text_bits
        if kind == ENDLESS_LOOP:
            part = self._index.slices.find(atoms, NO_LIMIT)
            if part is not None and part.suffixes is not None:
                base = (part.row, _NO_PLACES)
                return fill(part.suffixes, part.suffixes.by_group, configuration, row, base, kind)
        elif kind == COUNTED_LOOP:
            counted = self._index.slices.find_counted(atoms)
            if counted is not None:
                suffixes, tokens = counted.suffixes, counted.tokens
                base, longest, reach = tokens.row(num_left), tokens.max_characters, counted.max_other_bytes
                return fill(suffixes, suffixes.by_group, configuration, row, base, kind, longest, reach)
        return False

    def _take_entered_loop(self, row: RowBuffer, configuration: int, follow: int, is_spaced: bool) -> bool:
        """Writes the row of a configuration that enters a loop, mostly; False where it does not."""
        if not follow or (follow == SPACE_FOLLOWS and is_spaced):
            return False
        table = self.table
        loop, atoms, probe = table.find_loop(configuration, follow)
        spaced_loop = DEAD
        if self._has_words and follow & SPACE_FOLLOWS and (loop == DEAD or can_be_entered(atoms)):
            behind_space = table.step_byte(configuration, SPACE_BYTE)
            probes = probe or table.describe_row(behind_space)[-1]
            spaced_loop, spaced_atoms, _ = table.find_loop(behind_space, probes)
            if loop == DEAD:
                atoms = spaced_atoms if can_be_entered(spaced_atoms) else 0
            elif spaced_atoms != atoms:
                spaced_loop = DEAD
        entry = self._index.slices.find_entry(atoms)
        if entry is None:
            return False
        return table.fill_entered(self._index.forest, entry, configuration, loop, spaced_loop, row)

    def _take_beginnings(
        self, row: RowBuffer, configuration: int, atoms: int, kind: int, run_atoms: int, run_left: int
    ) -> bool:
        """Writes the row of a configuration in which a loop or run on few characters goes on; False otherwise.

        False as well where such characters lead elsewhere, too.
        """
        if kind == ENDLESS_LOOP:
            num_left = NO_LIMIT
        elif run_left >= MIN_RUN_LEFT:
            kind, atoms, num_left = RUN, run_atoms, run_left
        else:
            return False
        found = self._index.slices.find_beginnings(atoms)
        if found is None:
            return False
        return self.table.fill_text_bits(
            self._index.forest, found.parts, configuration, row, found.tokens.row(num_left), kind
        )


def _is_spaced(atoms: int, kind: int, run_left: int) -> bool:
    """Whether spaces only go on with a loop or a run, so that behind one nothing can begin that cannot here."""
    return run_left > 0 or (kind == ENDLESS_LOOP and atoms & SPACE_ATOM != 0)
