"""How much work one schema may cause. A schema beyond a bound is unsupported, and the message names the bound."""

from __future__ import annotations

from dataclasses import dataclass

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.schema.pointers import Place

MAX_MERGES = 16_384
"""Intersections of two schemas in one reduction."""

MAX_REDUCTION_STEPS = 2**20
"""Members, elements, branches and values that one reduction looks at, those of intersections each time."""


@dataclass(slots=True)
class Budget:
    """Counts up; every method raises UnsupportedJsonSchema at `place` when its bound is passed."""

    num_merges: int = 0
    num_steps: int = 0

    def merge(self, count: int, place: Place) -> None:
        """`count` more intersections."""
        self.num_merges += count
        if self.num_merges > MAX_MERGES:
            raise UnsupportedJsonSchema(
                f"the schema takes more than MAX_MERGES = {MAX_MERGES} intersections", place.pointer
            )

    def spend(self, count: int, place: Place) -> None:
        """`count` more steps."""
        self.num_steps += count
        if self.num_steps > MAX_REDUCTION_STEPS:
            raise UnsupportedJsonSchema(
                f"the schema takes more than MAX_REDUCTION_STEPS = {MAX_REDUCTION_STEPS} steps to reduce", place.pointer
            )

    @property
    def is_exhausted(self) -> bool:
        """Whether a bound has been passed."""
        return self.num_merges > MAX_MERGES or self.num_steps > MAX_REDUCTION_STEPS
