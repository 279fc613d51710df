"""Bounds that are integers beyond 64 bits: some parsers keep them exactly, others round them, and they hold in both."""

from __future__ import annotations

import json
import operator
from decimal import Context
from fractions import Fraction
from typing import Any

import pytest

from infernix.errors import UnsatisfiableJsonSchema, UnsupportedJsonSchema
from infernix.grammar.schema import parse_json_schema
from support.number_texts import is_integer_text
from support.schema_language import SchemaLanguage, check_language

LARGEST = Fraction("1.7976931348623157e308")
INT64_MIN, INT64_MAX = "-9223372036854775808", "9223372036854775807"

HOLDS = {
    "minimum": operator.ge,
    "exclusiveMinimum": operator.gt,
    "maximum": operator.le,
    "exclusiveMaximum": operator.lt,
}

# 2**63 as JavaScript prints it, 2**63 and 2**64 with their neighbours, integers that are rounded up and down, also by
# half a step, and the same far away.
WIDE = [
    *["9223372036854776000", "9223372036854775808", "9223372036854775809", "9223372036854777000"],
    *["18446744073709551615", "18446744073709551616", "18446744073709552000", "18446744073709550592"],
    *["99999999999999999999999", "100000000000000000000000", "1" + "0" * 300, "1797" + "0" * 305],
]


def decimals_near(value: str) -> set[str]:
    texts = set()
    for digits in (3, 16, 17):
        context = Context(prec=digits, Emin=-400, Emax=400)
        for follow in (context.next_plus, context.next_minus):
            near = context.create_decimal(value)
            for _ in range(6):
                texts.add(f"{near:.16e}".replace("+", ""))
                near = follow(near)
    return {text for text in texts if abs(Fraction(text)) <= LARGEST}


@pytest.mark.parametrize("keyword", HOLDS)
@pytest.mark.parametrize("sign", ["", "-"])
def test_numbers_keep_a_wide_bound_in_every_reading(keyword: str, sign: str) -> None:
    holds = HOLDS[keyword]
    for digits in WIDE:
        bound = sign + digits
        exact, rounded = int(bound), int(float(bound))
        texts = decimals_near(bound) | {"0", "0.5", INT64_MAX, INT64_MIN, "1e300", "-1e300"}

        def keeps(text: str, exact: int = exact, rounded: int = rounded) -> bool:
            written = read = again = Fraction(text)
            if not is_integer_text(text):
                read, again = Fraction(float(text)), Fraction(repr(float(text)))
            return holds(written, exact) and holds(read, exact) and holds(read, rounded) and holds(again, exact)

        language = SchemaLanguage(f'{{"type":"number","{keyword}":{bound}}}')
        assert [text for text in texts if (text in language) != keeps(text)] == [], bound


@pytest.mark.parametrize("bound", WIDE)
def test_a_wide_bound_on_the_far_side_leaves_all_integers(bound: str) -> None:
    inside, outside = [INT64_MIN, "-1", "0", INT64_MAX], ["9223372036854775808", "-9223372036854775809", "1.0"]
    for schema in (
        f'{{"type":"integer","maximum":{bound},"minimum":-{bound}}}',
        f'{{"type":"integer","exclusiveMaximum":{bound}}}',
        f'{{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer",'
        f'"maximum":{bound},"exclusiveMaximum":true}}',
        f'{{"allOf":[{{"maximum":{bound}}},{{"type":"integer"}}]}}',
    ):
        check_language(schema, inside, outside)


@pytest.mark.parametrize("keyword", ["minimum", "exclusiveMinimum"])
@pytest.mark.parametrize("bound", WIDE)
def test_a_wide_bound_on_the_near_side_leaves_no_integer(keyword: str, bound: str) -> None:
    with pytest.raises(UnsupportedJsonSchema, match="no signed 64-bit integer") as caught:
        parse_json_schema(f'{{"properties":{{"a":{{"type":"integer","{keyword}":{bound}}}}}}}')
    assert caught.value.pointer == f"/properties/a/{keyword}"


def test_the_least_integer_is_excluded_where_a_bound_is_read_as_that() -> None:
    schema = '{"type":"integer","exclusiveMinimum":-%s}'
    for bound in WIDE:
        is_read_so = float(bound) == 2.0**63
        assert (INT64_MIN in SchemaLanguage(schema % bound)) == (not is_read_so), bound
        assert "-9223372036854775807" in SchemaLanguage(schema % bound)


def test_a_wide_bound_beside_others() -> None:
    check_language(
        '{"type":"integer","allOf":[{"maximum":9223372036854776000},{"maximum":9,"minimum":8}]}',
        ["8", "9"],
        ["7", "10"],
    )
    check_language('{"enum":[1,"x"],"maximum":18446744073709551615}', ["1", '"x"'], ["2"])
    with pytest.raises(UnsupportedJsonSchema, match="no number between the bounds can be written"):
        parse_json_schema('{"type":"number","exclusiveMinimum":17976931348623157%s}' % ("0" * 292))
    with pytest.raises(UnsatisfiableJsonSchema):
        parse_json_schema('{"type":"number","minimum":9223372036854776000,"maximum":9223372036854775998}')


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        # Parsers make infinity of it.
        ('{"maximum":1%s}' % ("0" * 309), "/maximum"),
        ('{"minimum":-1%s}' % ("0" * 10_000), "/minimum"),
        # Only bounds may be wide.
        ('{"const":9223372036854776000}', "/const"),
        ('{"enum":[9223372036854776000]}', "/enum/0"),
        ('{"maxItems":9223372036854776000}', "/maxItems"),
    ],
)
def test_other_wide_integers_are_refused(schema: str, pointer: str) -> None:
    with pytest.raises(UnsupportedJsonSchema, match="outside signed 64-bit") as caught:
        parse_json_schema(schema)
    assert caught.value.pointer == pointer


def test_the_source_of_a_dictionary_may_have_wide_bounds() -> None:
    document: dict[str, Any] = {"type": "integer", "maximum": 2**64 - 1}
    check_language(json.dumps(document), [INT64_MAX], ["18446744073709551615"])


@pytest.mark.parametrize("text", ["4.341841079180817e+16", "-9007199254740993.0", "9.2233720368547e18"])
@pytest.mark.parametrize("keyword", HOLDS)
def test_a_rounded_bound_among_exact_integers_is_refused(keyword: str, text: str) -> None:
    # Read as binary64, the bound is another integer, and one that a 64-bit integer can be.
    assert Fraction(text) != Fraction(float(text))
    with pytest.raises(UnsupportedJsonSchema, match="changes its value") as refusal:
        parse_json_schema(f'{{"type": "integer", "{keyword}": {text}}}')
    assert refusal.value.pointer == f"/{keyword}"


@pytest.mark.parametrize("text", ["9.007199254740994e15", "1e16", "1e22", "0.1", "9007199254740993"])
def test_bounds_that_say_the_same_in_every_reading_are_taken(text: str) -> None:
    parse_json_schema(f'{{"maximum": {text}}}')
