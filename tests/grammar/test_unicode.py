"""Code point sets against Python's own sets, and their UTF-8 forms against Python's own encoder."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from infernix.grammar.ir import MAX_CODE_POINT, CharacterClass
from infernix.grammar.unicode import (
    ByteRanges,
    CodePointRange,
    character_class,
    complement_ranges,
    intersect_ranges,
    normalize_ranges,
    utf8_sequences,
)

# Both sides of every border of the encoding, where splitting goes wrong if it does.
BORDERS = (0, 0x3F, 0x40, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000)
CODE_POINTS = st.one_of(st.sampled_from((*BORDERS, 0xD800, 0xDFFF, MAX_CODE_POINT)), st.integers(0, MAX_CODE_POINT))
RANGES = st.lists(st.tuples(CODE_POINTS, CODE_POINTS), max_size=5)
SMALL_RANGES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=5)


def members(ranges: list[CodePointRange] | tuple[CodePointRange, ...], stop: int = 20) -> set[int]:
    return {point for point in range(stop) if any(low <= point <= high for low, high in ranges)}


def is_normal(ranges: tuple[CodePointRange, ...]) -> bool:
    return all(low <= high for low, high in ranges) and all(
        before[1] + 1 < after[0] for before, after in itertools.pairwise(ranges)
    )


def contains(ranges: tuple[CodePointRange, ...], point: int) -> bool:
    return any(low <= point <= high for low, high in ranges)


@given(SMALL_RANGES)
def test_normal_form_keeps_the_set(ranges: list[CodePointRange]) -> None:
    normal = normalize_ranges(ranges)
    assert is_normal(normal)
    assert members(normal) == members(ranges)


def test_normal_form_joins_neighbours_and_drops_empty_ranges() -> None:
    assert normalize_ranges([(5, 6), (9, 9), (7, 8), (3, 2), (1, 1)]) == ((1, 1), (5, 9))


@given(SMALL_RANGES)
def test_complement_is_everything_else(ranges: list[CodePointRange]) -> None:
    complement = complement_ranges(ranges)
    assert is_normal(complement)
    assert members(complement) == set(range(20)) - members(ranges)
    assert contains(complement, MAX_CODE_POINT)
    assert complement_ranges(complement) == normalize_ranges(ranges)


def test_complement_of_everything_and_nothing() -> None:
    assert complement_ranges([]) == ((0, MAX_CODE_POINT),)
    assert complement_ranges([(0, MAX_CODE_POINT)]) == ()
    assert complement_ranges([(1, MAX_CODE_POINT)]) == ((0, 0),)
    assert complement_ranges([(0, MAX_CODE_POINT - 1)]) == ((MAX_CODE_POINT, MAX_CODE_POINT),)


@given(SMALL_RANGES, SMALL_RANGES)
def test_intersection_is_what_both_have(left: list[CodePointRange], right: list[CodePointRange]) -> None:
    both = intersect_ranges(left, right)
    assert is_normal(both)
    assert members(both) == members(left) & members(right)


@given(RANGES, CODE_POINTS)
def test_class_and_negated_class_share_out_the_scalar_values(ranges: list[CodePointRange], point: int) -> None:
    is_listed = any(low <= point <= high for low, high in ranges)
    is_surrogate = 0xD800 <= point <= 0xDFFF
    plain, negated = character_class(ranges), character_class(ranges, negated=True)
    assert is_normal(plain.ranges)
    assert is_normal(negated.ranges)
    assert contains(plain.ranges, point) == (is_listed and not is_surrogate)
    assert contains(negated.ranges, point) == (not is_listed and not is_surrogate)


def test_surrogates_are_in_no_class() -> None:
    assert character_class([(0xD800, 0xDFFF)]) == CharacterClass(())
    assert character_class([(0xD000, 0xE000)]).ranges == ((0xD000, 0xD7FF), (0xE000, 0xE000))
    assert character_class([], negated=True).ranges == ((0, 0xD7FF), (0xE000, MAX_CODE_POINT))


def test_all_scalar_values_are_the_well_formed_byte_sequences_of_the_standard() -> None:
    # The Unicode Standard, table 3-7.
    tail = (0x80, 0xBF)
    assert list(utf8_sequences([(0, MAX_CODE_POINT)])) == [
        ((0x00, 0x7F),),
        ((0xC2, 0xDF), tail),
        ((0xE0, 0xE0), (0xA0, 0xBF), tail),
        ((0xE1, 0xEC), tail, tail),
        ((0xED, 0xED), (0x80, 0x9F), tail),
        ((0xEE, 0xEF), tail, tail),
        ((0xF0, 0xF0), (0x90, 0xBF), tail, tail),
        ((0xF1, 0xF3), tail, tail, tail),
        ((0xF4, 0xF4), (0x80, 0x8F), tail, tail),
    ]


def spelled(sequence: ByteRanges) -> set[bytes]:
    """Every byte string of one sequence."""
    return {bytes(data) for data in itertools.product(*(range(low, high + 1) for low, high in sequence))}


@given(st.sampled_from(BORDERS), st.integers(-200, 200), st.integers(0, 5000))
@example(0xD7FF, -100, 0x900)  # over all the surrogates
@example(0x80, 1, 0x1000)  # one past a border
@example(0x800, 0, 0xFFE - 0x800)  # one short of a border
def test_sequences_spell_exactly_the_encodings(border: int, offset: int, width: int) -> None:
    low = max(0, border + offset)
    high = min(low + width, MAX_CODE_POINT)
    expected = {chr(point).encode() for point in range(low, high + 1) if not 0xD800 <= point <= 0xDFFF}
    sequences = list(utf8_sequences([(low, high)]))
    assert set().union(*map(spelled, sequences)) == expected
    assert sum(len(spelled(sequence)) for sequence in sequences) == len(expected)


@given(RANGES, CODE_POINTS)
def test_each_scalar_value_has_one_sequence_or_none(ranges: list[CodePointRange], point: int) -> None:
    sequences = list(utf8_sequences(ranges))
    num_spelled = sum(math.prod(high - low + 1 for low, high in sequence) for sequence in sequences)
    assert num_spelled == sum(high - low + 1 for low, high in character_class(ranges).ranges)
    encoding = chr(point).encode("utf-8", "surrogatepass")
    matching = [
        sequence
        for sequence in sequences
        if len(sequence) == len(encoding)
        and all(low <= byte <= high for byte, (low, high) in zip(encoding, sequence, strict=True))
    ]
    assert len(matching) == contains(character_class(ranges).ranges, point)


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([], []),
        ([(0xD800, 0xDFFF)], []),
        ([(0x41, 0x41), (0x43, 0x43)], [((0x41, 0x41),), ((0x43, 0x43),)]),
        ([(0xE9, 0xE9)], [((0xC3, 0xC3), (0xA9, 0xA9))]),
        ([(0x7F, 0x80)], [((0x7F, 0x7F),), ((0xC2, 0xC2), (0x80, 0x80))]),
        ([(0x4E00, 0x9FFF)], [((0xE4, 0xE4), (0xB8, 0xBF), (0x80, 0xBF)), ((0xE5, 0xE9), (0x80, 0xBF), (0x80, 0xBF))]),
    ],
)
def test_known_sequences(ranges: list[CodePointRange], expected: list[ByteRanges]) -> None:
    assert list(utf8_sequences(ranges)) == expected
