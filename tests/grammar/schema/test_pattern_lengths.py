"""Lengths that become counts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infernix.grammar import ir
from infernix.grammar.schema.pattern_lengths import MAX_VARIANTS, length_range, with_length
from infernix.grammar.schema.patterns import SearchPattern, read_search_pattern
from support.random_patterns import PATTERNS, texts

TEXTS = texts(5)


@settings(max_examples=300, deadline=None)
@given(PATTERNS, st.integers(0, 4), st.none() | st.integers(0, 5))
def test_the_bounded_alternatives_are_those_strings(text: str, minimum: int, maximum: int | None) -> None:
    pattern = read_search_pattern(text)
    bounded = with_length(pattern.alternatives, minimum, maximum)
    if bounded is None:
        return
    result = SearchPattern(tuple(bounded))
    for candidate in TEXTS:
        fits = minimum <= len(candidate) and (maximum is None or len(candidate) <= maximum)
        is_inside = bool(bounded) and result.automaton.accepts(candidate)
        assert is_inside == (fits and pattern.automaton.accepts(candidate)), candidate


@settings(max_examples=200, deadline=None)
@given(PATTERNS)
def test_length_ranges_enclose_all_lengths(text: str) -> None:
    for items in read_search_pattern(text).alternatives:
        low, high = length_range(items)
        automaton = SearchPattern((items,)).automaton
        lengths = {len(candidate) for candidate in TEXTS if automaton.accepts(candidate)}
        assert all(low <= length and (high is None or length <= high) for length in lengths)
        if low <= 5:
            assert low in lengths


@pytest.mark.parametrize(
    ("text", "minimum", "maximum", "counts"),
    [
        ("^[a-z][a-z0-9-]*$", 0, 63, [(0, 62)]),
        ("^[a-z]{3}-[0-9]+$", 5, 10**6, [(1, 10**6 - 4)]),
        ("^data:(jpg|png|jpeg);[0-9a-z]*$", 0, 32767, [(0, 32758), (0, 32757)]),
        ("^(a|bc)?x[0-9]{2,9}$", 0, 6, [(2, 5), (2, 4), (2, 3)]),
        ("^http", 6, 2000, [(2, 1996)]),
        ("\\.png$", 0, 100, [(0, 96)]),
    ],
)
def test_one_repetition_takes_up_the_length(
    text: str, minimum: int, maximum: int, counts: list[tuple[int, int]]
) -> None:
    bounded = with_length(read_search_pattern(text).alternatives, minimum, maximum)
    assert bounded is not None
    repeats = [item for items in bounded for item in items if isinstance(item, ir.Repeat)]
    found = [(item.minimum, item.maximum) for item in repeats if item.minimum != item.maximum]
    assert sorted(found) == sorted(counts)


@pytest.mark.parametrize("text", ["^[a-z]+-[0-9]+$", "foo", "^(ab)*$", "^(?:[a-z]+-)*x$"])
def test_where_lengths_add_up_in_many_ways_it_takes_an_automaton(text: str) -> None:
    assert with_length(read_search_pattern(text).alternatives, 0, 40) is None


def test_lengths_that_the_pattern_implies_change_nothing() -> None:
    pattern = read_search_pattern("^[0-9]{4}(-[0-9]{2}){0,2}$|^$")
    bounded = with_length(pattern.alternatives, 0, 10)
    assert bounded is not None
    assert all(left is right for left, right in zip(bounded, pattern.alternatives, strict=True))
    assert with_length(pattern.alternatives, 11, None) == []
    assert with_length(pattern.alternatives, 1, None) == [pattern.alternatives[0]]


def test_variants_are_few() -> None:
    few = "(a|bc|def|ghij)"
    assert len(with_length(read_search_pattern(f"^{few}[0-9]*$").alternatives, 0, 99) or []) == 4
    assert len(with_length(read_search_pattern(f"^{few}{few}[0-9]*$").alternatives, 0, 99) or []) <= MAX_VARIANTS
    assert with_length(read_search_pattern(f"^{few * 3}[0-9]*$").alternatives, 0, 99) is None
