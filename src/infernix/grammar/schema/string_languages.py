"""What strings a combination of patterns, a length and a text that must not occur leaves.

There are two forms. An expression over characters keeps counted repetitions as counts, whatever their bounds; an
automaton can express any combination, but has a state for each count. The expression is taken for a length alone, for
one pattern that is anchored at both ends, and where a length can be taken up by a repetition of the one pattern
(`pattern_lengths`). Otherwise, and where several counts of one repetition would have to be kept in mind at once, it is
the automaton.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import is_
from typing import TypeAlias

from infernix.grammar import ir
from infernix.grammar.automata import AutomatonTooLarge, Dfa, avoiding, determinize, intersect
from infernix.grammar.automata import with_length as automaton_with_length
from infernix.grammar.byte_automata import ESCAPED, json_string, raw_text
from infernix.grammar.character_nfa import parts_of, postorder
from infernix.grammar.json_values import CANONICAL_CHARACTER, CANONICAL_ESCAPES, QUOTE, canonical_string
from infernix.grammar.minimization import minimized
from infernix.grammar.schema.pattern_lengths import with_length
from infernix.grammar.schema.patterns import ANY_CHARACTER, SearchPattern, read_search_pattern
from infernix.grammar.unicode import character_class, complement_ranges, intersect_ranges

MAX_AUTOMATON_LENGTH = 8192
"""Lengths up to this many characters may be states of an automaton."""
MAX_INTERSECTION_STEPS = 1_000_000
"""Steps from one state by one class of characters in all intersections of one combination together."""

Language: TypeAlias = ir.Expression | Dfa
"""An expression over characters, or an automaton."""


@dataclass(frozen=True, slots=True)
class Demands:
    """Strings of min_length..max_length characters in which all `patterns` are found and `avoided` is not ("": any)."""

    patterns: tuple[str, ...] = ()
    min_length: int = 0
    max_length: int | None = None
    avoided: str = ""


@dataclass(frozen=True, slots=True)
class _TooLarge:
    """A combination that exceeds a bound, and which."""

    reason: str


Outcome: TypeAlias = Language | _TooLarge


class _RecentLanguages:
    """What was found out last, as much as has _MAX_STATES states altogether; shared by all threads."""

    _MAX_STATES = 200_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[Demands, Outcome] = {}
        self._num_states = 0

    def get(self, demands: Demands) -> Outcome | None:
        with self._lock:
            outcome = self._found.pop(demands, None)
            if outcome is not None:
                self._found[demands] = outcome
            return outcome

    def put(self, demands: Demands, outcome: Outcome) -> None:
        with self._lock:
            if demands in self._found:
                return
            self._found[demands] = outcome
            self._num_states += self._size(demands, outcome)
            while self._num_states > self._MAX_STATES:
                oldest = next(iter(self._found))
                self._num_states -= self._size(oldest, self._found.pop(oldest))

    @staticmethod
    def _size(demands: Demands, outcome: Outcome) -> int:
        num_characters = len(demands.avoided) + sum(map(len, demands.patterns))
        return 100 + num_characters + (outcome.num_states if isinstance(outcome, Dfa) else 0)


_recent = _RecentLanguages()


def find_language(demands: Demands) -> Language:
    """The strings that meet `demands`.

    Raises infernix.grammar.regex_syntax.PatternError and infernix.grammar.automata.AutomatonTooLarge.
    """
    known = _recent.get(demands)
    if known is None:
        try:
            known = _find_language(demands)
        except AutomatonTooLarge as error:
            # The message alone: a raised error keeps the frames of its callers alive.
            known = _TooLarge(str(error))
        _recent.put(demands, known)
    if isinstance(known, _TooLarge):
        raise AutomatonTooLarge(known.reason)
    return known


def is_empty(language: Language) -> bool:
    """Whether no string belongs to the language."""
    return not language.num_states if isinstance(language, Dfa) else language == ir.NOTHING


def _find_language(demands: Demands) -> Language:
    patterns = [read_search_pattern(text) for text in dict.fromkeys(demands.patterns)]
    patterns = [pattern for pattern in patterns if not pattern.is_universal]
    minimum, maximum, avoided = demands.min_length, demands.max_length, demands.avoided
    if maximum is not None and minimum > maximum:
        return ir.NOTHING
    if any(pattern.never_has_one_of(avoided) for pattern in patterns) or (
        maximum is not None and maximum < len(avoided)
    ):
        avoided = ""
    if not patterns and len(avoided) <= 1:
        character = character_class([(ord(avoided),) * 2], negated=True) if avoided else ANY_CHARACTER
        return ir.Repeat(character, minimum, maximum)
    if len(patterns) == 1 and not avoided:
        expression = _counted(patterns[0], minimum, maximum)
        if expression is not None:
            return expression
    return _automaton(patterns, minimum, maximum, avoided)


def _counted(pattern: SearchPattern, minimum: int, maximum: int | None) -> ir.Expression | None:
    """The language as an expression, where that is the better form."""
    alternatives = with_length(pattern.alternatives, minimum, maximum)
    if alternatives is None:
        return None
    bounded = SearchPattern(tuple(alternatives))
    if not alternatives:
        return ir.NOTHING
    is_whole = len(alternatives) == len(pattern.alternatives) and all(map(is_, alternatives, pattern.alternatives))
    if is_whole and not pattern.is_anchored:
        return None
    return bounded.expression if bounded.counts_are_clear else None


def _automaton(patterns: Sequence[SearchPattern], minimum: int, maximum: int | None, avoided: str) -> Dfa:
    automata = [minimized(determinize(pattern.expression)) for pattern in patterns]
    if avoided:
        automata.append(avoiding(avoided))
    # Small ones first: what they rule out need not be gone through again.
    automata.sort(key=lambda automaton: automaton.num_states)
    result = automata[0]
    num_steps = 0
    for automaton in automata[1:]:
        result = minimized(intersect(result, automaton))
        num_steps += result.num_states * len(result.alphabet.classes)
        if num_steps > MAX_INTERSECTION_STEPS:
            raise AutomatonTooLarge(
                f"intersecting the patterns takes more than {MAX_INTERSECTION_STEPS} steps (MAX_INTERSECTION_STEPS)"
            )
    if not result.rows:
        return result
    if result.num_to_end[0] >= minimum:
        minimum = 0
    longest = result.max_length
    if maximum is not None and longest is not None and longest <= maximum:
        maximum = None
    if minimum == 0 and maximum is None:
        return result
    if max(minimum, maximum or 0) > MAX_AUTOMATON_LENGTH:
        raise AutomatonTooLarge(
            f"a length above {MAX_AUTOMATON_LENGTH} characters (MAX_AUTOMATON_LENGTH) takes an automaton here"
        )
    return minimized(automaton_with_length(result, minimum, maximum))


def as_json_string(language: Language) -> ir.Expression:
    """The strings of a language that is not empty, in canonical escapes, with their quotes."""
    if isinstance(language, Dfa):
        return json_string(language)
    return ir.Sequence((QUOTE, _spelled(language), QUOTE))


def as_raw_text(language: Language) -> ir.Expression:
    """The strings of a language that is not empty, as UTF-8 without any escapes."""
    return raw_text(language) if isinstance(language, Dfa) else language


def _spelled(root: ir.Expression) -> ir.Expression:
    """An expression over characters as one over their canonical spellings in a JSON string."""
    spelled: dict[int, ir.Expression] = {}
    for node in postorder(root):
        parts = tuple(spelled[id(part)] for part in parts_of(node))
        if isinstance(node, ir.CharacterClass):
            spelled[id(node)] = _spelled_class(node.ranges)
        elif isinstance(node, ir.Literal):
            spelled[id(node)] = ir.Literal(canonical_string(node.data.decode("utf-8"))[1:-1])
        elif isinstance(node, ir.Sequence):
            spelled[id(node)] = ir.Sequence(parts)
        elif isinstance(node, ir.Choice):
            spelled[id(node)] = ir.Choice(parts)
        elif isinstance(node, ir.Repeat):
            spelled[id(node)] = ir.Repeat(parts[0], node.minimum, node.maximum)
    return spelled[id(root)]


@lru_cache(maxsize=1024)
def _spelled_class(ranges: tuple[tuple[int, int], ...]) -> ir.Expression:
    if ranges == ANY_CHARACTER.ranges:
        return CANONICAL_CHARACTER
    escapes = [
        ir.Literal(CANONICAL_ESCAPES[chr(code)].encode())
        for low, high in intersect_ranges(ranges, ESCAPED)
        for code in range(low, high + 1)
    ]
    unescaped = ir.CharacterClass(intersect_ranges(ranges, complement_ranges(ESCAPED)))
    return ir.choice(*([unescaped] if unescaped.ranges else []), *escapes)
