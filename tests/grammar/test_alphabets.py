"""Partitions of the characters."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from infernix.grammar.alphabets import SCALAR_VALUES, alphabet_of, common_refinement
from infernix.grammar.unicode import CodePointRange, intersect_ranges, normalize_ranges

CODE_POINTS = st.sampled_from(
    [0, 1, 0x41, 0x42, 0x7F, 0x80, 0xD7FE, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFE, 0x10FFFF]
)
RANGES = st.tuples(CODE_POINTS, CODE_POINTS).map(lambda ends: (min(ends), max(ends)))


def _scalar_values(ranges: list[CodePointRange]) -> tuple[CodePointRange, ...]:
    return intersect_ranges(ranges, SCALAR_VALUES)


SETS = st.lists(st.lists(RANGES, min_size=1, max_size=3).map(_scalar_values), max_size=4)


@settings(max_examples=200, deadline=None)
@given(SETS)
def test_classes_are_a_partition_that_every_set_is_made_of(sets: list[tuple[CodePointRange, ...]]) -> None:
    alphabet = alphabet_of(sets)
    every = sorted(range_ for ranges in alphabet.classes for range_ in ranges)
    assert normalize_ranges(every) == SCALAR_VALUES
    assert all(left[1] < right[0] for left, right in pairwise(every))
    for number, ranges in enumerate(alphabet.classes):
        for low, high in ranges:
            assert alphabet.class_of(low) == alphabet.class_of(high) == number
    for ranges in sets:
        classes = alphabet.classes_in(ranges)
        assert normalize_ranges(range_ for number in classes for range_ in alphabet.classes[number]) == ranges
    memberships = [
        tuple(number in alphabet.classes_in(ranges) for ranges in sets) for number in range(len(alphabet.classes))
    ]
    assert len(set(memberships)) == len(memberships), "coarser is possible"


@settings(max_examples=100, deadline=None)
@given(SETS, SETS)
def test_the_refinement_of_two_knows_the_classes_of_both(
    first: list[tuple[CodePointRange, ...]], second: list[tuple[CodePointRange, ...]]
) -> None:
    left, right = alphabet_of(first), alphabet_of(second)
    refined, left_classes, right_classes = common_refinement(left, right)
    for number, ranges in enumerate(refined.classes):
        for code_point in (bound for range_ in ranges for bound in range_):
            assert left.class_of(code_point) == left_classes[number]
            assert right.class_of(code_point) == right_classes[number]
    assert len(refined.classes) == len(set(zip(left_classes, right_classes, strict=True)))
