"""The parts of the runners that decide how an instance is written, and who judges it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from infernix.grammar.schema import parse_json_schema
from infernix.matching import ConfigurationTable
from tests.conformance.json_slices import elements, members
from tests.conformance.oracles import PYTHON, RUST, Oracle, parse_exactly
from tests.conformance.published_form import PublishedForm
from tests.conformance.spelling import (
    AIRY,
    COMPACT,
    SPACED,
    in_layout,
    number_text,
    outside_reasons,
    published_value,
    scalar_text,
)


def write(schema: Any, value: Any) -> tuple[str | None, str]:
    table = ConfigurationTable.of(parse_json_schema(json.dumps(schema)))
    writing = PublishedForm(schema).write(table, value)
    return writing.accepted and writing.accepted.decode(), writing.likely.decode()


def test_declared_order() -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {"properties": {"y": {}, "x": {}}}}, "required": ["r"]}
    text = '{"b":1,"a":{"y":1,"x":2},"r":4,"z":0}'
    assert write(schema, {"z": 0, "r": 4, "a": {"x": 2.0, "y": 1}, "b": 1}) == (text, text)


def test_layouts() -> None:
    text = b'[{"a,":[1.5,"{\\\\\\"]"]},{},[]]'
    assert in_layout(text, COMPACT) == text
    assert in_layout(text, SPACED) == b'[{"a,": [1.5, "{\\\\\\"]"]}, {}, []]'
    airy = in_layout(text, AIRY)
    assert json.loads(airy) == json.loads(text)
    assert airy.startswith(b'[\r\n  {\r\n  "a," :\t[\r\n  1.5,\n    "{')
    assert airy.endswith(b"\r\n  ]\r\n  },\n    {\r\n  },\n    [\r\n  ]\r\n  ]")


def test_order_of_a_literal() -> None:
    schema = {"const": {"b": [{"d": 1, "c": 2}], "a": "é"}}
    text = '{"b":[{"d":1,"c":2}],"a":"é"}'
    assert write(schema, {"a": "é", "b": [{"c": 2, "d": 1}]}) == (text, text)


def test_another_order_than_the_likely_one_is_found() -> None:
    # What is declared is a, b; the language of the other schema has b, a, c.
    table = ConfigurationTable.of(parse_json_schema('{"properties": {"b": {}, "a": {}, "c": {}}, "type": "object"}'))
    writing = PublishedForm({"properties": {"a": {}, "b": {}}}).write(table, {"a": [1], "b": {"a": 2, "b": 3}, "c": 4})
    assert writing.accepted == b'{"b":{"a":2,"b":3},"a":[1],"c":4}'
    assert writing.likely == b'{"a":[1],"b":{"a":2,"b":3},"c":4}'


def test_an_order_that_only_one_branch_of_a_union_has_is_found() -> None:
    first = {"properties": {"k": {}, "r": {}, "j": {}}, "required": ["r"]}
    second = {"properties": {"j": {}, "k": {}}, "required": ["j"]}
    closed = {"type": "object", "additionalProperties": False}
    table = ConfigurationTable.of(parse_json_schema(json.dumps({"anyOf": [{**closed, **first}, {**closed, **second}]})))
    writing = PublishedForm({"properties": {"r": {}, "j": {}}}).write(table, {"j": 1, "k": 2, "r": 3})
    assert writing.accepted == b'{"k":2,"r":3,"j":1}'


def test_order_of_a_branch_that_stands_after_another() -> None:
    names = "abcdefghijklmnop"
    closed = {"properties": {**{name: {} for name in names}, "p": {"minimum": 0}}}
    opened = {"properties": {name: {} for name in reversed(names[:8])}, "required": ["c"]}
    text, _ = write({"type": "object", "anyOf": [closed, opened]}, {**dict.fromkeys(names, 1), "p": -1})
    assert text is not None
    assert list(json.loads(text)) == list("hgfedcbaijklmnop")


def test_no_order_is_accepted() -> None:
    schema = {"properties": {name: {"type": "integer"} for name in "abcdefghijkl"}, "additionalProperties": False}
    table = ConfigurationTable.of(parse_json_schema(json.dumps(schema)))
    writing = PublishedForm(schema).write(table, {**dict.fromkeys("abcdefghijk", 1), "l": "1"})
    assert (writing.accepted, writing.gave_up) == (None, False)
    assert (
        writing.text == writing.likely == b'{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":"1"}'
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e-7, "1e-07"),
        (1e21, "1e+21"),
        (10**21, "1e+21"),
        (2**63 - 1, "9223372036854775807"),
        (2**64 + 1, "18446744073709551617"),
        (1e18, "1000000000000000000"),
        (10**400, "1" + "0" * 400),
    ],
)
def test_number_text(value: float, text: str) -> None:
    assert number_text(value) == text.encode()


def test_scalar_text() -> None:
    assert scalar_text('\u0001"\\/\n\u007f😀') == '"\\u0001\\"\\\\/\\n\u007f😀"'.encode()
    assert [scalar_text(value) for value in (None, True, False)] == [b"null", b"true", b"false"]


def test_published_value() -> None:
    value = published_value({"a": [1.0, 0.5, True, 1e30, "1.0"]})
    assert json.dumps(value) == '{"a": [1, 0.5, true, 1e+30, "1.0"]}'


@pytest.mark.parametrize(
    ("value", "num_reasons"),
    [
        ([1, -(2**63), 0.0, 1.5e-307, "😀", True], 0),
        ({"a": [2**63]}, 1),
        (5e-324, 1),
        (float("inf"), 1),
        (1e20, 1),
        (["\ud800", 10**30], 2),
        ({"\udfff": 1}, 1),
    ],
)
def test_outside_reasons(value: Any, num_reasons: int) -> None:
    assert len(outside_reasons(value)) == num_reasons


def test_slices_keep_the_spelling() -> None:
    text = ' { "a" : 1.50 , "b\\u0061":[ 1e5 ,{"x": "}"} ] ,"c":{}} '
    assert members(text) == {"a": "1.50", "ba": '[ 1e5 ,{"x": "}"} ]', "c": "{}"}
    assert elements('[ 1e5 ,{"x": "}"} ]') == ["1e5", '{"x": "}"}']
    assert (elements("[]"), members("{}")) == ([], {})


class TestOracle:
    def test_ecmascript_expressions(self) -> None:
        oracle = Oracle('{"pattern": "^\\\\d$"}')
        verdicts = [oracle.verdict(text) for text in ("1", "٣", "1\n")]
        assert [verdict and (verdict.is_valid, verdict.judge) for verdict in verdicts] == [
            (True, RUST),
            (False, RUST),
            (False, RUST),
        ]
        assert oracle.python_verdict("1") is None

    @pytest.mark.parametrize(
        ("pattern", "text"), [(r"^\<a\>$", "<a>"), (r"^\\<$", r"\<"), (r"^\<\<\\\<$", r"<<\<"), (r"\\>", r"\>")]
    )
    def test_escaped_angle_brackets(self, pattern: str, text: str) -> None:
        verdict = Oracle(json.dumps({"pattern": pattern})).verdict(text)
        assert verdict is not None
        assert verdict.is_valid

    def test_numbers_are_compared_exactly(self) -> None:
        oracle = Oracle('{"minimum": 0.1}')
        texts = ("0.1", "0.10000000000000000001", "0.09999999999999999999")
        assert [oracle.is_valid_text(text) for text in texts] == [True, True, False]
        assert Oracle('{"maximum": 1e300}').is_valid_text("1e300")
        verdict = Oracle('{"maximum": 1e300}').verdict(1e300)
        assert verdict is not None
        assert verdict.is_valid
        assert parse_exactly("[1e-2]") == [Decimal("0.01")]

    def test_dialects(self) -> None:
        schema = '{"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": true}'
        verdict = Oracle(schema).verdict(3)
        assert verdict is not None
        assert not verdict.is_valid
        assert Oracle('{"$schema": "http://example.org/unknown"}').is_well_formed is None

    def test_python_judges_what_rust_cannot_be_given(self) -> None:
        verdict = Oracle('{"minLength": 2}').verdict("\ud800")
        assert verdict is not None
        assert (verdict.is_valid, verdict.judge) == (False, PYTHON)

    def test_well_formed(self) -> None:
        assert Oracle('{"minLength": 2}').is_well_formed is True
        assert Oracle('{"minLength": "2"}').is_well_formed is False
