"""Tables in one block of memory: what stands in them when one grows, in place or elsewhere."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from infernix.errors import ConstraintTooLarge
from infernix.matching import arena

COUNTED = (arena.CONFIGURATIONS, arena.ITEMS, arena.FRAMES, arena.PAIRS)
SLOTS = {arena.CONFIGURATIONS: arena.CONFIGURATION_SLOTS, arena.FRAMES: arena.FRAME_SLOTS}
NUM_CLASSES = 5


class Tables:
    """An arena beside plain lists of what was written to it."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        content = {arena.DELTA: np.arange(40, dtype=np.int32), arena.RULES: np.arange(6, dtype=np.int32) + 100}
        self.arena, self.control = arena.new_arena(content, 8, NUM_CLASSES)
        self.fixed = {table: values.tolist() for table, values in content.items()}
        self.written: dict[int, list[int]] = {table: [] for table in (*COUNTED, arena.NEXT)}

    def width(self, table: int) -> int:
        return NUM_CLASSES if table == arena.NEXT else int(arena.ROW_WIDTHS[table])

    def capacity(self, table: int) -> int:
        return int(self.control[arena.CAPACITY + table])

    def part(self, table: int, num_words: int) -> list[int]:
        begin = int(self.control[table])
        return self.arena[begin : begin + num_words].tolist()

    def add_rows(self, table: int, num_rows: int) -> None:
        for kind in (table, arena.NEXT) if table == arena.CONFIGURATIONS else (table,):
            values = [self._rng.randrange(1, 1000) for _ in range(num_rows * self.width(kind))]
            begin = int(self.control[kind]) + len(self.written[kind])
            self.arena[begin : begin + len(values)] = values
            self.written[kind] += values
        self.control[arena.COUNT + table] += num_rows

    def grow(self, table: int) -> None:
        self.control[arena.FULL] = table + 1
        self.arena = arena.grown(self.arena, self.control)

    def check(self) -> None:
        ends = sorted(
            (int(self.control[table]), int(self.control[table]) + self.capacity(table) * self.width(table))
            for table in range(arena.NUM_TABLES)
        )
        assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))
        assert ends[-1][1] <= len(self.arena)
        assert arena.num_used_bytes(self.control) == 4 * ends[-1][1]
        for table, values in self.fixed.items():
            assert self.part(table, len(values)) == values
        for table, values in self.written.items():
            assert self.part(table, len(values)) == values
            if table != arena.NEXT:  # whose rows are written as a whole
                size = self.capacity(table) * self.width(table)
                assert not any(self.part(table, size)[len(values) :])


@pytest.mark.parametrize("seed", range(20))
def test_growing_keeps_what_is_there_and_leaves_the_rest_empty(seed: int) -> None:
    rng = Random(seed)
    tables = Tables(rng)
    blocks = {id(tables.arena)}
    for _ in range(14):
        table = rng.choice(COUNTED)
        if rng.random() < 0.6:
            free = tables.capacity(table) - int(tables.control[arena.COUNT + table])
            tables.add_rows(table, rng.randint(0, free))
        capacity = tables.capacity(table)
        if capacity * tables.width(table) < 1 << 19:
            tables.grow(table)
            assert tables.capacity(table) == 2 * capacity
        blocks.add(id(tables.arena))
        tables.check()
    assert len(blocks) > 1


def test_hash_tables_grow_with_their_tables_and_come_out_empty() -> None:
    tables = Tables(Random(0))
    for slots in SLOTS.values():
        begin = int(tables.control[slots])
        tables.arena[begin : begin + tables.capacity(slots)] = 7
    tables.grow(arena.ITEMS)
    for slots in SLOTS.values():
        assert set(tables.part(slots, tables.capacity(slots))) == {7}
    for table, slots in SLOTS.items():
        capacity = tables.capacity(slots)
        tables.grow(table)
        assert tables.capacity(slots) == 2 * capacity
        assert not any(tables.part(slots, tables.capacity(slots)))
    tables.check()


@pytest.mark.parametrize("is_bound_near", [False, True])
def test_tables_that_are_more_than_half_full_grow_as_well(is_bound_near: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the bound is near: then only what has to."""
    tables = Tables(Random(0))
    for table, share in ((arena.FRAMES, 0.5), (arena.ITEMS, 0.6), (arena.PAIRS, 1)):
        tables.add_rows(table, int(share * tables.capacity(table)))
    before = {table: tables.capacity(table) for table in (*COUNTED, *SLOTS.values(), arena.NEXT, arena.WORK)}
    has_to_grow = {arena.CONFIGURATIONS, arena.NEXT, arena.CONFIGURATION_SLOTS}
    if is_bound_near:
        more_bytes = 4 * sum(before[table] * tables.width(table) for table in has_to_grow)
        monkeypatch.setattr(arena, "MAX_ARENA_BYTES", arena.num_used_bytes(tables.control) + more_bytes)
    tables.grow(arena.CONFIGURATIONS)
    grown = {table for table, capacity in before.items() if tables.capacity(table) == 2 * capacity}
    assert grown == has_to_grow | (set() if is_bound_near else {arena.ITEMS, arena.PAIRS})
    tables.check()


def test_the_first_growths_move_nothing_of_the_network() -> None:
    tables = Tables(Random(0))
    block = tables.arena
    for table in (arena.CONFIGURATIONS, arena.ITEMS, arena.FRAMES):
        tables.grow(table)
    assert tables.arena is block


def test_tables_beyond_the_bound() -> None:
    tables = Tables(Random(0))
    tables.control[arena.CAPACITY + arena.CONFIGURATIONS] = arena.MAX_ARENA_BYTES
    before = tables.control.copy()
    with pytest.raises(ConstraintTooLarge, match=str(arena.MAX_ARENA_BYTES)):
        tables.grow(arena.CONFIGURATIONS)
    before[arena.FULL] = 0
    assert (tables.control == before).all()
