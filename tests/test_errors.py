from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from infernix import errors
from infernix.errors import (
    InfernixError,
    InternalError,
    InvalidChoice,
    InvalidGrammar,
    InvalidJsonSchema,
    InvalidOptions,
    RequestError,
    TextLocation,
    UnsupportedJsonSchema,
)

CLASSES = [
    value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, InfernixError) and not name.startswith("_")
]
# Bases that are never the last word about an error keep the code of what they stand for.
LEAVES = [error for error in CLASSES if not any(issubclass(other, error) and other is not error for other in CLASSES)]


def test_the_drawn_tree_names_every_class() -> None:
    drawn = set(str(errors.__doc__).replace("│", " ").replace("├──", " ").replace("└──", " ").split())
    assert {error.__name__ for error in CLASSES} <= drawn


def test_codes_are_words_of_their_own() -> None:
    codes = [error.code for error in LEAVES]
    assert len(set(codes)) == len(codes)
    assert all(code.isidentifier() and code.islower() for code in codes)


def test_internal_errors_are_never_the_requests_fault() -> None:
    internal = [error for error in CLASSES if issubclass(error, InternalError)]
    assert len(internal) >= 2
    assert not any(issubclass(error, RequestError) for error in internal)


@pytest.mark.parametrize(
    ("offset", "line", "column", "line_text"),
    [(0, 1, 1, "ab"), (2, 1, 3, "ab"), (3, 2, 1, "é在d"), (5, 2, 3, "é在d"), (6, 2, 4, "é在d")],
)
def test_a_location_counts_code_points_from_one(offset: int, line: int, column: int, line_text: str) -> None:
    assert TextLocation.at("ab\né在d", offset) == TextLocation(line, column, line_text)


def test_an_excerpt_points_at_the_place() -> None:
    assert TextLocation(1, 3, "a\tcd").excerpt() == "a cd\n  ^"
    window, caret = TextLocation(1, 5001, "x" * 5000 + "!" + "y" * 5000).excerpt().split("\n")
    assert len(window) == 100
    assert window[caret.index("^")] == "!"


def test_messages_hold_the_place() -> None:
    located = InvalidGrammar("unexpected character", TextLocation(2, 1, "?"))
    assert str(located) == located.message == "unexpected character at line 2, column 1\n?\n^"
    assert str(UnsupportedJsonSchema("not enforced", "/properties/a")) == "not enforced at /properties/a"
    assert str(UnsupportedJsonSchema("not enforced")) == "not enforced at /"
    assert str(InvalidChoice("not a string", 3)) == "not a string at entry 3"
    option = InvalidOptions("too large", field="top_k")
    assert (str(option), option.field) == ("top_k: too large", "top_k")


def test_an_excerpt_can_be_printed_and_moves_no_caret() -> None:
    assert TextLocation(1, 4, "a\x1b\ud800d\x00").excerpt() == "a\ufffd\ufffdd\ufffd\n   ^"


@pytest.mark.parametrize(
    "error",
    [
        UnsupportedJsonSchema("the keyword 'x' is not supported", "/a/x"),
        InvalidJsonSchema("not valid JSON", location=TextLocation(1, 2, "{x")),
        InvalidGrammar("no rule", TextLocation(1, 1, "x")),
        InvalidChoice("not a string", 3),
        InvalidOptions("out of range", field="top_k"),
        InfernixError("plain"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_copying_and_pickling(error: InfernixError) -> None:
    for twin in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(twin) is type(error)
        assert (str(twin), twin.args, vars(twin)) == (str(error), error.args, vars(error))
