"""The kernel behind mask rows: the rows of a configuration and of those along some drafts, at one go.

To call a kernel, and to find out what to call it with, takes as long as most rows. So it describes a configuration,
takes the way that was chosen for rows of its kind, makes the row, and goes on with the next draft.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.addresses import (
    int32_at,
    int32_rows_at,
    int64_at,
    int64_rows_at,
    uint8_at,
    uint32_at,
    uint32_rows_at,
)
from infernix.matching.arena import (
    CONFIGURATION_WIDTH,
    CONFIGURATIONS,
    DEAD,
    FULL,
    HAS_ROW,
    LIMIT,
    MAX_TOKEN_BYTES,
    STOPPED,
    Arena,
    Control,
)
from infernix.matching.beginnings import CHARACTER_STEPS
from infernix.matching.forest import NUM_COLUMNS
from infernix.matching.jit import inner, kernel
from infernix.matching.loop_entering import fill_entered, find_entered_loops
from infernix.matching.loop_walk import differ_in_far_count
from infernix.matching.plans import (
    END_PLACES,
    END_WORDS,
    HAS_WORDS,
    IS_ENTERED,
    MAX_OTHERS,
    NO_WAY,
    NUM_END_WORDS,
    NUM_OTHERS,
    NUM_TEXT_BYTES,
    NUM_TOKENS,
    OTHERS,
    OTHERS_OF,
    REMEMBERS_OTHERS,
    TEXT_BEGINS,
    TEXT_BYTES,
    WAYS,
    Plan,
    chosen_way,
)
from infernix.matching.row_buffer import (
    FOUND,
    FOUND_WIDTH,
    LIST_LENGTH,
    MADE_WORDS_ROOM,
    MAX_CHANGED,
    MAX_DEPTH,
    MAX_MADE_ROWS,
    NUM_MADE_WORDS,
    NUM_WORDS,
    PATH,
    PLACES,
    SET,
    WORDS,
    add_words,
    clear_bits,
    empty_buffer,
    finish_row,
    note_word,
)
from infernix.matching.row_filling import fill_by_position
from infernix.matching.row_kinds import (
    COUNTED_LOOP,
    EXACT_STRETCH,
    LOOP_ENTERED,
    MIN_RUN_LEFT,
    RUN,
    SOMETHING_ELSE,
    SPACE_FOLLOWS,
    describe,
    is_spaced,
)
from infernix.matching.stepping import step
from infernix.matching.vocabulary_walk import DONE, atoms_of_set
from infernix.matching.ways import (
    BASE,
    BASE_HASH,
    BY_LENGTH,
    END_BY_LENGTH,
    KIND,
    MAX_CHARACTERS,
    MAX_LEFT,
    MAX_LENGTH,
    MIN_LEFT,
    NODE_BYTES,
    NODES,
    NUM_BY_LENGTH,
    NUM_IDS,
    NUM_NODES,
    NUM_PARTS,
    PARTS,
    REACH,
    SUFFIX_BYTES,
    TOKEN_IDS,
    WAY_WIDTH,
)

# Columns of what is found out about a row.
STATUS = 0
CONFIGURATION = 1
WAY = 2
NUM_CHANGED = 3  # as `finish_row` says
DIGEST = 4
BEGIN = 5  # where its words begin among those made
DESCRIPTION = 6  # nine columns: see `describe`
CLAMPED = DESCRIPTION
# What the choice of a way depends on, as a number, or NO_KIND: for about as many iterations; altogether; and of the
# loops that the configuration enters.
KIND_OF_COUNT = 15
KIND_OF_ROW = 16
KIND_OF_ENTRY = 17
# These loops, and their atoms, as bits, or NOT_ASKED.
LOOP = 18
SPACED_LOOP = 19
ENTRY_ATOMS = 20
# What became of it.
MADE = 0
KNOWN = 1  # made before
UNDECIDED = 2  # no way was chosen for rows of this kind
NOT_OF_KIND = 3  # the way is not one to this row
ENDED = 4  # nothing follows: the draft before is not legal, or no text
# Bits of a kind: set, kind (two bits), iterations, set, characters, whether more has to be known of the configuration.
_LOOP_SET_BITS = 19
_RUN_SET_BITS = 20
_COUNT_BITS = 10
# Instead of a figure: about as many.
_FIRST_BUCKET = (1 << _COUNT_BITS) - 3
_MIDDLE_STEP, _SMALLEST_STEP = CHARACTER_STEPS[1:]
NO_KIND = -1
NOT_ASKED = -1
_ENTRY_BIT = 1 << 62


@inner
def _asks(A: Arena, C: Control, clamped: int, kind: int, follow: int) -> bool:
    """Whether the configuration may enter a loop."""
    return follow != 0 and (follow != SPACE_FOLLOWS or not is_spaced(A, C, clamped, kind))


@inner
def _kind_of_row(A: Arena, C: Control, found: Plan, asks: bool, num_left: int, run_left: int) -> int:
    """The choice of a way depends on nothing else; num_left, run_left: how many iterations and characters are left."""
    kind, loop_set = int(found[DESCRIPTION + 4]), int(found[DESCRIPTION + 8])
    run_set = int(A[C[CONFIGURATIONS] + CONFIGURATION_WIDTH * found[CLAMPED] + 7])
    if loop_set >> _LOOP_SET_BITS != 0 or run_set >> _RUN_SET_BITS != 0 or C[MAX_TOKEN_BYTES] >= _FIRST_BUCKET - 1:
        return NO_KIND
    key = (loop_set << 2) | kind
    key = (key << _COUNT_BITS) | num_left
    key = (key << _RUN_SET_BITS) | run_set
    key = (key << _COUNT_BITS) | run_left
    return int((key << 1) | int(asks))


@inner
def _bucket(num_left: int) -> int:
    """Figures that are treated alike mostly."""
    return _FIRST_BUCKET + int(num_left > _SMALLEST_STEP) + int(num_left > _MIDDLE_STEP)


@inner
def _choose(A: Arena, C: Control, plan: Plan, found: Plan) -> int:
    """The number of the way chosen for a row, or NO_WAY; also where it cannot go on."""
    clamped, kind, follow = int(found[CLAMPED]), int(found[DESCRIPTION + 4]), int(found[DESCRIPTION + 7])
    asks = _asks(A, C, clamped, kind, follow)
    found[ENTRY_ATOMS] = NOT_ASKED
    # No token is longer.
    longest = C[MAX_TOKEN_BYTES] + 1
    num_left, run_left = min(int(found[DESCRIPTION + 3]), longest), min(int(found[DESCRIPTION + 6]), longest)
    found[KIND_OF_ROW] = _kind_of_row(A, C, found, asks, num_left, run_left)
    found[KIND_OF_COUNT] = NO_KIND
    if found[KIND_OF_ROW] == NO_KIND:
        return NO_WAY
    if kind in (COUNTED_LOOP, EXACT_STRETCH):
        found[KIND_OF_COUNT] = _kind_of_row(A, C, found, asks, _bucket(num_left), run_left)
    elif kind == SOMETHING_ELSE and run_left >= MIN_RUN_LEFT:
        found[KIND_OF_COUNT] = _kind_of_row(A, C, found, asks, num_left, _bucket(run_left))
    number = _chosen(plan, found)
    if asks and (number == IS_ENTERED or (number == NO_WAY and kind == SOMETHING_ELSE)):
        loop, spaced_loop, loop_set = find_entered_loops(A, C, clamped, follow, plan[HAS_WORDS] != 0)
        if C[FULL] != 0 or C[LIMIT] != 0:
            return NO_WAY
        found[LOOP], found[SPACED_LOOP], found[ENTRY_ATOMS] = loop, spaced_loop, atoms_of_set(A, C, loop_set)
        if loop_set == 0:
            # As if nothing could be entered.
            found[KIND_OF_ROW] -= 1
            found[KIND_OF_COUNT] -= int(found[KIND_OF_COUNT] != NO_KIND)
            return _chosen(plan, found)
        found[KIND_OF_ENTRY] = _ENTRY_BIT | (loop_set << 2) | (int(loop != DEAD) << 1) | int(spaced_loop != DEAD)
        return chosen_way(plan, int(found[KIND_OF_ENTRY]))
    return number


@inner
def _chosen(plan: Plan, found: Plan) -> int:
    """The way chosen for about as many iterations, if it is one for so many; or else for exactly so many."""
    if found[KIND_OF_COUNT] != NO_KIND:
        number = chosen_way(plan, int(found[KIND_OF_COUNT]))
        if number != NO_WAY:
            numbers = plan[WAYS + WAY_WIDTH * number : WAYS + WAY_WIDTH * (number + 1)]
            num_left = int(found[DESCRIPTION + (6 if numbers[KIND] == RUN else 3)])
            if numbers[MIN_LEFT] <= num_left <= numbers[MAX_LEFT]:
                return number
            found[KIND_OF_COUNT] = NO_KIND
    return chosen_way(plan, int(found[KIND_OF_ROW]))


@inner
def _make_row(
    A: Arena,
    C: Control,
    plan: Plan,
    buffer: Plan,
    found: Plan,
    given_way: int,
    loop: int,
    spaced_loop: int,
    added: NDArray[np.uint32],
    added_places: NDArray[np.int64],
) -> None:
    """Makes one row; found: the columns of it, CONFIGURATION being given."""
    configuration = int(found[CONFIGURATION])
    description = describe(A, C, configuration)
    found[STATUS] = STOPPED
    if description[0] == STOPPED:
        return
    clamped = description[0]
    for i in range(len(description)):
        found[DESCRIPTION + i] = description[i]
    has_row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * clamped + HAS_ROW
    number = given_way
    if given_way == NO_WAY:
        if A[has_row] != 0:
            found[STATUS] = KNOWN
            return
        number = _choose(A, C, plan, found)
        if C[FULL] != 0 or C[LIMIT] != 0:
            return
        if number < 0:
            found[STATUS] = UNDECIDED
            return
        loop, spaced_loop = int(found[LOOP]), int(found[SPACED_LOOP])
    found[WAY] = number
    numbers = plan[WAYS + WAY_WIDTH * number : WAYS + WAY_WIDTH * (number + 1)]
    words = uint32_rows_at(buffer[WORDS], 3, buffer[NUM_WORDS])
    places = int64_rows_at(buffer[PLACES], 2, buffer[LIST_LENGTH])
    status = _fill(A, C, plan, buffer, numbers, found, loop, spaced_loop, words, places)
    if status != DONE:
        found[STATUS] = STOPPED if status == STOPPED else NOT_OF_KIND
        return
    add_words(added, added_places, words[SET], places[SET])
    if description[1] != 0:
        num_end_words = plan[NUM_END_WORDS]
        end_words, end_places = uint32_at(plan[END_WORDS], num_end_words), int64_at(plan[END_PLACES], num_end_words)
        add_words(end_words, end_places, words[SET], places[SET])
    found[BEGIN] = buffer[NUM_MADE_WORDS]
    base = uint32_at(numbers[BASE], buffer[NUM_WORDS])
    found[NUM_CHANGED], found[DIGEST] = finish_row(base, int(numbers[BASE_HASH]), words, places, buffer)
    found[STATUS] = MADE
    A[has_row] = 1


@inner
def _fill(
    A: Arena,
    C: Control,
    plan: Plan,
    buffer: Plan,
    numbers: Plan,
    found: Plan,
    loop: int,
    spaced_loop: int,
    words: NDArray[np.uint32],
    places: NDArray[np.int64],
) -> int:
    """Notes what is to be set and cleared in a way's base; DONE, STOPPED, or OTHERS_MOVE as the two functions say.

    numbers: those of the way.
    """
    configuration = int(found[CLAMPED])
    empty_buffer(words, places)
    kind, reach = int(numbers[KIND]), int(numbers[REACH])
    if kind in (COUNTED_LOOP, EXACT_STRETCH, RUN):
        num_left = min(int(found[DESCRIPTION + (6 if kind == RUN else 3)]), int(numbers[MAX_LENGTH]))
        num_taken = int64_at(numbers[NUM_BY_LENGTH], numbers[MAX_LENGTH] + 1)[num_left]
        by_length = int32_at(numbers[BY_LENGTH], numbers[END_BY_LENGTH])
        clear_bits(by_length, num_taken, len(by_length), words, places)
    remembers = kind == COUNTED_LOOP and plan[REMEMBERS_OTHERS] != 0
    if remembers and plan[OTHERS_OF] != DEAD and differ_in_far_count(A, C, configuration, plan[OTHERS_OF], reach):
        for i in range(plan[NUM_OTHERS]):
            place = int(plan[OTHERS + i])
            words[SET, place] = plan[OTHERS + MAX_OTHERS + i]
            note_word(places[SET], place)
        return DONE
    node_bytes = uint8_at(numbers[NODE_BYTES], numbers[NUM_NODES])
    nodes = int32_rows_at(numbers[NODES], numbers[NUM_NODES], NUM_COLUMNS)
    token_ids = int32_at(numbers[TOKEN_IDS], numbers[NUM_IDS])
    parts = int64_rows_at(numbers[PARTS], numbers[NUM_PARTS], 3)
    path = int32_rows_at(buffer[PATH], buffer[MAX_DEPTH], 4)
    if kind == LOOP_ENTERED:
        others = numbers[SUFFIX_BYTES : SUFFIX_BYTES + 5]
        suffix_bytes, suffix_nodes = uint8_at(others[0], others[2]), int32_rows_at(others[1], others[2], NUM_COLUMNS)
        suffix_ids = int32_at(others[3], others[4])
        return fill_entered(
            A,
            C,
            node_bytes,
            nodes,
            token_ids,
            suffix_bytes,
            suffix_nodes,
            suffix_ids,
            parts,
            path,
            configuration,
            loop,
            spaced_loop,
            words,
            places,
        )
    status = fill_by_position(
        A,
        C,
        node_bytes,
        nodes,
        token_ids,
        parts,
        path,
        configuration,
        SOMETHING_ELSE if kind == EXACT_STRETCH else kind,
        int(numbers[MAX_CHARACTERS]),
        reach,
        words[SET],
        places[SET],
    )
    if status == DONE and remembers and differ_in_far_count(A, C, configuration, configuration, reach):
        num_others = int(places[SET, 0])
        if num_others <= MAX_OTHERS and num_others < len(places[SET]):
            for i in range(num_others):
                place = places[SET, i + 1]
                plan[OTHERS + i] = place
                plan[OTHERS + MAX_OTHERS + i] = words[SET, place]
            plan[OTHERS_OF] = configuration
            plan[NUM_OTHERS] = num_others
    return status


@kernel
def make_rows(
    A: Arena,
    C: Control,
    plan: Plan,
    buffer: Plan,
    drafts: NDArray[np.int64],
    first: int,
    configuration: int,
    way: int,
    loop: int,
    spaced_loop: int,
    added: NDArray[np.uint32],
    added_places: NDArray[np.int64],
) -> int:
    """Makes the row of a configuration, and those along drafts as far as it can; what it found out is in the buffer.

    Returns for how many positions, the last of which may be one without a row; or minus one minus the position where
    it stopped, as kernels do, to be called again with this position as `first`, which is -1 otherwise.
    way: that to the first row, whether that is known or not; or NO_WAY for the one that was chosen for its kind. The
    other arguments are for the first row only: loop, spaced_loop: for LOOP_ENTERED; added, added_places: words to be
    set besides.
    """
    found = int64_rows_at(buffer[FOUND], MAX_MADE_ROWS, FOUND_WIDTH)
    text = uint8_at(plan[TEXT_BYTES], plan[NUM_TEXT_BYTES])
    begins = int64_at(plan[TEXT_BEGINS], plan[NUM_TOKENS] + 1)
    position = max(first, 0)
    if first < 0:
        buffer[NUM_MADE_WORDS] = 0
        found[0, CONFIGURATION] = configuration
        found[0, STATUS] = STOPPED
    while True:
        row = found[position]
        if row[STATUS] == STOPPED:
            is_given = position == 0 and way != NO_WAY
            _make_row(A, C, plan, buffer, row, way if is_given else NO_WAY, loop, spaced_loop, added, added_places)
            if row[STATUS] == STOPPED:
                return -1 - position
        is_whole = row[STATUS] == MADE and row[NUM_CHANGED] < 0
        if position == len(drafts) or is_whole or (row[STATUS] != MADE and row[STATUS] != KNOWN):
            return position + 1
        if buffer[NUM_MADE_WORDS] + buffer[MAX_CHANGED] > MADE_WORDS_ROOM:
            return position + 1
        following = int(row[CONFIGURATION])
        token = int(drafts[position])
        if token < 0 or token >= plan[NUM_TOKENS]:
            found[position + 1, STATUS] = ENDED
            return position + 2
        for place in range(begins[token], begins[token + 1]):
            following = step(A, C, following, int(text[place]))
            if C[FULL] != 0 or C[LIMIT] != 0:
                return -1 - position
            if following == DEAD:
                break
        position += 1
        found[position, CONFIGURATION] = following
        found[position, STATUS] = STOPPED
        if following == DEAD or begins[token] == begins[token + 1]:
            found[position, STATUS] = ENDED
            return position + 1
