"""One lifetime of a grammar's configuration table, with what was remembered about its configurations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.arena import NO_LIMIT
from infernix.matching.configurations import DEAD, ConfigurationTable
from infernix.matching.masks import TokenTerminals, VocabularyIndex
from infernix.matching.network import Network
from infernix.matching.rows import MaskRow
from infernix.matching.stepping import COUNTED_LOOP, ENDLESS_LOOP

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
        self, configuration: int, may_end: int, atoms: int, num_left: int, kind: int
    ) -> NDArray[np.uint32]:
        row = self._store.new_row()
        if not self._take_loop(row, configuration, atoms, num_left, kind):
            part = self._index.slices.find(atoms, num_left)
            base = self._index.no_tokens if part is None else part.row
            others = self._index.forest if part is None else part.others
            self.table.fill_text_bits(others, configuration, base, row)
        for token_set in self.table.open_token_sets(configuration):
            row |= self._terminals.rows[token_set]
        if may_end:
            row |= self._index.eos_row
        return row

    def _take_loop(self, row: NDArray[np.uint32], configuration: int, atoms: int, num_left: int, kind: int) -> bool:
        """Writes the row of a configuration in which nothing goes on but a loop; False where that is not so."""
        if kind == ENDLESS_LOOP:
            part = self._index.slices.find(atoms, NO_LIMIT)
            if part is None or part.suffixes is None:
                return False
            return self.table.fill_text_bits(part.suffixes, configuration, part.row, row, kind)
        if kind == COUNTED_LOOP:
            counted = self._index.slices.find_counted(atoms)
            if counted is None:
                return False
            base, most = counted.row(num_left), counted.max_characters
            return self.table.fill_text_bits(counted.suffixes, configuration, base, row, kind, most)
        return False
