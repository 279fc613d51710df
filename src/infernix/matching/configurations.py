"""Everything a grammar can be in, as integers: the lazily built automaton of configurations."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintTooLarge
from infernix.grammar import ir
from infernix.matching import arena
from infernix.matching.arena import new_arena
from infernix.matching.far_states import stand_ins
from infernix.matching.interning import initialize, rebuild_slots
from infernix.matching.jit import entry_of
from infernix.matching.loops import loop_tables
from infernix.matching.network import Network, build_network
from infernix.matching.plans import NO_WAY, Plans
from infernix.matching.row_buffer import RowBuffer
from infernix.matching.row_making import MADE, NOT_OF_KIND, STATUS, WAY, make_rows
from infernix.matching.rows import NO_WORDS, ListedWords
from infernix.matching.stepping import advance, collect_token_sets
from infernix.matching.transplant import transplant
from infernix.matching.ways import Way

DEAD = arena.DEAD
STOPPED = arena.STOPPED

_NO_BYTES = np.zeros(0, np.uint8)
_SLOT_CAPACITIES = (arena.CAPACITY + arena.CONFIGURATION_SLOTS, arena.CAPACITY + arena.FRAME_SLOTS)
_BY_A_WAY = (MADE, NOT_OF_KIND)
NO_DRAFTS = np.zeros(0, np.int64)
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
        found, self.stretch_sets = loop_tables(network, indistinguishable)
        self._arena, self._control = new_arena(
            {**network.tables, **found, arena.STAND_INS: indistinguishable}, network.num_states, network.num_classes
        )
        # Memory of all tables; asked for at every unknown step and row.
        self.num_bytes = arena.num_used_bytes(self._control)
        self._control[arena.MAX_TOKEN_BYTES] = max_token_bytes
        initialize(self._arena, self._control)
        self._control[arena.ROOT_RULE] = network.root_rule
        # Every call has arguments of the same types, as the methods below say.
        self._advance = entry_of(advance)
        self._make_rows = entry_of(make_rows)
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
                result := self._advance(self._arena, self._control, configuration, data, begin, end, token, membership)
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

    def loop_sets(self) -> list[tuple[int, bool]]:
        """All sets of atoms, as bits, that some configuration may go round on, and whether a loop counts them."""
        sets = self._fixed_table(arena.LOOP_SETS).view(np.int64).tolist()
        loops = self._fixed_table(arena.STATE_LOOPS).reshape(-1, arena.STATE_LOOPS_WIDTH)
        counted = set(loops[loops[:, arena.EVENNESS] & arena.BODY_IS_EVEN != 0, arena.BODY_SET].tolist())
        used = range(len(sets))
        if self.stretch_sets:
            used = np.unique(loops[:, [arena.OWN_SET, arena.BODY_SET, arena.RUN_SET]]).tolist()
        return [(sets[number], number in counted) for number in used if number]

    def _fixed_table(self, table: int) -> NDArray[np.int32]:
        begin = int(self._control[table])
        return self._arena[begin : begin + int(self._control[arena.CAPACITY + table] * arena.ROW_WIDTHS[table])]

    def make_rows(
        self,
        plans: Plans,
        buffer: RowBuffer,
        configuration: int,
        drafts: NDArray[np.int64] = NO_DRAFTS,
        way: Way | None = None,
        loops: tuple[int, int] = (DEAD, DEAD),
        added: ListedWords = NO_WORDS,
    ) -> tuple[list[list[int]], list[Way | None]]:
        """Makes the row of a configuration, and those along drafts as far as that goes, in a buffer.

        Returns by position the heads of what was found out, as `row_making` has it, and the way that was taken.
        drafts: int64, fewer than MAX_MADE_ROWS. way: that to the first row; by default what was chosen for its kind.
        loops: where characters of an entry's set lead, and where they lead behind a space, or DEAD.
        added: words to be set in the first row, whatever the way.
        """
        first = -1
        with self._lock:
            number = NO_WAY if way is None else plans.number_of(way)
            buffer.give_depth(plans.max_depth)
            numbers = (configuration, number, *loops)
            while (
                count := self._make_rows(
                    self._arena, self._control, plans.numbers, buffer.numbers, drafts, first, *numbers, *added
                )
            ) < 0:
                first = -1 - count
                try:
                    self._make_room()
                except ConstraintTooLarge:
                    if first == 0 and buffer.found[0, STATUS] == STOPPED:
                        raise
                    # Whoever gets as far as this position will hear of it.
                    count = first + int(buffer.found[first, STATUS] != STOPPED)
                    break
            heads: list[list[int]] = buffer.heads[:count].tolist()
            # Within the lock: another thread's ways may take these numbers.
            return heads, [plans.way(head[WAY]) if head[STATUS] in _BY_A_WAY else None for head in heads]

    def choose_way(self, plans: Plans, kind_of_row: int, way: Way | None) -> None:
        """Takes a way for all rows of a kind, or none where the loops that are entered decide."""
        with self._lock:
            plans.choose(kind_of_row, way)

    def forget_ways(self, plans: Plans) -> None:
        """Lets go of all ways."""
        with self._lock:
            plans.forget()

    def forget_row(self, configuration: int) -> None:
        """Lets `make_rows` make a row again, which it does not where it has done so before."""
        with self._lock:
            row = self._control[arena.CONFIGURATIONS] + arena.CONFIGURATION_WIDTH * configuration
            self._arena[row + arena.HAS_ROW] = 0

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
        slots = [int(self._control[place]) for place in _SLOT_CAPACITIES]
        self._arena = arena.grown(self._arena, self._control)
        self.num_bytes = arena.num_used_bytes(self._control)
        if [int(self._control[place]) for place in _SLOT_CAPACITIES] != slots:
            rebuild_slots(self._arena, self._control)
