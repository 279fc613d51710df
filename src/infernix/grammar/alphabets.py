"""The characters as a few classes that an automaton does not tell apart any further."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from infernix.grammar.ir import MAX_CODE_POINT, SURROGATES
from infernix.grammar.unicode import CodePointRange

CodePointRanges: TypeAlias = tuple[CodePointRange, ...]

SCALAR_VALUES: CodePointRanges = ((0, SURROGATES[0] - 1), (SURROGATES[1] + 1, MAX_CODE_POINT))
"""Every Unicode scalar value."""

_NO_CLASS = -1


@dataclass(frozen=True, slots=True)
class Alphabet:
    """A partition of the scalar values.

    `classes[c]` are the sorted, disjoint ranges of class c. From `begins[i]` up to the next begin all code points
    are of class `owners[i]`, or surrogates.
    """

    classes: tuple[CodePointRanges, ...]
    begins: tuple[int, ...]
    owners: tuple[int, ...]

    def class_of(self, code_point: int) -> int:
        """The class of a scalar value."""
        return self.owners[bisect_right(self.begins, code_point) - 1]

    def classes_in(self, ranges: CodePointRanges) -> tuple[int, ...]:
        """The classes that make up `ranges`, one of the sets that the alphabet was made from; ascending."""
        found: set[int] = set()
        for low, high in ranges:
            first, last = bisect_right(self.begins, low) - 1, bisect_right(self.begins, high)
            found.update(self.owners[first:last])
        return tuple(sorted(found - {_NO_CLASS}))


def alphabet_of(sets: Iterable[CodePointRanges]) -> Alphabet:
    """The coarsest partition that has every one of `sets` as a union of classes."""
    return _alphabet_of(frozenset(sets))


@lru_cache(maxsize=256)
def _alphabet_of(sets: frozenset[CodePointRanges]) -> Alphabet:
    # Which sets, as bits, begin or end to hold at a code point.
    changes: dict[int, int] = {}
    for number, ranges in enumerate([SCALAR_VALUES, *sorted(sets)]):
        for low, high in ranges:
            changes[low] = changes.get(low, 0) ^ 1 << number
            changes[high + 1] = changes.get(high + 1, 0) ^ 1 << number
    begins: list[int] = []
    owners: list[int] = []
    number_of: dict[int, int] = {}
    classes: list[list[CodePointRange]] = []
    points = sorted(changes)
    holding = 0
    for point, following in zip(points, [*points[1:], MAX_CODE_POINT + 1], strict=True):
        holding ^= changes[point]
        begins.append(point)
        # Bit 0 is missing for surrogates and beyond the last character.
        if not holding & 1:
            owners.append(_NO_CLASS)
            continue
        number = number_of.setdefault(holding, len(classes))
        if number == len(classes):
            classes.append([])
        classes[number].append((point, following - 1))
        owners.append(number)
    return Alphabet(tuple(map(tuple, classes)), tuple(begins), tuple(owners))


@lru_cache(maxsize=256)
def common_refinement(left: Alphabet, right: Alphabet) -> tuple[Alphabet, tuple[int, ...], tuple[int, ...]]:
    """The coarsest alphabet finer than both, and by its classes the one of `left` and the one of `right`."""
    if left == right:
        same = tuple(range(len(left.classes)))
        return left, same, same
    refined = alphabet_of([*left.classes, *right.classes])
    firsts = [ranges[0][0] for ranges in refined.classes]
    return refined, tuple(map(left.class_of, firsts)), tuple(map(right.class_of, firsts))
