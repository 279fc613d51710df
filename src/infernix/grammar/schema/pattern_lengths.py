"""A pattern and a length together, without an automaton: the length becomes the count of a repetition.

In `[a-z][a-z0-9-]*` only one item has lengths of many kinds, and it repeats single characters. A string of at most 63
of them is `[a-z][a-z0-9-]{0,62}`, which costs the same for any bound, whereas an automaton counts by its states.
"""

from __future__ import annotations

from collections.abc import Sequence

from infernix.grammar import ir
from infernix.grammar.character_nfa import parts_of, postorder
from infernix.grammar.schema.patterns import Items

MAX_VARIANTS = 16
"""An alternative is replaced by up to this many, one for each length that its other items have together."""


def length_range(items: Items) -> tuple[int, int | None]:
    """The smallest and the largest number of characters of the texts of `items` in a row (None: no largest)."""
    low, high = 0, 0
    unbounded = False
    for item in items:
        item_low, item_high = _length_range(item)
        low += item_low
        unbounded = unbounded or item_high is None
        high += item_high or 0
    return low, None if unbounded else high


def _length_range(root: ir.Expression) -> tuple[int, int | None]:
    found: dict[int, tuple[int, int | None]] = {}
    for node in postorder(root):
        parts = [found[id(part)] for part in parts_of(node)]
        highs = [high for _, high in parts if high is not None]
        unbounded = len(highs) < len(parts)
        if isinstance(node, ir.Literal):
            length = len(node.data.decode("utf-8"))
            found[id(node)] = length, length
        elif isinstance(node, ir.Sequence):
            found[id(node)] = sum(low for low, _ in parts), None if unbounded else sum(highs)
        elif isinstance(node, ir.Choice):
            found[id(node)] = min(low for low, _ in parts), None if unbounded else max(highs)
        elif isinstance(node, ir.Repeat):
            low, high = parts[0]
            times = node.maximum
            largest = None if times is None or high is None else high * times
            # Nothing, however often, is nothing.
            found[id(node)] = low * node.minimum, 0 if high == 0 or times == 0 else largest
        else:
            found[id(node)] = 1, 1
    return found[id(root)]


def with_length(alternatives: Sequence[Items], minimum: int, maximum: int | None) -> list[Items] | None:
    """The alternatives with `minimum` to `maximum` characters (None: no maximum); None where that needs an automaton.

    An empty list says that no text has such a length.
    """
    result: list[Items] = []
    for items in alternatives:
        low, high = length_range(items)
        if low >= minimum and (maximum is None or (high is not None and high <= maximum)):
            result.append(items)
        elif (maximum is None or low <= maximum) and (high is None or high >= minimum):
            bounded = _bounded(items, minimum, maximum)
            if bounded is None:
                return None
            result += bounded
    return result


def _bounded(items: Items, minimum: int, maximum: int | None) -> list[Items] | None:
    # The repetition that takes up the length is the one with the most lengths of its own.
    ranges = [_length_range(item) for item in items]
    place = max(range(len(items)), key=lambda i: float("inf") if (top := ranges[i][1]) is None else top - ranges[i][0])
    repeat = items[place]
    if not isinstance(repeat, ir.Repeat) or not isinstance(repeat.body, ir.CharacterClass):
        return None
    # (number of characters of the other items, all items), item by item.
    variants: list[tuple[int, Items]] = [(0, ())]
    for index, item in enumerate(items):
        by_length = {0: item} if index == place else _by_length(item)
        if by_length is None or len(variants) * len(by_length) > MAX_VARIANTS:
            return None
        variants = [
            (length + item_length, (*before, variant))
            for length, before in variants
            for item_length, variant in by_length.items()
        ]
    result: list[Items] = []
    for length, variant in variants:
        low = max(repeat.minimum, minimum - length)
        highs = [high for high in (repeat.maximum, None if maximum is None else maximum - length) if high is not None]
        if not highs or low <= min(highs):
            counted = ir.Repeat(repeat.body, low, min(highs, default=None))
            result.append((*variant[:place], counted, *variant[place + 1 :]))
    return result


def _by_length(root: ir.Expression) -> dict[int, ir.Expression] | None:
    """The texts of `root` by their number of characters; None where there are more than MAX_VARIANTS such numbers."""
    found: dict[int, dict[int, ir.Expression] | None] = {}
    for node in postorder(root):
        parts = [found[id(part)] for part in parts_of(node)]
        known = [part for part in parts if part is not None]
        by_length: dict[int, list[ir.Expression]] | None = None
        if len(known) < len(parts):
            pass
        elif isinstance(node, ir.Literal):
            by_length = {len(node.data.decode("utf-8")): [node]}
        elif isinstance(node, ir.Sequence):
            by_length = _sequences_by_length(known)
        elif isinstance(node, ir.Choice):
            by_length = _options_by_length(known)
        elif isinstance(node, ir.Repeat):
            by_length = _repeats_by_length(node, known[0])
        else:
            by_length = {1: [node]}
        if by_length is None or len(by_length) > MAX_VARIANTS:
            found[id(node)] = None
        else:
            found[id(node)] = {length: ir.choice(*options) for length, options in by_length.items()}
    return found[id(root)]


def _options_by_length(parts: list[dict[int, ir.Expression]]) -> dict[int, list[ir.Expression]]:
    by_length: dict[int, list[ir.Expression]] = {}
    for part in parts:
        for length, option in part.items():
            by_length.setdefault(length, []).append(option)
    return by_length


def _sequences_by_length(parts: list[dict[int, ir.Expression]]) -> dict[int, list[ir.Expression]] | None:
    variants: list[tuple[int, Items]] = [(0, ())]
    for part in parts:
        if len(variants) * len(part) > MAX_VARIANTS:
            return None
        variants = [(n + added, (*items, item)) for n, items in variants for added, item in part.items()]
    by_length: dict[int, list[ir.Expression]] = {}
    for length, items in variants:
        by_length.setdefault(length, []).append(ir.sequence(*items))
    return by_length


def _repeats_by_length(repeat: ir.Repeat, body: dict[int, ir.Expression]) -> dict[int, list[ir.Expression]] | None:
    if repeat.maximum == 1:
        by_length = {length: [option] for length, option in body.items()}
        if repeat.minimum == 0:
            by_length.setdefault(0, []).append(ir.EMPTY)
        return by_length
    if len(body) != 1 or repeat.maximum is None or repeat.maximum - repeat.minimum >= MAX_VARIANTS:
        return None
    ((length, _),) = body.items()
    return {
        length * times: [ir.Repeat(repeat.body, times, times)] for times in range(repeat.minimum, repeat.maximum + 1)
    }
