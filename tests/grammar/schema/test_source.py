"""Schema text: order, exact numbers, repeated names, bounds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from infernix.errors import ConstraintTooLarge, InvalidJsonSchema, UnsupportedJsonSchema
from infernix.grammar.schema.pointers import Place, array_index, parse_reference
from infernix.grammar.schema.source import MAX_SCHEMA_DEPTH, MAX_SOURCE_BYTES, JsonNumber, parse_source


def test_members_keep_their_order_and_numbers_their_text() -> None:
    document = parse_source('{"b":1.50,"a":[true,null,"x",1e2],"":-0}')
    assert list(document.items()) == [  # type: ignore[union-attr]
        ("b", JsonNumber("1.50")),
        ("a", [True, None, "x", JsonNumber("1e2")]),
        ("", JsonNumber("-0")),
    ]


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('{"type":"string","type":"null"}', "/type"),
        ('{"properties":{"a":{},"b":{},"a":{}}}', "/properties/a"),
        ('{"enum":[1,{"x/y":1,"x/y":2}]}', "/enum/1/x~1y"),
        ('{"a":{},"\\u0061":{}}', "/a"),
        ('{"const":"\\ud800"}', "/const"),
        ('{"const":["\\udc00\\ud800"]}', "/const/0"),
        ('{"const":"\ud800"}', "/const"),
        ('{"properties":{"\\ud83d":{}}}', "/properties"),
    ],
)
def test_names_and_strings_that_have_no_meaning(text: str, pointer: str) -> None:
    with pytest.raises(InvalidJsonSchema) as raised:
        parse_source(text)
    assert raised.value.pointer == pointer


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1"),
        ("{", "line 1, column 2"),
        ('{\n "type": string}', "line 2, column 10"),
        ("{} {}", "Extra data"),
        ("NaN", "NaN"),
        ('{"const":-Infinity}', "-Infinity"),
        ('{"const":"\n"}', r"control character at line 1, column 11\n"),
        ('"' + '\\"' * 100_000, r"Unterminated string starting at line 1, column 1\n"),
    ],
)
def test_text_that_is_not_json(text: str, message: str) -> None:
    with pytest.raises(InvalidJsonSchema, match=message):
        parse_source(text)


@pytest.mark.parametrize("opening", ["[", '{"items":', '{"const":[', '[{"a":[['])
def test_depth_is_bounded(opening: str) -> None:
    with pytest.raises(ConstraintTooLarge, match=f"MAX_SCHEMA_DEPTH = {MAX_SCHEMA_DEPTH}") as caught:
        parse_source(f"\n{opening * 10_000}")
    location = caught.value.location
    assert location is not None
    num_open = sum(map(location.line_text[: location.column].count, "[{"))
    assert (location.line, num_open) == (2, MAX_SCHEMA_DEPTH + 1)


def test_brackets_in_strings_do_not_nest() -> None:
    assert parse_source('["' + '[{\\"' * 1000 + '"]') == ['[{"' * 1000]
    assert parse_source("[" * MAX_SCHEMA_DEPTH + "]" * MAX_SCHEMA_DEPTH)
    assert len(parse_source("[" + "[]," * 1000 + "[]]")) == 1001  # type: ignore[arg-type]


def test_size_is_bounded_in_bytes() -> None:
    assert parse_source('"' + "x" * (MAX_SOURCE_BYTES - 2) + '"')
    with pytest.raises(ConstraintTooLarge, match=f"MAX_SOURCE_BYTES = {MAX_SOURCE_BYTES}"):
        parse_source('"' + "é" * (MAX_SOURCE_BYTES // 2) + '"')


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", Fraction(0)),
        ("-0", Fraction(0)),
        ("9223372036854775807", Fraction(2**63 - 1)),
        ("-9223372036854775808", Fraction(-(2**63))),
        ("9007199254740993", Fraction(2**53 + 1)),
        ("1.50", Fraction(3, 2)),
        ("1e2", Fraction(100)),
        ("0.1", Fraction(1, 10)),
        ("1E-7", Fraction(1, 10**7)),
        ("1e300", Fraction(10**300)),
        ("0.0e999999", Fraction(0)),
        ("-0e99999999999999999999", Fraction(0)),
        ("0." + "0" * 100_000 + "1e100001", Fraction(1)),
    ],
)
def test_exact_numbers(text: str, value: Fraction) -> None:
    assert JsonNumber(text).exact(Place()) == JsonNumber(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "9223372036854775808",
        "-9223372036854775809",
        "1" + "0" * 5000,
        "9007199254740993.0",
        "0.10000000000000000555",
        "3.14159265358979323846",
        "1e400",
        "-1e999999999999",
        "1e-400",
        "1e-99999999999999999999",
        "0.1" + "0" * 100_000 + "1",
        "1e" + "9" * 100_000,
    ],
)
def test_numbers_that_reading_would_change(text: str) -> None:
    assert JsonNumber(text).value is None
    with pytest.raises(UnsupportedJsonSchema) as raised:
        JsonNumber(text).exact(Place().at("minimum"))
    assert raised.value.pointer == "/minimum"
    assert len(raised.value.message) < 150


def test_pointers_escape_their_steps() -> None:
    assert Place().pointer == ""
    assert Place().at("properties", "a/b~c").at("").pointer == "/properties/a~1b~0c/"


@pytest.mark.parametrize(
    ("reference", "steps"),
    [
        ("#", ()),
        ("#/", ("",)),
        ("#/$defs/a", ("$defs", "a")),
        ("#/$defs/a~1b~0c", ("$defs", "a/b~c")),
        ("#/$defs/%25%22~01", ("$defs", '%"~1')),
        ("#/%E5%9F%8E/x", ("城", "x")),
        ("#/a%2Fb", ("a", "b")),
        ("", None),
        ("#a", None),
        ("other.json", None),
        ("other.json#/a", None),
        ("http://example.com/#/a", None),
    ],
)
def test_references(reference: str, steps: tuple[str, ...] | None) -> None:
    assert parse_reference(reference) == steps


@pytest.mark.parametrize("reference", ["#/%", "#/%4", "#/%zz", "#/%ff", "#/~", "#/a~2", "#/%7E"])
def test_malformed_references(reference: str) -> None:
    with pytest.raises(ValueError, match=r"percent|tilde"):
        parse_reference(reference)


@pytest.mark.parametrize(
    ("step", "index"),
    [("0", 0), ("9", 9), ("10", None), ("01", None), ("-1", None), ("", None), ("٣", None), ("9" * 5000, None)],
)
def test_array_indices(step: str, index: int | None) -> None:
    assert array_index(step, 10) == index


SHALLOW = '{"a":[1],"b":{}},' * MAX_SCHEMA_DEPTH


@pytest.mark.parametrize(
    "string",
    [
        "[" * 300,
        '{\\"' * 300,
        "\\\\",
        '\\\\\\"[' * 300,
        "\\u005b" * 300,
        "é[" * 300,
    ],
)
def test_brackets_in_strings_are_no_depth(string: str) -> None:
    assert len(parse_source(f'[{SHALLOW}"{string}",0]')) == MAX_SCHEMA_DEPTH + 2  # type: ignore[arg-type]
    with pytest.raises(ConstraintTooLarge, match="MAX_SCHEMA_DEPTH") as raised:
        parse_source(f'[{SHALLOW}"{string}",' + "[" * MAX_SCHEMA_DEPTH + "]" * MAX_SCHEMA_DEPTH + "]")
    assert raised.value.location is not None


def test_depth_in_text_that_is_not_json() -> None:
    """What comes before the first mistake is never nested too deep for the parser."""
    for text in ("[" * 5000, "[[]" * 5000, '"' + "[" * 5000, "]" * 300 + "[" * 5000, '\\"' + "[" * 5000):
        with pytest.raises((ConstraintTooLarge, InvalidJsonSchema)):
            parse_source(text)
