"""Everything a grammar can be in, as integers: the lazily built automaton of configurations."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintTooLarge
from infernix.grammar import ir
from infernix.matching import arena
from infernix.matching.arena import new_arena
from infernix.matching.entries import Entry
from infernix.matching.far_states import stand_ins
from infernix.matching.forest import Forest
from infernix.matching.interning import initialize, rebuild_slots
from infernix.matching.loops import loop_tables
from infernix.matching.network import Network, build_network
from infernix.matching.row_buffer import RowBuffer
from infernix.matching.row_filling import (
    ENDLESS_LOOP,
    LOOP_ENTERED,
    PROBES,
    SOMETHING_ELSE,
    describe_row,
    fill_text_bits,
)
from infernix.matching.stepping import advance, collect_token_sets
from infernix.matching.transplant import transplant
from infernix.matching.vocabulary_walk import DONE

DEAD = arena.DEAD
STOPPED = arena.STOPPED

_NO_BYTES = np.zeros(0, np.uint8)
_PROBES = np.repeat(np.frombuffer(PROBES, np.uint8), 2)
_NO_WORDS = np.zeros(0, np.uint32)
_NO_PLACES = np.zeros(0, np.int64)
_NO_TERMINALS = np.zeros((0, 0), np.uint8)

_LIMIT_MESSAGES = {
    arena.LIMIT_ITEMS: f"the grammar is too ambiguous here: more than {arena.MAX_STEP_ITEMS} simultaneous positions",
    arena.LIMIT_PAIRS: f"the grammar is too ambiguous here: more than {arena.MAX_STEP_PAIRS} simultaneous callers",
}


class ConfigurationTable:
    """All configurations of one grammar that were met so far; shared by every matcher, safe to use from threads.

    A configuration is a number that stays valid as long as the table lives; DEAD is the one that nothing follows.
    Any method raises ConstraintTooLarge where a bound is met.
    """

    def __init__(self, network: Network, max_token_bytes: int = 1) -> None:
        """max_token_bytes: the longest token that masks will be asked about."""
        self.token_sets: tuple[ir.TokenSet, ...] = network.token_sets
        self._lock = threading.Lock()
        indistinguishable = stand_ins(network, max_token_bytes)
        self._arena, self._control = new_arena(
            {
                **network.tables,
                **loop_tables(network, indistinguishable),
                arena.STAND_INS: indistinguishable,
            },
            network.num_states,
            network.num_classes,
        )
        # Memory of all tables; asked for at every unknown step and row.
        self.num_bytes = arena.num_used_bytes(self._control)
        self._control[arena.MAX_TOKEN_BYTES] = max_token_bytes
        # What a walk goes down by: grows with the longest token.
        self._path = np.empty((0, 4), np.int32)
        initialize(self._arena, self._control)
        self._control[arena.ROOT_RULE] = network.root_rule
        self.start: int = self.step_bytes(arena.NOT_STARTED, _NO_BYTES, 0, 0)

    @classmethod
    def of(cls, grammar: ir.Grammar) -> ConfigurationTable:
        """The table of a grammar, for questions byte by byte."""
        return cls(build_network(grammar))

    def step_byte(self, configuration: int, byte: int) -> int:
        """Where one byte leads; DEAD where it leaves the language."""
        return self.step_bytes(configuration, np.array([byte], np.uint8), 0, 1)

    def step_bytes(self, configuration: int, data: NDArray[np.uint8], begin: int, end: int) -> int:
        """Where data[begin:end] leads; DEAD where it leaves the language."""
        return self.step_token(configuration, data, begin, end, 0, _NO_TERMINALS)

    def step_token(
        self,
        configuration: int,
        data: NDArray[np.uint8],
        begin: int,
        end: int,
        token: int,
        membership: NDArray[np.uint8],
    ) -> int:
        """Where a token leads by its bytes data[begin:end] (none: no text) and by the terminals that name it.

        membership: uint8 [num_token_sets, num_tokens].
        """
        with self._lock:
            while (
                result := advance(self._arena, self._control, configuration, data, begin, end, token, membership)
            ) == STOPPED:
                self._make_room()
            return result

    def may_end(self, configuration: int) -> bool:
        """Whether the text so far belongs to the language."""
        with self._lock:
            return bool(
                self._arena[self._control[arena.CONFIGURATIONS] + arena.CONFIGURATION_WIDTH * configuration + 2]
            )

    def allowed_bytes(self, configuration: int) -> list[int]:
        """The bytes that can follow, ascending."""
        return [byte for byte in range(256) if self.step_byte(configuration, byte) != DEAD]

    def describe_row(self, configuration: int) -> tuple[int, int, int, int, int, int, int, int]:
        """What the mask row depends on; see the kernel. The first figure stands for all with the same mask."""
        with self._lock:
            while (found := describe_row(self._arena, self._control, configuration))[0] == STOPPED:
                self._make_room()
            return found

    def loop_sets(self) -> list[tuple[int, bool]]:
        """All sets of atoms, as bits, that some configuration may go round on, and whether a loop counts them."""
        sets = self._fixed_table(arena.LOOP_SETS).view(np.int64)
        loops = self._fixed_table(arena.STATE_LOOPS).reshape(-1, arena.STATE_LOOPS_WIDTH)
        counted = set(loops[loops[:, arena.EVENNESS] & arena.BODY_IS_EVEN != 0, arena.BODY_SET].tolist())
        return [(atoms, number in counted) for number, atoms in enumerate(sets.tolist()) if atoms]

    def _fixed_table(self, table: int) -> NDArray[np.int32]:
        begin = int(self._control[table])
        return self._arena[begin : begin + int(self._control[arena.CAPACITY + table] * arena.ROW_WIDTHS[table])].copy()

    def fill_text_bits(
        self,
        forest: Forest,
        parts: NDArray[np.int64],
        configuration: int,
        row: RowBuffer,
        base: tuple[NDArray[np.uint32], NDArray[np.int64]] = (_NO_WORDS, _NO_PLACES),
        kind: int = SOMETHING_ELSE,
        max_characters: int = 0,
        reach: int = 0,
    ) -> bool:
        """Writes to `row` the bits of `base` and of every token in `parts` that can follow.

        base: a row, and where its words are that are not zero, or nothing. `kind` says what the parts and `base` are,
        as in the kernel. False where the row is wrong.
        """
        numbers = (configuration, kind, max_characters, reach, DEAD, DEAD)
        return self._fill(forest, forest, parts, numbers, (*base, _NO_WORDS), row)

    def fill_entered(
        self, forest: Forest, entry: Entry, configuration: int, loop: int, spaced_loop: int, row: RowBuffer
    ) -> bool:
        """Writes to `row` the bits of every token that can follow.

        forest: that of all tokens. loop, spaced_loop: where characters of the entry's set lead, and where they lead
        behind a space, or DEAD. False where the row is wrong.
        """
        numbers = (configuration, LOOP_ENTERED, 0, 0, loop, spaced_loop)
        base = _NO_WORDS if loop == DEAD else entry.rows[0]
        spaced_base = _NO_WORDS if spaced_loop == DEAD else entry.rows[1]
        return self._fill(forest, entry.suffixes, entry.parts, numbers, (base, _NO_PLACES, spaced_base), row)

    def _fill(
        self,
        forest: Forest,
        suffixes: Forest,
        parts: NDArray[np.int64],
        numbers: tuple[int, int, int, int, int, int],
        bases: tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint32]],
        row: RowBuffer,
    ) -> bool:
        # A token's last byte has nothing below it.
        max_depth = max(forest.max_token_bytes, suffixes.max_token_bytes)
        with self._lock:
            if len(self._path) < max_depth:
                self._path = np.empty((max_depth, 4), np.int32)
            while (
                status := fill_text_bits(
                    self._arena,
                    self._control,
                    forest.node_bytes,
                    forest.nodes,
                    forest.token_ids,
                    suffixes.node_bytes,
                    suffixes.nodes,
                    suffixes.token_ids,
                    parts,
                    self._path,
                    *numbers,
                    *bases,
                    row.words,
                    row.places,
                )
            ) == STOPPED:
                self._make_room()
        return bool(status == DONE)

    def find_loop(self, configuration: int, probes: int) -> tuple[int, int, int]:
        """An endless loop that characters lead into, its atoms, as bits, and the probe that found it, as a bit.

        probes: bit by bit, which of PROBES to try; the first that can follow counts. DEAD and zeros where there is no
        such loop.
        """
        for number in range(len(PROBES)):
            if probes >> number & 1:
                loop = self.step_bytes(configuration, _PROBES, 2 * number, 2 * number + 2)
                if loop != DEAD:
                    _, _, atoms, _, kind, *_ = self.describe_row(loop)
                    return (loop, atoms, 1 << number) if kind == ENDLESS_LOOP else (DEAD, 0, 0)
        return DEAD, 0, 0

    def open_token_sets(self, configuration: int) -> list[int]:
        """Indexes of the token sets that can follow."""
        if not self.token_sets:
            return []
        marked = np.zeros(len(self.token_sets), np.uint8)
        with self._lock:
            collect_token_sets(self._arena, self._control, configuration, marked)
        return [int(index) for index in np.flatnonzero(marked)]

    def import_from(self, old: ConfigurationTable, configuration: int) -> int:
        """The number here of a configuration of another table of the same network."""
        with old._lock, self._lock:
            num_frames = int(old._control[arena.COUNT + arena.FRAMES])
            places = np.zeros(num_frames, np.int32)
            order = np.zeros(num_frames, np.int32)
            while (
                result := transplant(self._arena, self._control, old._arena, old._control, configuration, places, order)
            ) == STOPPED:
                self._make_room()
            return result

    @property
    def num_configurations(self) -> int:
        """Configurations met so far, DEAD included."""
        return int(self._control[arena.COUNT + arena.CONFIGURATIONS])

    def _make_room(self) -> None:
        """After a kernel stopped: grows the table that was full, or raises for the bound that was met."""
        limit = int(self._control[arena.LIMIT])
        if limit:
            self._control[arena.LIMIT] = 0
            self._control[arena.FULL] = 0
            raise ConstraintTooLarge(_LIMIT_MESSAGES[limit])
        full = int(self._control[arena.FULL]) - 1
        self._arena = arena.grown(self._arena, self._control)
        self.num_bytes = arena.num_used_bytes(self._control)
        if full in (arena.CONFIGURATIONS, arena.FRAMES):
            rebuild_slots(self._arena, self._control)
