"""Counter-based random numbers: each draw is a pure function of what it is for, so nothing carries a stream along.

The mixer is splitmix64 (S. Vigna, 2015, public domain; G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number
generators, OOPSLA 2014). The result keeps 53 bits, all that a float64 in [0, 1) has room for.
"""

from __future__ import annotations

from enum import IntEnum

_MASK_64 = (1 << 64) - 1


class Purpose(IntEnum):
    """What a draw is for; two purposes at one position are independent."""

    PREFILL = 0
    DECODE = 1
    SPECULATIVE_ACCEPT = 2
    SPECULATIVE_CORRECTION = 3
    SPECULATIVE_BONUS = 4
    PROPOSAL = 5


def splitmix64(state: int) -> int:
    """The output of splitmix64 whose state was `state` before the step; both are unsigned 64-bit integers."""
    mixed = (state + 0x9E3779B97F4A7C15) & _MASK_64
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return mixed ^ (mixed >> 31)


def uniform(seed: int, position: int, purpose: Purpose, sub: int = 0) -> float:
    """A number in [0, 1) for the token at the logical `position` (0 is the first prompt token) of a sequence.

    `seed` is an unsigned 64-bit integer. `sub` tells draws of one purpose at one position apart.
    """
    key = splitmix64((seed ^ (position * 0xD1B54A32D192ED03)) & _MASK_64)
    key = splitmix64((key ^ (purpose << 21) ^ (sub * 0x2545F4914F6CDD1D)) & _MASK_64)
    return (key >> 11) * 2.0**-53
