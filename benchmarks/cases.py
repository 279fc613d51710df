"""What is measured: grammars in the form that each engine takes, and texts that they must accept.

Infernix compiles every case but the automaton from its source, the same document that the other engines get. The texts
are what a model would plausibly write. A text of `outside` is not in the language: an engine that takes one solves an
easier problem.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import texts
from benchmarks.shared_data import read_shared_data
from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.grammar.json_values import QUOTE
from infernix.options import OutputConstraint

GRAMMARS = Path(__file__).parent / "grammars"
Schema = dict[str, Any]


class SourceKind(StrEnum):
    """The forms in which the other engines take a case; a choice is a JSON list, an intersection one of expressions."""

    JSON_SCHEMA = "json_schema"
    GBNF = "gbnf"
    REGEX = "regex"
    CHOICE = "choice"
    INTERSECTION = "intersection"


@dataclass(frozen=True)
class Case:
    """One grammar to measure.

    grammar   builds Infernix's form from the source; its time counts as compile time
    kind, source   what the other engines compile
    texts     members of the language, or beginnings of members
    outside   texts that are no members
    """

    name: str
    title: str
    grammar: Callable[[], ir.Grammar]
    kind: SourceKind
    source: str
    texts: tuple[str, ...]
    outside: tuple[str, ...] = ()


def _string(**bounds: Any) -> Schema:
    return {"type": "string", **bounds}


def _array(items: Schema, **bounds: Any) -> Schema:
    return {"type": "array", "items": items, **bounds}


def _object(properties: Schema, required: list[str] | None = None, *, additional: bool = False) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": additional,
    }


STRING, INTEGER, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "integer", "number", "boolean"))


def _schema_case(name: str, title: str, schema: Schema, values: list[Any], outside: list[Any]) -> Case:
    """A case of JSON Schema. Values are written alternately on one line and indented."""
    source = json.dumps(schema)

    def written(index: int, value: Any) -> str:
        return (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2 * (index % 2) or None)
        )

    grammar = partial(build_grammar, OutputConstraint.json_schema(source))
    members, others = (tuple(written(*pair) for pair in enumerate(group)) for group in (values, outside))
    return Case(name, title, grammar, SourceKind.JSON_SCHEMA, source, members, others)


def json_object() -> Case:
    source = json.dumps({"type": "object"})
    members = (json.dumps(texts.ORDER, indent=2), json.dumps(texts.PERSON, ensure_ascii=False))
    grammar = partial(build_grammar, OutputConstraint.json_object())
    return Case("json_object", "any JSON object", grammar, SourceKind.JSON_SCHEMA, source, members, ("[1]",))


def flat_5_fields() -> Case:
    schema = _object({"name": STRING, "age": INTEGER, "city": STRING, "email": STRING, "active": BOOLEAN})
    return _schema_case("flat_5_fields", "object of 5 fields", schema, texts.FLAT, [{"name": "Ada"}])


def nested() -> Case:
    address = _object({"street": STRING, "city": STRING, "location": _object({"lat": NUMBER, "lon": NUMBER})})
    contact = _object({"email": STRING, "phones": _array(STRING), "address": address})
    schema = _object({"id": INTEGER, "profile": _object({"name": STRING, "contact": contact}), "tags": _array(STRING)})
    return _schema_case("nested", "objects in objects, 4 deep", schema, texts.NESTED, [{"id": 1, "tags": []}])


def array_of_objects() -> Case:
    item = _object({"sku": STRING, "quantity": INTEGER, "price": NUMBER, "gift": BOOLEAN})
    schema = _array(item)
    return _schema_case(
        "array_of_objects", "array of objects", schema, [texts.ITEMS, texts.ITEMS[:3]], [[{"sku": "a"}]]
    )


def recursive() -> Case:
    reference = {"$ref": "#/$defs/node"}
    node = _object({"name": STRING, "size": INTEGER, "children": _array(reference)})
    schema = {"$defs": {"node": node}, "$ref": "#/$defs/node"}
    return _schema_case("recursive", "recursive tree", schema, [texts.TREE, texts.TREE], [{"name": "a", "size": 1}])


def _many_fields() -> Schema:
    kinds = [STRING, INTEGER, BOOLEAN, NUMBER, _array(STRING)]
    return {f"{texts.FIELD_WORDS[i % 20]}_{texts.FIELD_WORDS[i // 10]}_{i}": kinds[i % 5] for i in range(200)}


def _many_values(step: int) -> Schema:
    samples: list[Any] = ["north wing", 17, True, 2.5, ["red", "blue"]]
    return {name: samples[i % 5] for i, name in enumerate(_many_fields()) if i % step == 0}


def required_200() -> Case:
    schema = _object(_many_fields())
    return _schema_case("required_200", "200 required fields", schema, [_many_values(1)], [_many_values(2)])


def optional_200() -> Case:
    schema = _object(_many_fields(), [])
    values = [_many_values(9), _many_values(23)]
    return _schema_case("optional_200", "200 optional fields", schema, values, [{"unknown": 1}])


def enums() -> Case:
    properties: Schema = {
        "status": {"enum": ["pending", "processing", "shipped", "delivered", "cancelled", "returned"]},
        "country": {"enum": texts.COUNTRIES},
        "priority": {"enum": [1, 2, 3, 5, 8]},
        "colour": {"enum": texts.COLOURS},
    }
    rows: list[Any] = [
        {"status": "processing", "country": "Germany", "priority": 3, "colour": "dark slate grey"},
        {"status": "delivered", "country": "New Zealand", "priority": 8, "colour": "light salmon"},
        {"status": "pending", "country": "Costa Rica", "priority": 1, "colour": "medium spring green"},
    ]
    wrong = {**rows[0], "country": "Atlantis"}
    return _schema_case("enums", "enums", _array(_object(properties)), [rows, rows[:2]], [[wrong]])


def string_pattern() -> Case:
    patterns = {
        "sku": "^[A-Z]{2,4}-[0-9]{4,8}(-[a-z0-9]+)*$",
        "email": r"^[a-z0-9._-]+@[a-z0-9-]+(\.[a-z0-9-]+)+$",
        "created": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
        "phone": r"^\+[1-9][0-9]{1,2}( [0-9]{2,4}){2,4}$",
    }
    schema = _object({name: _string(pattern=pattern) for name, pattern in patterns.items()})
    outside = [{**texts.PATTERNED[0], "sku": "no sku"}]
    return _schema_case("string_pattern", "strings with patterns", schema, texts.PATTERNED, outside)


def _max_length(name: str, maximum: int, values: list[Any]) -> Case:
    schema = _object({"text": _string(maxLength=maximum)})
    title = f"string of at most {maximum:,} characters"
    return _schema_case(name, title, schema, values, [{"text": "word " * (maximum // 5) + "x"}])


def max_length_100() -> Case:
    return _max_length("max_length_100", 100, [{"text": text} for text in texts.SHORT_STRINGS])


def max_length_8000() -> Case:
    return _max_length("max_length_8000", 8000, [{"text": text} for text in texts.LONG_STRINGS])


def number_range() -> Case:
    point = _object(
        {
            "lat": {"type": "number", "minimum": -90, "maximum": 90},
            "lon": {"type": "number", "minimum": -180, "maximum": 180},
            "percent": {"type": "number", "minimum": 0, "maximum": 100},
            "count": {"type": "integer", "minimum": 1, "maximum": 5000},
        }
    )
    rows: list[Any] = [
        {"lat": 48.8566, "lon": 2.3522, "percent": 12.5, "count": 4711},
        {"lat": -33.8688, "lon": 151.2093, "percent": 100, "count": 1},
        {"lat": 40.7128, "lon": -74.006, "percent": 0.75, "count": 803},
    ]
    outside = [[{**rows[0], "lat": 90.5}]]
    return _schema_case("number_range", "numbers in ranges", _array(point), [rows, rows], outside)


def free_form_objects() -> Case:
    free: Schema = {"type": "object", "additionalProperties": True}
    schema = _object({"event": STRING, "payload": free, "context": free})
    return _schema_case("free_form_objects", "objects with any members", schema, texts.EVENTS, [{"event": "a"}])


def deep_any_of() -> Case:
    schema: Schema = {"anyOf": [NUMBER, STRING, {"type": "null"}]}
    for _ in range(6):
        schema = {
            "anyOf": [
                _object({"op": {"const": "add"}, "left": schema, "right": schema}),
                _object({"op": {"const": "call"}, "name": STRING, "arguments": _array(schema)}),
                _object({"op": {"const": "not"}, "value": schema}),
                BOOLEAN,
                NUMBER,
                STRING,
            ]
        }
        schema = {"$ref": "#/$defs/" + _define(schema)}
    schema = {**schema, "$defs": dict(_DEFINITIONS)}
    outside = [{"op": "or", "value": 1}]
    return _schema_case("deep_any_of", "anyOf, 7 deep", schema, texts.EXPRESSIONS, outside)


_DEFINITIONS: Schema = {}


def _define(schema: Schema) -> str:
    name = f"level{len(_DEFINITIONS)}"
    _DEFINITIONS[name] = schema
    return name


def _gbnf_case(name: str, title: str, source: str, members: list[str], outside: list[str]) -> Case:
    grammar = partial(build_grammar, OutputConstraint.grammar(source))
    return Case(name, title, grammar, SourceKind.GBNF, source, tuple(members), tuple(outside))


def gbnf_60_rules() -> Case:
    source = (GRAMMARS / "small_language.gbnf").read_text(encoding="utf-8")
    program = (GRAMMARS / "small_language.txt").read_text(encoding="utf-8")
    return _gbnf_case("gbnf_60_rules", "programming language of 60 rules", source, [program], ["fn (x)"])


def gbnf_c() -> Case:
    source = read_shared_data("gbnf/c.gbnf")
    return _gbnf_case("gbnf_c", "C of llama.cpp", source, [texts.C_PROGRAM], ["return 1;"])


def gbnf_json() -> Case:
    source = read_shared_data("gbnf/json.gbnf")
    members = [json.dumps(texts.PERSON), json.dumps(texts.ORDER)]
    return _gbnf_case("gbnf_json", "JSON of llama.cpp", source, members, ["[1]"])


def regex_url() -> Case:
    source = (
        r"https?://([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]{2,24}(:[0-9]{1,5})?"
        r"(/[a-zA-Z0-9._~%!$&'()*+,;=:@-]*)*(\?[a-zA-Z0-9._~%!$&'()*+,;=:@/?-]*)?(#[a-zA-Z0-9._~%!$&'()*+,;=:@/?-]*)?"
    )
    grammar = partial(build_grammar, OutputConstraint.regex(source))
    outside = ("ftp://example.org/",)
    return Case("regex_url", "regex of a URL", grammar, SourceKind.REGEX, source, texts.URLS, outside)


def choice_1000() -> Case:
    source = random.Random(1000)
    lists = (texts.MAKERS, texts.ADJECTIVES, texts.MATERIALS, texts.PRODUCTS)
    options: dict[str, None] = {}
    while len(options) < 1000:
        words = " ".join(source.choice(words) for words in lists)
        options[f"{source.choice(texts.DEPARTMENTS)} > {words}, model {source.randrange(100, 1000)}"] = None
    values = list(options)
    grammar = partial(build_grammar, OutputConstraint.choice(values))
    members = tuple(values[index] for index in (3, 141, 592, 653, 897))
    return Case(
        "choice_1000", "choice of 1,000", grammar, SourceKind.CHOICE, json.dumps(values), members, (values[0] + "!",)
    )


def automaton_5000() -> Case:
    """Slugs with at least two digits and at most 840 characters: a product of 840 x 2 x 3 states, unrolled.

    Infernix gets the finished automaton, as intersections would make it; building it is not in its compile time.
    """
    body = ir.Sequence((QUOTE, _slug_automaton(840), QUOTE))
    expressions = ['"[a-z0-9]+([-_/][a-z0-9]+)*"', '"[^0-9]*[0-9][^0-9]*[0-9].*"', '"[a-z0-9_/-]{1,840}"']
    slug = "releases/2026-11/engine-notes_for_version-2/constrained-decoding/how-masks-are-made-and-why-it-matters"
    return Case(
        "automaton_5000",
        "intersection automaton of 5,000 states",
        partial(ir.Grammar.of, body),
        SourceKind.INTERSECTION,
        json.dumps(expressions),
        (f'"{slug}/{slug}-again"', f'"a1-b2/{slug}"'),
        ('"only-1-digit"', '"two--1-2"'),
    )


def _slug_automaton(max_characters: int) -> ir.Automaton:
    # A state is (characters so far, whether a word has begun, digits seen up to 2); numbered as it is met.
    numbers: dict[tuple[int, bool, int], int] = {(0, False, 0): 0}
    edges: list[tuple[int, int, int, int]] = []
    for state, source in (pending := list(numbers.items())):
        length, in_word, num_digits = state
        if length == max_characters:
            continue
        moves = [("a", "z", (length + 1, True, num_digits)), ("0", "9", (length + 1, True, min(num_digits + 1, 2)))]
        if in_word and length < max_characters - 1:
            moves += [(separator, separator, (length + 1, False, num_digits)) for separator in "-/_"]
        for low, high, target in moves:
            if target not in numbers:
                numbers[target] = len(numbers)
                pending.append((target, numbers[target]))
            edges.append((source, ord(low), ord(high), numbers[target]))
    accepting = frozenset(number for (_, in_word, digits), number in numbers.items() if in_word and digits == 2)
    return ir.Automaton(len(numbers), tuple(edges), accepting)


def _tool(index: int) -> tuple[str, Schema]:
    source = random.Random(index)
    name = f"{texts.VERBS[index % 20]}_{texts.NOUNS[index // 20]}"
    choices: list[Schema] = [
        STRING,
        INTEGER,
        NUMBER,
        BOOLEAN,
        {"type": "integer", "minimum": 1, "maximum": 100},
        {"enum": source.sample(texts.COLOURS, 4)},
        _array(STRING),
        _object({"from": STRING, "to": STRING}),
    ]
    names = source.sample(texts.FIELD_WORDS, source.randrange(2, 7))
    required = source.sample(names, source.randrange(1, len(names)))
    properties = {parameter: source.choice(choices) for parameter in names}
    return name, _object(properties, [parameter for parameter in names if parameter in required])


def _example(schema: Schema, index: int) -> Any:
    if "enum" in schema:
        return schema["enum"][index % len(schema["enum"])]
    match schema["type"]:
        case "object":
            return {name: _example(value, index + 1) for name, value in schema["properties"].items()}
        case "array":
            return [_example(schema["items"], index + i) for i in range(2)]
        case "string":
            return texts.PHRASES[index % len(texts.PHRASES)]
        case "boolean":
            return index % 2 == 0
    return 7 + index % 90


def _tools(num_tools: int) -> Case:
    tools = [_tool(index) for index in range(num_tools)]
    branches = [_object({"name": {"const": name}, "arguments": parameters}) for name, parameters in tools]
    calls = [{"name": name, "arguments": _example(parameters, i)} for i, (name, parameters) in enumerate(tools)]
    values: list[Any] = [calls[num_tools * part // 5] for part in range(5)]
    outside = [{"name": "launch_rocket", "arguments": {}}]
    title = f"union of {num_tools} tools"
    return _schema_case(f"tools_{num_tools}", title, {"anyOf": branches}, values, outside)


def tools_50() -> Case:
    return _tools(50)


def tools_400() -> Case:
    return _tools(400)


CASES: dict[str, Callable[[], Case]] = {
    build.__name__: build
    for build in (
        json_object,
        flat_5_fields,
        nested,
        array_of_objects,
        recursive,
        required_200,
        optional_200,
        enums,
        string_pattern,
        max_length_100,
        max_length_8000,
        number_range,
        free_form_objects,
        deep_any_of,
        gbnf_60_rules,
        gbnf_c,
        gbnf_json,
        regex_url,
        choice_1000,
        automaton_5000,
        tools_50,
        tools_400,
    )
}
"""Builders by name; one raises MissingData where its grammar is not on this machine."""
