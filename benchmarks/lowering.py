"""JSON Schema -> ir for the keywords that the benchmark cases use and the schema compiler may not take yet.

Reads the same document that the other engines get. Patterns must be anchored and stay within characters that stand
for themselves in a JSON string; bounds of a `number` are whole numbers. Everything unknown is a ValueError.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from infernix.grammar import ir
from infernix.grammar.decimals import integer_range
from infernix.grammar.json_values import CANONICAL_CHARACTER, NULL, QUOTE, JsonRules, canonical_string
from infernix.grammar.regex import parse_regex
from infernix.grammar.schema.arrays import lower_array
from infernix.grammar.schema.nodes import ArrayNode
from infernix.grammar.schema.objects import Member, lower_object

Schema = Mapping[str, Any]
_ANNOTATIONS = {"title", "description", "$defs"}


def schema_grammar(document: str) -> ir.Grammar:
    """The grammar of a schema's text."""
    lowering = _Lowering(json.loads(document))
    return lowering.builder.build(lowering.builder.add("root", lowering.expression(lowering.schema)))


def embed(builder: ir.GrammarBuilder, grammar: ir.Grammar) -> ir.RuleReference:
    """The rules of a finished grammar inside another one; returns its root."""
    references = [builder.declare(rule.name) for rule in grammar.rules]
    for reference, rule in zip(references, grammar.rules, strict=True):
        builder.define(reference, _moved(rule.body, references))
    return references[grammar.root]


def _moved(body: ir.Expression, references: list[ir.RuleReference]) -> ir.Expression:
    match body:
        case ir.Sequence(items):
            return ir.Sequence(tuple(_moved(item, references) for item in items))
        case ir.Choice(options):
            return ir.Choice(tuple(_moved(option, references) for option in options))
        case ir.Repeat(repeated, minimum, maximum):
            return ir.Repeat(_moved(repeated, references), minimum, maximum)
        case ir.RuleReference(index):
            return references[index]
    return body


class _Lowering:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.builder = ir.GrammarBuilder()
        self._rules = JsonRules(self.builder)
        self._definitions: dict[str, ir.RuleReference] = {}

    def expression(self, schema: Schema) -> ir.Expression:
        """The values of a schema, written out in place: a union's options can then be told apart byte by byte."""
        keywords = set(schema) - _ANNOTATIONS
        if "$ref" in schema:
            return self._definition(schema["$ref"])
        if "anyOf" in schema:
            self._expect(keywords, "anyOf")
            return ir.choice(*(self.expression(branch) for branch in schema["anyOf"]))
        if "const" in schema:
            return self._literal(schema["const"])
        if "enum" in schema:
            return ir.choice(*(self._literal(value) for value in schema["enum"]))
        match schema["type"]:
            case "string":
                return self._string(schema, keywords)
            case "integer":
                self._expect(keywords, "type", "minimum", "maximum")
                if keywords == {"type"}:
                    return self._rules.integer
                return integer_range(schema["minimum"], schema["maximum"])
            case "number":
                self._expect(keywords, "type", "minimum", "maximum")
                return self._rules.number if keywords == {"type"} else self._decimal(schema)
            case "boolean":
                return self._rules.boolean
            case "null":
                return NULL
            case "array":
                self._expect(keywords, "type", "items", "minItems", "maxItems")
                item = self.builder.add("items", self.expression(schema["items"]))
                node = ArrayNode(0, schema.get("minItems", 0), schema.get("maxItems"))
                return lower_array(node, [], item, self._rules)
            case "object":
                return self._object(schema, keywords)
        raise ValueError(f"not lowered: {schema!r}")

    def _object(self, schema: Schema, keywords: set[str]) -> ir.Expression:
        self._expect(keywords, "type", "properties", "required", "additionalProperties")
        if "properties" not in schema and schema.get("additionalProperties", True) is True:
            return self._rules.object
        members = []
        for name, value in schema["properties"].items():
            body = self.expression(value)
            if not isinstance(body, ir.RuleReference):
                body = self.builder.add(name, body)
            members.append(Member(name, body, name in schema["required"]))
        additional = self._rules.value if schema.get("additionalProperties", True) is True else None
        return lower_object(members, list(schema["properties"]), additional, self._rules)

    def _string(self, schema: Schema, keywords: set[str]) -> ir.Expression:
        self._expect(keywords, "type", "pattern", "minLength", "maxLength")
        if "pattern" in schema:
            pattern = embed(self.builder, parse_regex(schema["pattern"]))
            return ir.Sequence((QUOTE, pattern, QUOTE))
        if keywords == {"type"}:
            return self._rules.string
        characters = ir.Repeat(CANONICAL_CHARACTER, schema.get("minLength", 0), schema.get("maxLength"))
        return ir.Sequence((QUOTE, characters, QUOTE))

    def _decimal(self, schema: Schema) -> ir.Expression:
        """Whole bounds low <= 0 < high: what lies strictly between with any fraction, the bounds with a zero one."""
        low, high = schema["minimum"], schema["maximum"]
        digits = ir.Repeat(ir.ByteRange(ord("0"), ord("9")), 1, 16)
        fraction = ir.optional(ir.sequence(ir.text("."), digits))
        zeros = ir.optional(ir.sequence(ir.text("."), ir.Repeat(ir.text("0"), 1, 16)))
        options = [ir.sequence(integer_range(0, high - 1), fraction), ir.sequence(ir.text(str(high)), zeros)]
        if low < 0:
            options += [
                ir.sequence(ir.text("-"), integer_range(0, -low - 1), fraction),
                ir.sequence(ir.text(str(low)), zeros),
            ]
        return ir.choice(*options)

    def _definition(self, reference: str) -> ir.RuleReference:
        name = reference.removeprefix("#/$defs/")
        known = self._definitions.get(name)
        if known is None:
            known = self._definitions[name] = self.builder.declare(name)
            self.builder.define(known, self.expression(self.schema["$defs"][name]))
        return known

    @staticmethod
    def _literal(value: object) -> ir.Expression:
        return ir.Literal(canonical_string(value) if isinstance(value, str) else json.dumps(value).encode())

    @staticmethod
    def _expect(keywords: set[str], *known: str) -> None:
        if not keywords <= set(known):
            raise ValueError(f"not lowered: {sorted(keywords - set(known))}")
