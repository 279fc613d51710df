"""A grammar compiled for a vocabulary: shared by all requests that use it, never changed by any of them."""

from __future__ import annotations

import threading

from infernix.errors import ConstraintTooLarge
from infernix.grammar import ir
from infernix.matching.configurations import ConfigurationTable
from infernix.matching.epoch import Epoch
from infernix.matching.masks import TokenTerminals, VocabularyIndex
from infernix.matching.matcher import Companion, Matcher
from infernix.matching.network import build_network
from infernix.matching.vocabulary import Vocabulary

# A table beyond this is left behind for a fresh one, as soon as its matchers have moved.
DEFAULT_TABLE_BYTES = 16 << 20


class CompiledGrammar:
    """A grammar's network and its current epoch.

    Configurations pile up while texts go on. When they take more than `table_bytes`, a new epoch begins with an empty
    table; each matcher moves what it can still reach at its own next committed position, and the old table goes when
    the last one has left it. Nothing is renumbered under anyone.
    """

    def __init__(self, grammar: ir.Grammar, index: VocabularyIndex, table_bytes: int = DEFAULT_TABLE_BYTES) -> None:
        self.index = index
        self._table_bytes = table_bytes
        self._network = build_network(grammar)
        self._terminals = TokenTerminals(self._network.token_sets, index)
        self._lock = threading.Lock()
        self.epoch = self._new_epoch()
        for atoms, is_counted in self.epoch.loop_sets:
            index.slices.prepare(atoms, is_counted)
        for atoms, exact_atoms in self.epoch.table.stretch_sets:
            index.slices.prepare_stretch(atoms, exact_atoms)

    def _new_epoch(self) -> Epoch:
        return Epoch(self._network, self.index, self._terminals, self._table_bytes)

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary it was compiled for."""
        return self.index.vocabulary

    @property
    def configurations(self) -> ConfigurationTable:
        """The current epoch's table."""
        return self.epoch.table

    @property
    def num_bytes(self) -> int:
        """Memory of the network, the token terminals and the current epoch; the vocabulary's stores count the rows."""
        num_network_bytes = sum(table.nbytes for table in self._network.tables.values())
        return num_network_bytes + self._terminals.num_bytes + self.epoch.num_bytes

    def new_matcher(self, companion: Companion | None = None) -> Matcher:
        """A matcher at the beginning of a text."""
        return Matcher(self, companion)

    def move(self, configuration: int, old: Epoch) -> tuple[int, Epoch]:
        """Where a configuration of a full epoch goes on: in a fresh one, or in the old one made larger.

        The latter where what the configuration can reach is too much to be moved at one go.
        """
        with self._lock:
            if self.epoch is old or self.epoch.is_full:
                self.epoch = self._new_epoch()
            new = self.epoch
        try:
            moved = new.table.import_from(old.table, configuration)
        except ConstraintTooLarge:
            old.extend()
            return configuration, old
        # Not at every arrival: with latecomers the limit would double again and again.
        if new.num_bytes > new.limit_bytes:
            new.extend()
        return moved, new
