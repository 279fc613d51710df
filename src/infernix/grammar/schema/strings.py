"""Strings -> ir.

Lengths count Unicode characters, whatever their escapes. With a pattern or a length, a string is written in canonical
escapes, so that each character has one spelling; without, in any spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NoReturn, TypeVar

from infernix.errors import InvalidJsonSchema, UnsupportedJsonSchema
from infernix.grammar.automata import AutomatonTooLarge
from infernix.grammar.ir import NOTHING, Expression
from infernix.grammar.json_values import JsonRules
from infernix.grammar.regex_syntax import Fault, PatternError
from infernix.grammar.schema.nodes import Pattern, StringNode
from infernix.grammar.schema.patterns import read_search_pattern
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.string_languages import (
    Demands,
    Language,
    as_json_string,
    as_raw_text,
    find_language,
    is_empty,
)

ResultT = TypeVar("ResultT")


def lower_string(node: StringNode, rules: JsonRules) -> Expression:
    """The JSON strings of `node`; nothing where there are none.

    Raises UnsupportedJsonSchema or InvalidJsonSchema at a pattern that cannot be read, and UnsupportedJsonSchema at
    the first one where their combination with each other or with the length exceeds MAX_STATES, MAX_STEPS or
    MAX_AUTOMATON_LENGTH.
    """
    if not node.patterns and node.min_length == 0 and node.max_length is None:
        return rules.string
    language = _language(node)
    if is_empty(language):
        return NOTHING
    return rules.shared(("string", _demands(node)), "string", lambda: as_json_string(language))


def lower_raw_string(node: StringNode, forbidden: str, place: Place | None = None) -> Expression:
    """The strings of `node` in which `forbidden` (not empty) does not occur, as UTF-8 without quotes and escapes.

    A length alone is counted, at the same cost for any bound, if `forbidden` is one character or if a pattern rules
    out one of its characters. Else it takes an automaton with up to len(forbidden) states for each character of the
    length: what has been seen of `forbidden` must be known from one character to the next, and a counted repetition
    remembers nothing of the turn before. Raises what `lower_string` raises; bounds at `place` where there is no
    pattern.
    """
    language = _language(node, forbidden, place)
    return NOTHING if is_empty(language) else as_raw_text(language)


def has_string(node: StringNode) -> bool:
    """Whether any string satisfies `node`. Raises what `lower_string` raises."""
    return not is_empty(_language(node))


def has_raw_string(node: StringNode, forbidden: str, place: Place | None = None) -> bool:
    """Whether any string without `forbidden` satisfies `node`. Raises what `lower_raw_string` raises."""
    return not is_empty(_language(node, forbidden, place))


def admits_string(node: StringNode, value: str) -> bool:
    """Whether `value`, which has no surrogates, satisfies `node`. Raises what `lower_string` raises."""
    if len(value) < node.min_length or (node.max_length is not None and len(value) > node.max_length):
        return False
    return all(_is_found(pattern, value) for pattern in node.patterns)


def admits_raw_string(node: StringNode, value: str, forbidden: str) -> bool:
    """Whether `value` satisfies `node` and `forbidden` does not occur in it."""
    return forbidden not in value and admits_string(node, value)


def _demands(node: StringNode, avoided: str = "") -> Demands:
    return Demands(tuple([pattern.text for pattern in node.patterns]), node.min_length, node.max_length, avoided)


def _language(node: StringNode, avoided: str = "", place: Place | None = None) -> Language:
    for pattern in node.patterns:
        # Of several patterns, an error names the one that cannot be read.
        _located(pattern.place, partial(read_search_pattern, pattern.text))
    where = node.patterns[0].place if node.patterns else place or Place()
    return _located(where, partial(find_language, _demands(node, avoided)))


def _is_found(pattern: Pattern, value: str) -> bool:
    return _located(pattern.place, lambda: read_search_pattern(pattern.text).automaton.accepts(value))


def _located(place: Place, compute: Callable[[], ResultT]) -> ResultT:
    try:
        return compute()
    except PatternError as error:
        _raise_pattern_error(error, place)
    except AutomatonTooLarge as error:
        raise UnsupportedJsonSchema(str(error), place.pointer) from None


def _raise_pattern_error(error: PatternError, place: Place) -> NoReturn:
    where = "" if error.offset is None else f" (character {error.offset + 1} of the pattern)"
    kind = InvalidJsonSchema if error.fault is Fault.MALFORMED else UnsupportedJsonSchema
    raise kind(f"{error.reason}{where}", place.pointer) from None
