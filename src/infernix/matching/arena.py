"""One block of memory for everything that the kernels read and write.

`arena` is a flat int32 array that holds all tables of one grammar, one after the other; `control` is a short int64
vector that says where each table begins, how many rows it can hold and how many it holds. Two arrays instead of
seventy keep kernel calls cheap: every array that is passed costs seven machine arguments and an unboxing.

A table is known by a small number T: control[T] is its base, control[CAPACITY + T] its capacity in rows and
control[COUNT + T] its rows in use. A kernel that finds a table full writes its number to control[FULL] and stops; the
caller grows the table and calls again, which is safe because interning is idempotent.
"""

from __future__ import annotations

from operator import mul

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintTooLarge

Arena = NDArray[np.int32]
Control = NDArray[np.int64]

# Tables of the network, fixed once it is loaded.
CLASS_OF = 0  # byte -> byte class
DELTA = 1  # state * num_classes + class -> target state, NO_TARGET, or a reference to TARGETS
TARGETS = 2  # lists of targets for nondeterministic steps: length, targets...
FLAGS = 3  # state -> FINAL | KEPT | ACCEPT
CALL_BEGIN = 4  # state -> first row of CALLS; one row more than states
CALLS = 5  # callee rule, return state, loop or NO_LOOP
TOKEN_BEGIN = 6  # state -> first row of TOKEN_EDGES; one row more than states
TOKEN_EDGES = 7  # token set, target state
LOOPS = 8  # minimum, maximum or UNBOUNDED, body rule, return state
RULES = 9  # start state, nullable
STATE_LOOPS = 27  # what a state goes round on, and what moves it: see the columns below
LOOP_SETS = 28  # low and high word of a set of atoms
STAND_INS = 31  # state -> one that stands for it where masks are worked out
LOOP_STARTS = 30  # set by set: an ASCII byte of it or NO_BYTE; by byte class, whether it can begin a character of it
# Tables that grow.
NEXT = 10  # configuration * num_classes + class -> configuration, SOMEWHERE or UNKNOWN
CONFIGURATIONS = 11  # first item, number of items, may end, hash, loop set, iterations left in it, clamped form,
# run set, characters left in it, whether its mask row was made, stretch set, characters left in it
ITEMS = 12  # state, frame
FRAMES = 13  # first pair, number of pairs, first frame and size of the unit, hash, unit's hash, stamp, clamped form
PAIRS = 14  # return state (num_states + loop for a loop), parent frame, count
CONFIGURATION_SLOTS = 15  # open addressing: configuration + 1, or 0
FRAME_SLOTS = 16  # open addressing: 2 * frame + 1, or 2 * first frame of a cyclic unit + 2, or 0
# Scratch of one closure step.
WORK = 17  # state, frame
WORK_SLOTS = 18  # stamp, state, frame
PROVISIONAL = 19  # rule, first pair, number of pairs, frame or NO_FRAME; visit number, low link, place in unit
PROVISIONAL_OF_RULE = 20  # stamp, provisional frame
LINKS = 21  # return state, parent, count, next link: the pairs of provisional frames as linked lists
LINK_SLOTS = 22  # stamp, link
INHERITS = 23  # heir, ancestor: all pairs of the ancestor belong to the heir
STACK = 24  # component search: provisional frame, next link; and a second stack in the third column
SORTED = 25  # return state, parent, count: pairs in canonical order; or state, frame, 0: items
RELATION = 26  # open questions of one comparison: frame, frame, whether the second covers the first
COVERINGS = 29  # answers to such questions by hash, later ones in place of earlier: frame + 1, frame, answer
NUM_TABLES = 32

CAPACITY = 32
COUNT = 64
NUM_STATES = 96
NUM_CLASSES = 97
STAMP = 98  # number of the current closure step
MAY_END = 99  # the closure reached the accept state
FULL = 100  # the table that has to grow + 1, or 0
LIMIT = 101  # the bound that was met, or 0
MAX_TOKEN_BYTES = 102  # longest token, as far as masks can look ahead
ROOT_RULE = 103
CONTROL_LENGTH = 104

CONFIGURATION_WIDTH = 12
HAS_ROW = 9  # columns of CONFIGURATIONS
STRETCH = 10
FRAME_WIDTH = 8
PROVISIONAL_WIDTH = 7
LINK_WIDTH = 5
STATE_LOOPS_WIDTH = 10
# Columns of STATE_LOOPS; sets are rows of LOOP_SETS.
OWN_SET = 0  # atoms that lead back to the state
BODY_SET = 1  # atoms that run through a loop's body from it
EVENNESS = 2  # which of the two are even: OWN_IS_EVEN | BODY_IS_EVEN
RUN_SET = 3  # atoms of the run that the state belongs to
RUN_LEFT = 4  # how many characters of them the run has left
MOVED_BY = 5  # bit by bit, whether a character of set 1 .. 30 moves the state; bit 0 is set once that is known
STRETCH_SET = 6  # atoms of which every text of up to a number of characters can follow
STRETCH_LEFT = 7  # that number
EXACT_SET = 8  # atoms of which such texts can follow, and none longer
EXACT_LEFT = 9

ROW_WIDTHS = [1] * NUM_TABLES
for _table, _width in {
    CALLS: 3,
    TOKEN_EDGES: 2,
    LOOPS: 4,
    RULES: 2,
    STATE_LOOPS: STATE_LOOPS_WIDTH,
    LOOP_SETS: 2,
    CONFIGURATIONS: CONFIGURATION_WIDTH,
    ITEMS: 2,
    FRAMES: FRAME_WIDTH,
    PAIRS: 3,
    WORK: 2,
    WORK_SLOTS: 3,
    PROVISIONAL: PROVISIONAL_WIDTH,
    PROVISIONAL_OF_RULE: 2,
    LINKS: LINK_WIDTH,
    LINK_SLOTS: 2,
    INHERITS: 2,
    STACK: 3,
    SORTED: 3,
    RELATION: 3,
    COVERINGS: 3,
}.items():
    ROW_WIDTHS[_table] = _width

# Values inside the tables.
NO_TARGET = -1
NO_LOOP = -1
NO_BYTE = -1
NO_FRAME = -1
UNBOUNDED = -1
NO_LIMIT = 1 << 30  # iterations left where nothing is counted
SOMEWHERE = -1  # a configuration that is not dead, but not known
UNKNOWN = -2
DEAD = 0  # the configuration without items
NOT_STARTED = -2  # the configuration from which the first one is found
STOPPED = -1  # a kernel's result where control[FULL] or control[LIMIT] says why there is none
ACCEPT_STATE = 0
FINAL_STATE = 1  # final, and nothing else
ROOT_FRAME = 0
FINAL = 1
KEPT = 2  # has byte or token edges
ACCEPT = 4
OWN_IS_EVEN = 1
BODY_IS_EVEN = 2

# Bounds of one closure step; meeting one is an error of the constraint, not a stall.
MAX_STEP_ITEMS = 1 << 17
MAX_STEP_PAIRS = 1 << 18
LIMIT_ITEMS = 1
LIMIT_PAIRS = 2

MAX_ARENA_BYTES = 1 << 28

_INITIAL_ROWS = {
    CONFIGURATIONS: 512,
    ITEMS: 2048,
    FRAMES: 512,
    PAIRS: 1024,
    CONFIGURATION_SLOTS: 1024,
    FRAME_SLOTS: 2048,
    WORK: 64,
    WORK_SLOTS: 128,
    PROVISIONAL: 32,
    LINKS: 128,
    LINK_SLOTS: 256,
    INHERITS: 32,
    STACK: 64,
    SORTED: 128,
    RELATION: 192,
    COVERINGS: 512,
}
_SLOT_TABLES = {CONFIGURATIONS: CONFIGURATION_SLOTS, FRAMES: FRAME_SLOTS, WORK: WORK_SLOTS, LINKS: LINK_SLOTS}
# Tables of which only the rows in use need to be kept, and which says how many those are.
_COUNTED_BY = {CONFIGURATIONS: CONFIGURATIONS, NEXT: CONFIGURATIONS, ITEMS: ITEMS, FRAMES: FRAMES, PAIRS: PAIRS}
_GROWING_TOGETHER = (CONFIGURATIONS, ITEMS, FRAMES, PAIRS)
_SLOTS_PER_ROW = {CONFIGURATIONS: 2, FRAMES: 4, WORK: 2, LINKS: 2}
_SLOTS = frozenset(_SLOT_TABLES.values())
# The order in which tables stand in an arena: those of the network, which never grow, then the others, those that grow
# most at the end. A new arena has this many times the others' size as room behind them, or that of the network once.
_LAST = (PAIRS, FRAMES, FRAME_SLOTS, ITEMS, CONFIGURATIONS, CONFIGURATION_SLOTS, NEXT)
_GROWING = (PROVISIONAL_OF_RULE, *(table for table in _INITIAL_ROWS if table not in _LAST), *_LAST)
_ORDER = (*(table for table in range(NUM_TABLES) if table not in _GROWING), *_GROWING)
_ROOM = 3


def new_arena(network_tables: dict[int, NDArray[np.int32]], num_states: int, num_classes: int) -> tuple[Arena, Control]:
    """An arena with the network's tables and room for the first configurations.

    `network_tables` maps a table number to its flat content.
    """
    control = np.zeros(CONTROL_LENGTH, np.int64)
    control[NUM_STATES] = num_states
    control[NUM_CLASSES] = num_classes
    # Numbers of Python's own here and below: NumPy's take several times as long, one by one.
    widths = _row_widths(control)
    capacities = [_INITIAL_ROWS.get(table, 0) for table in range(NUM_TABLES)]
    for table, content in network_tables.items():
        capacities[table] = len(content) // widths[table]
    capacities[NEXT] = capacities[CONFIGURATIONS]
    capacities[PROVISIONAL_OF_RULE] = capacities[RULES]
    nothing = [0] * NUM_TABLES
    arena = _lay_out(np.zeros(0, np.int32), control, capacities, nothing, nothing, _row_widths(control))
    bases = control[:NUM_TABLES].tolist()
    for table, content in network_tables.items():
        arena[bases[table] : bases[table] + len(content)] = content
    return arena, control


def num_used_bytes(control: Control) -> int:
    """Memory of all tables, without the room behind them that nothing has been written to."""
    num_words: int = sum(map(mul, control[CAPACITY : CAPACITY + NUM_TABLES].tolist(), _row_widths(control)))
    return 4 * num_words


def grown(arena: Arena, control: Control) -> Arena:
    """An arena in which the table that control[FULL] names has twice the rows, and so have others that are nearly as
    full: a larger one, or the same where that has the room. `control` is updated in place.

    Hash tables that have to grow with them come out empty and must be filled again (`rebuild_slots`).
    Raises ConstraintTooLarge where the tables would pass MAX_ARENA_BYTES.
    """
    table = int(control[FULL]) - 1
    control[FULL] = 0
    before: list[int] = control[CAPACITY : CAPACITY + NUM_TABLES].tolist()
    counts: list[int] = control[COUNT : COUNT + NUM_TABLES].tolist()
    widths = _row_widths(control)
    capacities = _doubled(before, [table])
    num_bytes = 4 * sum(map(mul, capacities, widths))
    if num_bytes > MAX_ARENA_BYTES:
        raise ConstraintTooLarge(
            f"the constraint's tables would take {num_bytes} bytes, the bound is {MAX_ARENA_BYTES}"
        )
    if table in _GROWING_TOGETHER:
        # Others that are more than half full would be next, each with as much to be moved.
        more = [other for other in _GROWING_TOGETHER if other != table and 2 * counts[other] > before[other]]
        larger = _doubled(capacities, more)
        if 4 * sum(map(mul, larger, widths)) <= MAX_ARENA_BYTES:
            capacities = larger
    return _lay_out(arena, control, capacities, before, counts, widths)


def _doubled(capacities: list[int], tables: list[int]) -> list[int]:
    """The capacities with twice the rows in some tables, and what goes with them."""
    capacities = capacities.copy()
    for table in tables:
        capacities[table] *= 2
        if table in _SLOT_TABLES:
            capacities[_SLOT_TABLES[table]] = _SLOTS_PER_ROW[table] * capacities[table]
        if table == CONFIGURATIONS:
            capacities[NEXT] = capacities[table]
    return capacities


def _row_widths(control: Control) -> list[int]:
    widths = ROW_WIDTHS.copy()
    widths[NEXT] = int(control[NUM_CLASSES])
    return widths


def _lay_out(
    old: Arena, control: Control, capacities: list[int], before: list[int], counts: list[int], widths: list[int]
) -> Arena:
    """The arena with these capacities: `old` where that is long enough, else a new one with room to grow.

    before, counts: what the tables have had room for so far, and hold.
    """
    sizes = list(map(mul, capacities, widths))
    bases = [0] * NUM_TABLES
    num_words = 0
    for table in _ORDER:
        bases[table] = num_words
        num_words += sizes[table]
    old_bases = control[:NUM_TABLES].tolist()
    arena = old
    if num_words > len(old):
        num_fixed = bases[_GROWING[0]]
        # What is not written to takes no memory yet, and need not be copied when a table grows into it.
        arena = np.empty(num_words + max(_ROOM * (num_words - num_fixed), num_fixed), np.int32)
        if len(old):
            arena[:num_fixed] = old[:num_fixed]
        # A row of NEXT, the last table, is written as a whole when its configuration is.
        arena[num_fixed : bases[NEXT]] = 0
    # From the last table to the first, because in the same arena each moves further back, if at all.
    for table in reversed(_GROWING) if len(old) else ():
        base, size = bases[table], sizes[table]
        old_base, kept = old_bases[table], before[table] * widths[table]
        if arena is old and base == old_base and size == kept:
            continue
        if size != kept and table in _SLOTS:
            kept = 0
        elif table in _COUNTED_BY:
            kept = counts[_COUNTED_BY[table]] * widths[table]
        if base != old_base or arena is not old:
            # NumPy would copy what overlaps to a third place first.
            arena.data[base : base + kept] = old.data[old_base : old_base + kept]
        if arena is old and table != NEXT:
            arena[base + kept : base + size] = 0
    control[:NUM_TABLES] = bases
    control[CAPACITY : CAPACITY + NUM_TABLES] = capacities
    return arena
