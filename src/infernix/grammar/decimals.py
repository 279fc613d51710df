"""Number text as deterministic automata over ASCII bytes: integer ranges, and the text of any JSON number.

Both are built the same way: a transition function over small tuples is explored from the start state, and states
that cannot reach an accepting one are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import TypeAlias, TypeVar

from infernix.grammar.ir import Automaton

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

MAX_SIGNIFICANT_DIGITS = 17
MAX_LEADING_FRACTION_ZEROS = 16
MAX_EXPONENT = 290
MAX_SCIENTIFIC_EXPONENT = 307

_DIGITS = "0123456789"
_NUMBER_ALPHABET = "+-." + _DIGITS + "Ee"

StateT = TypeVar("StateT", bound=Hashable)


def explore(
    start: StateT,
    step: Callable[[StateT, str], StateT | None],
    accepts: Callable[[StateT], bool],
    alphabet: str,
) -> Automaton:
    """The automaton of the states reachable from `start`, without those that lead nowhere.

    `step(state, character)` is the next state or None; `alphabet` holds distinct ASCII characters. Neighbouring
    characters with the same target share an edge.
    """
    targets: dict[StateT, dict[int, StateT]] = {}
    pending = [start]
    while pending:
        state = pending.pop()
        if state in targets:
            continue
        moves = {ord(character): step(state, character) for character in sorted(alphabet)}
        targets[state] = {byte: target for byte, target in moves.items() if target is not None}
        pending.extend(targets[state].values())

    sources: dict[StateT, list[StateT]] = {state: [] for state in targets}
    for source, by_byte in targets.items():
        for target in by_byte.values():
            sources[target].append(source)
    pending = [state for state in targets if accepts(state)]
    live: set[StateT] = set()
    while pending:
        state = pending.pop()
        if state not in live:
            live.add(state)
            pending.extend(sources[state])

    kept = [start, *(state for state in targets if state in live and state != start)]
    number = {state: index for index, state in enumerate(kept)}
    edges: list[tuple[int, int, int, int]] = []
    for source in kept:
        for byte, target in targets[source].items():
            if target not in live:
                continue
            if edges and edges[-1][0] == number[source] and edges[-1][2:] == (byte - 1, number[target]):
                edges[-1] = (number[source], edges[-1][1], byte, number[target])
            else:
                edges.append((number[source], byte, byte, number[target]))
    return Automaton(len(kept), tuple(edges), frozenset(number[state] for state in kept if accepts(state)))


# A state of an integer range: "start", "minus", "zero" (the whole text is "0"), or what is known of the digits so
# far: (negative, number of digits, comparison with the lower limit's prefix, the same with the upper limit's).
_IntegerState: TypeAlias = str | tuple[bool, int, int, int]


@cache
def integer_range(low: int, high: int) -> Automaton:
    """The integers low..high, both included, as `-?(0|[1-9][0-9]*)` without `-0`.

    The number of states grows with the number of digits, not with the range. ValueError if the range is empty.
    """
    if low > high:
        raise ValueError(f"the range {low}..{high} is empty")
    # Digit limits of the absolute value, by sign; no digits where the sign has no value. Zero is a state of its own.
    limits = {
        False: (str(max(low, 1)), str(high)) if high >= 1 else None,
        True: (str(max(-high, 1)), str(-low)) if low <= -1 else None,
    }

    def first_digit(negative: bool, digit: str) -> _IntegerState | None:
        return None if limits[negative] is None else next_digit((negative, 0, 0, 0), digit)

    def next_digit(state: tuple[bool, int, int, int], digit: str) -> _IntegerState | None:
        negative, num_digits, versus_lower, versus_upper = state
        bounds = limits[negative]
        assert bounds is not None
        lower, upper = bounds
        if num_digits == len(upper):
            return None
        if num_digits >= len(lower):
            versus_lower = 1
        elif versus_lower == 0:
            versus_lower = _compare(digit, lower[num_digits])
        if versus_upper == 0:
            versus_upper = _compare(digit, upper[num_digits])
        return negative, num_digits + 1, versus_lower, versus_upper

    def step(state: _IntegerState, character: str) -> _IntegerState | None:
        if state == "start" and character == "-":
            return "minus"
        if character not in _DIGITS or state == "zero":
            return None
        if state == "start":
            return "zero" if character == "0" else first_digit(False, character)
        if state == "minus":
            return None if character == "0" else first_digit(True, character)
        assert isinstance(state, tuple)
        return next_digit(state, character)

    def accepts(state: _IntegerState) -> bool:
        if isinstance(state, str):
            return state == "zero" and low <= 0 <= high
        negative, num_digits, versus_lower, versus_upper = state
        bounds = limits[negative]
        assert bounds is not None
        lower, upper = bounds
        above = num_digits > len(lower) or (num_digits == len(lower) and versus_lower >= 0)
        below = num_digits < len(upper) or (num_digits == len(upper) and versus_upper <= 0)
        return above and below

    start: _IntegerState = "start"
    return explore(start, step, accepts, "-" + _DIGITS)


# A state of a decimal: a name, a count, and what the name needs besides.
_DecimalState: TypeAlias = tuple[str, int, int]


@cache
def json_number() -> Automaton:
    """The text of a JSON number (RFC 8259, section 6) that is finite in binary64, within these limits:

    - an integer without point and exponent is any of the signed 64-bit range; `-0` is allowed;
    - with a point or an exponent, at most 17 significant digits are written (zeros before the first other digit
      do not count, trailing ones do), and at most 16 zeros directly after `0.`;
    - an exponent has one to three digits, leading zeros included, and its value is -290..290, or -307..307 where
      exactly one digit other than 0 stands before the point.

    So a magnitude is below 1e308 and, unless zero, at least 1e-307: no text overflows, becomes zero or loses
    precision as a subnormal. The shortest text of every binary64 value within these magnitudes (as Python's `repr`
    or JavaScript's `String` write it) is included, except integers of 18 to 21 digits beyond 64 bits, which have a
    scientific form.
    """
    integers = integer_range(INT64_MIN, INT64_MAX)
    integer_edges: dict[tuple[int, str], int] = {
        (source, chr(byte)): target for source, first, last, target in integers.edges for byte in range(first, last + 1)
    }

    # Both readings run side by side; -1 and None say that one of them is out.
    def step(state: tuple[int, _DecimalState | None], character: str) -> tuple[int, _DecimalState | None] | None:
        integer, decimal = state
        integer = integer_edges.get((integer, character), -1)
        decimal = None if decimal is None else _decimal_step(decimal, character)
        return None if integer < 0 and decimal is None else (integer, decimal)

    def accepts(state: tuple[int, _DecimalState | None]) -> bool:
        integer, decimal = state
        return integer in integers.accepting or (decimal is not None and _decimal_accepts(decimal))

    start: tuple[int, _DecimalState | None] = (0, ("start", 0, 0))
    return explore(start, step, accepts, _NUMBER_ALPHABET)


def _decimal_step(state: _DecimalState, character: str) -> _DecimalState | None:
    """States: start, minus, zero; whole (digits), point / fraction (digits, exponent limit) after a nonzero digit;
    leading (zeros) after `0.`; e / sign (-, limit); exponent (digits, limit) while equal to
    the limit's prefix, then below or above."""
    name, count, limit = state
    is_digit = character in _DIGITS
    if character in "eE":
        if name == "whole":
            return "e", 0, _exponent_limit(count)
        if name == "fraction":
            return "e", 0, limit
        return ("e", 0, MAX_EXPONENT) if name == "zero" or (name == "leading" and count > 0) else None
    if character == ".":
        if name == "whole":
            return "point", count, _exponent_limit(count)
        return ("leading", 0, 0) if name == "zero" else None
    if name == "start" and character == "-":
        return "minus", 0, 0
    if name == "e" and character in "+-":
        return "sign", 0, limit
    if not is_digit:
        return None
    if name in ("start", "minus"):
        return ("zero", 0, 0) if character == "0" else ("whole", 1, 0)
    if name == "leading":
        if character == "0":
            return ("leading", count + 1, 0) if count < MAX_LEADING_FRACTION_ZEROS else None
        return "fraction", 1, MAX_EXPONENT
    if name in ("whole", "point", "fraction"):
        if count == MAX_SIGNIFICANT_DIGITS:
            return None
        return ("whole" if name == "whole" else "fraction"), count + 1, limit
    if name in ("e", "sign"):
        return _exponent_step("exponent", 0, limit, character)
    return _exponent_step(name, count, limit, character) if name in ("exponent", "below", "above") else None


def _exponent_limit(num_whole_digits: int) -> int:
    return MAX_SCIENTIFIC_EXPONENT if num_whole_digits == 1 else MAX_EXPONENT


def _exponent_step(name: str, count: int, limit: int, digit: str) -> _DecimalState | None:
    limit_digits = str(limit)
    if count == len(limit_digits):
        return None
    order = {"below": -1, "above": 1}.get(name) or _compare(digit, limit_digits[count])
    if order > 0:
        # Above the limit's prefix: still small enough as long as the exponent has fewer digits than the limit.
        return ("above", count + 1, limit) if count + 1 < len(limit_digits) else None
    return ("below" if order < 0 else "exponent"), count + 1, limit


def _decimal_accepts(state: _DecimalState) -> bool:
    name, count, _ = state
    return name in ("zero", "whole", "fraction", "exponent", "below", "above") or (name == "leading" and count > 0)


def _compare(left: str, right: str) -> int:
    return (left > right) - (left < right)
