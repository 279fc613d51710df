"""A grammar compiled for a vocabulary: shared by all requests that use it, never changed by any of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.grammar import ir
from infernix.matching.configurations import DEAD, ConfigurationTable
from infernix.matching.masks import VocabularyIndex
from infernix.matching.matcher import Matcher
from infernix.matching.vocabulary import TokenClass, Vocabulary

# What is remembered is dropped as a whole beyond these figures, and worked out again when it is needed.
MAX_ROW_CACHE_BYTES = 64 << 20
MAX_REMEMBERED_STEPS = 1 << 20


class CompiledGrammar:
    """Configurations, token steps and mask rows of one grammar under one vocabulary.

    Safe to use from several threads: what was worked out is found without a lock, the rest is worked out under the
    configuration table's.
    """

    def __init__(self, grammar: ir.Grammar, index: VocabularyIndex) -> None:
        self.configurations = ConfigurationTable(grammar, max(index.trie.max_token_bytes, 1))
        self.index = index
        self._members = [index.members(token_set) for token_set in self.configurations.token_sets]
        self._membership: NDArray[np.uint8] = (
            np.stack(self._members).astype(np.uint8) if self._members else np.zeros((0, 0), np.uint8)
        )
        self._set_rows = [index.packed(members) for members in self._members]
        self._steps: dict[tuple[int, int], int] = {}
        self._may_end: dict[int, bool] = {}
        self._rows: dict[int, NDArray[np.int32]] = {}
        self._distinct_rows: dict[bytes, NDArray[np.int32]] = {}

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary it was compiled for."""
        return self.index.vocabulary

    @property
    def num_bytes(self) -> int:
        """Memory of the configuration table and the distinct rows."""
        return self.configurations.num_bytes + len(self._distinct_rows) * self.vocabulary.num_mask_words * 4

    def new_matcher(self) -> Matcher:
        """A matcher at the beginning of a text."""
        return Matcher(self)

    def may_end(self, configuration: int) -> bool:
        """Whether an EOS token is legal."""
        known = self._may_end.get(configuration)
        if known is None:
            known = self._may_end[configuration] = self.configurations.may_end(configuration)
        return known

    def step(self, configuration: int, token: int) -> int:
        """The configuration after a token that is not EOS; DEAD where it is not legal."""
        key = (configuration, token)
        known = self._steps.get(key)
        if known is None:
            known = self._work_out_step(configuration, token)
            if len(self._steps) >= MAX_REMEMBERED_STEPS:
                self._steps.clear()
            self._steps[key] = known
        return known

    def _work_out_step(self, configuration: int, token: int) -> int:
        if not 0 <= token < self.vocabulary.num_tokens or self.vocabulary.classes[token] in (
            TokenClass.EOS,
            TokenClass.NEVER,
        ):
            return DEAD
        return self.configurations.step_token(configuration, self.index.token_data[token], token, self._membership)

    def row(self, configuration: int) -> NDArray[np.int32]:
        """The mask row, read-only: int32 [num_mask_words]."""
        known = self._rows.get(configuration)
        if known is not None:
            return known
        clamped = self.configurations.clamped(configuration)
        shared = self._rows.get(clamped)
        if shared is None:
            shared = self._rows[clamped] = self._work_out_row(clamped)
        self._rows[configuration] = shared
        return shared

    def _work_out_row(self, configuration: int) -> NDArray[np.int32]:
        trie = self.index.trie
        loop_atoms, num_iterations = self.configurations.loop_of(configuration)
        if num_iterations >= trie.max_token_characters:
            row = self.index.row_of_atoms(loop_atoms).copy()
        else:
            loop_atoms = 0
            row = np.zeros(self.vocabulary.num_mask_words, np.uint32)
        path = np.zeros(trie.max_token_bytes + 1, np.int32)
        self.configurations.fill_text_bits(trie, path, configuration, loop_atoms, row)
        for token_set in self.configurations.open_token_sets(configuration):
            row |= self._set_rows[token_set]
        if self.may_end(configuration):
            row |= self.index.eos_row
        if len(self._distinct_rows) * row.nbytes >= MAX_ROW_CACHE_BYTES:
            self._rows.clear()
            self._distinct_rows.clear()
        content = row.tobytes()
        return self._distinct_rows.setdefault(content, np.frombuffer(content, np.int32))
