"""From declared tools and a choice to the policy of an answer: who may be called, what is enforced, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infernix.errors import (
    ConstraintError,
    ConstraintTooLarge,
    InvalidChoice,
    InvalidGrammar,
    InvalidJsonSchema,
    InvalidRegex,
    InvalidToolConstraint,
    UnsatisfiableJsonSchema,
    UnsupportedJsonSchema,
)
from infernix.frontend.framing import ToolStyle
from infernix.frontend.tools.contract import ArgumentContract, ArgumentEncoding, ToolPolicy
from infernix.frontend.tools.selection import select_tools
from infernix.options import ConstraintKind
from infernix.tools import ToolChoice, ToolDefinition, ToolEnforcement, ToolMode

TEXT, JSON, HINTED = ArgumentEncoding
AUTOMATIC = ToolEnforcement.AUTOMATIC
CLOSED = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
F, G = ToolDefinition.of("f", {"type": "object"}), ToolDefinition.of("g")
STRICT = ToolDefinition.of("s", CLOSED, strict=True)


def select(
    tools: list[ToolDefinition],
    choice: ToolChoice | None = None,
    content: ConstraintKind | None = None,
    style: ToolStyle = ToolStyle.XML,
) -> ToolPolicy | None:
    return select_tools(tools, choice or ToolChoice(), style, content)


def names(policy: ToolPolicy | None) -> list[str]:
    assert policy is not None
    return [tool.name for tool in policy.tools]


class TestChoice:
    @pytest.mark.parametrize(
        ("choice", "tools", "constrained"),
        [
            (ToolChoice(), [F, G], True),
            (ToolChoice(enforcement=AUTOMATIC), [F, G], False),
            (ToolChoice(enforcement=AUTOMATIC), [F, STRICT], True),
            (ToolChoice(enforcement=AUTOMATIC, parallel=False), [F, G], True),
            (ToolChoice(enforcement=AUTOMATIC, allowed_names=("f",)), [F, G], True),
            (ToolChoice(ToolMode.REQUIRED, enforcement=AUTOMATIC), [F, G], True),
            # The strict tool may not be called, so that nothing is left that asks for a grammar but the list itself.
            (ToolChoice(enforcement=AUTOMATIC, allowed_names=("f",)), [F, STRICT], True),
            (ToolChoice(ToolMode.NONE, enforcement=AUTOMATIC), [F, G], True),
        ],
    )
    def test_what_is_enforced(self, choice: ToolChoice, tools: list[ToolDefinition], constrained: bool) -> None:
        policy = select(tools, choice)
        assert policy is not None
        assert policy.constrained == constrained
        assert policy.required == (choice.mode is ToolMode.REQUIRED)
        assert policy.parallel == choice.parallel

    def test_all_declared_tools_in_their_order(self) -> None:
        assert names(select([G, F, STRICT])) == ["g", "f", "s"]
        assert names(select([G, F, STRICT], ToolChoice(allowed_names=("s", "g", "g")))) == ["g", "s"]
        policy = select([G, F, STRICT], ToolChoice.named("s"))
        assert policy is not None
        assert [(tool.name, tool.index, tool.strict) for tool in policy.tools] == [("s", 2, True)]
        assert (policy.required, policy.parallel) == (True, False)

    @pytest.mark.parametrize("choice", [ToolChoice(ToolMode.NONE), ToolChoice(allowed_names=())])
    def test_no_tool_may_be_called(self, choice: ToolChoice) -> None:
        assert select([F], choice) == ToolPolicy((), required=False, parallel=True, constrained=True)
        assert select([F], choice, ConstraintKind.REGEX) is None

    def test_without_tools_there_is_nothing_to_enforce(self) -> None:
        assert select([]) is None
        assert select([], ToolChoice(parallel=False)) is None
        assert select([], ToolChoice(ToolMode.NONE)) == ToolPolicy((), False, True, True)

    @pytest.mark.parametrize("choice", [ToolChoice(ToolMode.REQUIRED), ToolChoice(ToolMode.REQUIRED, ())])
    def test_a_required_call_needs_a_tool(self, choice: ToolChoice) -> None:
        with pytest.raises(InvalidToolConstraint, match="no tool may be called"):
            select([] if choice.allowed_names is None else [F], choice)

    @pytest.mark.parametrize("mode", list(ToolMode))
    def test_allowed_names_are_declared(self, mode: ToolMode) -> None:
        with pytest.raises(InvalidToolConstraint, match="'x' is allowed, but not declared"):
            select([F], ToolChoice(mode, ("f", "x")))

    def test_a_name_is_declared_once(self) -> None:
        with pytest.raises(InvalidToolConstraint, match="comes twice at /0/name") as caught:
            select([F, G, F], ToolChoice(ToolMode.NONE))
        assert caught.value.pointer == "/0/name"

    @pytest.mark.parametrize(
        ("kind", "error"),
        [
            (ConstraintKind.GRAMMAR, InvalidGrammar),
            (ConstraintKind.CHOICE, InvalidChoice),
            (ConstraintKind.REGEX, InvalidRegex),
        ],
    )
    def test_only_json_stands_beside_tools(self, kind: ConstraintKind, error: type[ConstraintError]) -> None:
        with pytest.raises(error, match="active tools"):
            select([F], None, kind)

    @pytest.mark.parametrize("kind", [ConstraintKind.JSON_OBJECT, ConstraintKind.JSON_SCHEMA])
    def test_json_beside_tools_is_enforced(self, kind: ConstraintKind) -> None:
        policy = select([F], ToolChoice(enforcement=AUTOMATIC), kind)
        assert policy is not None
        assert policy.constrained


class TestHints:
    @pytest.mark.parametrize(
        ("schema", "hint"),
        [
            ({"type": "string"}, {"string"}),
            ({"type": ["string", "null"]}, {"string", "null"}),
            ({"type": "integer", "minimum": 1}, {"integer"}),
            ({"anyOf": [{"type": "integer"}, {"type": ["null", "boolean"]}]}, {"integer", "null", "boolean"}),
            ({"oneOf": [{"type": "number", "description": "d"}]}, {"number"}),
            ({"anyOf": [{"type": "integer"}, {"type": "array"}]}, None),
            ({"anyOf": [{"type": "integer"}, {"enum": ["a"]}]}, None),
            ({"anyOf": [{"type": "integer"}, True]}, None),
            ({"anyOf": []}, None),
            ({"enum": ["a"]}, None),
            ({"type": "float"}, None),
            ({"type": []}, None),
            ({"type": 1e400}, None),
            ({"$ref": "#/nowhere"}, None),
            (True, None),
            ([], None),
        ],
    )
    def test_declared_types(self, schema: Any, hint: set[str] | None) -> None:
        text = json.dumps({"properties": {"a": schema}}).replace("Infinity", "1e400")
        for style in ToolStyle:
            policy = select([ToolDefinition("f", parameters=text)], style=style)
            assert policy is not None
            encoding = TEXT if hint is not None and "string" in hint else HINTED
            if style is ToolStyle.JSON:
                encoding = JSON
            expected = ArgumentContract("a", encoding, None if hint is None else frozenset(hint))
            assert policy.tools[0].arguments == {"a": expected}
            assert policy.tools[0].parameters == ""

    @pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": None}, {"type": "object"}, {"oneOf": 3}])
    def test_nothing_is_declared(self, schema: Any) -> None:
        policy = select([ToolDefinition.of("f", schema)])
        assert policy is not None
        assert policy.tools[0].arguments == {}

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("{", "not valid JSON"),
            ("[]", "is an object"),
            ("true", "is an object"),
            ('{"a": 1, "a": 2}', "comes twice"),
            ("[" * 300, "MAX_SCHEMA_DEPTH"),
        ],
    )
    def test_what_cannot_be_read(self, text: str, reason: str) -> None:
        with pytest.raises(InvalidToolConstraint, match=reason) as caught:
            select([F, ToolDefinition("g", parameters=text)])
        assert caught.value.pointer == "/1/parameters"
        assert "tool 'g'" in caught.value.message


def strict(schema: Any) -> ToolDefinition:
    return ToolDefinition("s", parameters=schema if isinstance(schema, str) else json.dumps(schema), strict=True)


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


class TestStrictRoots:
    @pytest.mark.parametrize(
        "schema",
        [
            closed(),
            closed(a={"type": "string"}),
            {"$ref": "#/$defs/x", "$defs": {"x": closed(a=True)}},
            {"allOf": [{"type": "object"}, {"properties": {"a": {"type": "null"}}, "additionalProperties": False}]},
            {**closed(), "additionalProperties": {"not": {}}} | {"additionalProperties": {"enum": []}},
            {"anyOf": [closed(a={"type": "string"}), False]},
        ],
    )
    def test_one_closed_object(self, schema: Any) -> None:
        assert names(select([strict(schema)], style=ToolStyle.JSON)) == ["s"]

    @pytest.mark.parametrize(
        ("schema", "reason"),
        [
            ({}, "'type': 'object'"),
            (True, "'type': 'object'"),
            ({"type": ["object", "null"], "additionalProperties": False}, "'type': 'object'"),
            ({"properties": {"a": {}}, "additionalProperties": False}, "'type': 'object'"),
            ({"anyOf": [closed(a=True), closed(b=True)]}, "without alternatives"),
            ({"const": {"a": 1}}, "without alternatives"),
            ({**closed(a=True), "enum": [{"a": 1}]}, "without alternatives"),
            ({"type": "object"}, "'additionalProperties': false"),
            ({"type": "object", "properties": {"a": {}}}, "'additionalProperties': false"),
            ({**closed(), "additionalProperties": {"type": "string"}}, "'additionalProperties': false"),
            ({**closed(), "patternProperties": {"a": {}}}, "patternProperties"),
        ],
    )
    @pytest.mark.parametrize("style", list(ToolStyle))
    def test_what_is_no_closed_object(self, schema: Any, reason: str, style: ToolStyle) -> None:
        with pytest.raises(UnsupportedJsonSchema, match=reason) as caught:
            select([F, strict(schema)], style=style)
        assert caught.value.pointer.startswith("/1/parameters")
        assert "tool 's': " in caught.value.message

    @pytest.mark.parametrize(
        ("schema", "error", "pointer"),
        [
            ("{", InvalidJsonSchema, "/1/parameters"),
            ({"type": "objekt"}, InvalidJsonSchema, "/1/parameters/type"),
            (
                closed(a={"type": "string", "format": "date"}),
                UnsupportedJsonSchema,
                "/1/parameters/properties/a/format",
            ),
            ('{"properties": {"a": {"minimum": 1e-999}}}', UnsupportedJsonSchema, "/1/parameters/properties/a/minimum"),
            (closed(a={"enum": []}), UnsatisfiableJsonSchema, "/1/parameters/properties/a/enum"),
            (False, UnsatisfiableJsonSchema, "/1/parameters"),
        ],
    )
    def test_errors_lead_into_the_list_of_tools(
        self, schema: Any, error: type[UnsupportedJsonSchema], pointer: str
    ) -> None:
        with pytest.raises(error) as caught:
            select([F, strict(schema)])
        assert caught.value.pointer == pointer
        assert caught.value.message.startswith("tool 's': ")
        assert caught.value.message.endswith(f" at {pointer}")

    def test_bounds_are_named(self) -> None:
        with pytest.raises(ConstraintTooLarge, match=r"tool 's': .*MAX_SCHEMA_DEPTH.* at /0/parameters"):
            select([strict("[" * 300)])

    def test_tools_that_may_not_be_called_are_not_looked_at(self) -> None:
        assert names(select([F, strict(True)], ToolChoice(allowed_names=("f",)))) == ["f"]


class TestStrictEncodings:
    @pytest.mark.parametrize(
        ("schema", "encoding"),
        [
            ({"type": "string"}, TEXT),
            ({"type": "string", "pattern": "^a", "maxLength": 9}, TEXT),
            ({"enum": ["a", "b"]}, TEXT),
            ({"const": ""}, TEXT),
            ({"anyOf": [{"type": "string", "maxLength": 2}, {"const": "abc"}]}, TEXT),
            ({"$ref": "#/$defs/s"}, TEXT),
            ({"type": "integer"}, JSON),
            ({"type": ["object", "null"]}, JSON),
            ({"enum": [1, None, ["a"]]}, JSON),
            ({"type": ["string", "null"], "enum": [None]}, JSON),
            ({"type": ["string", "null"], "enum": ["x"]}, TEXT),
            ({"anyOf": [{"type": "integer"}, {"type": "string", "enum": []}]}, JSON),
        ],
    )
    def test_exactly_strings_are_text(self, schema: Any, encoding: ArgumentEncoding) -> None:
        document = {**closed(a=schema), "$defs": {"s": {"type": "string"}}}
        for style in ToolStyle:
            policy = select([strict(document)], style=style)
            assert policy is not None
            expected = encoding if style is ToolStyle.XML else JSON
            assert policy.tools[0].arguments == {"a": ArgumentContract("a", expected)}

    @pytest.mark.parametrize(
        "schema", [True, {}, {"type": ["string", "null"]}, {"enum": ["a", 1]}, {"anyOf": [{"type": "string"}, {}]}]
    )
    def test_strings_and_other_values_do_not_mix(self, schema: Any) -> None:
        document = {**closed(), "properties": {"b": {"type": "null"}, "a": schema}}
        with pytest.raises(UnsupportedJsonSchema, match="tool 's': 'a' mixes strings") as caught:
            select([F, strict(document)])
        assert caught.value.pointer == "/1/parameters/properties/a"
        assert names(select([F, strict(document)], style=ToolStyle.JSON)) == ["f", "s"]

    @pytest.mark.parametrize(
        "schema",
        [
            {"const": "x\n</parameter>y"},
            {"enum": ["\n</parameter>", "\n\n</parameter>\n"]},
            {"type": "string", "pattern": "\n</parameter>"},
        ],
    )
    def test_a_required_value_that_cannot_be_written(self, schema: Any) -> None:
        with pytest.raises(UnsupportedJsonSchema, match="'a' is required") as caught:
            select([strict(closed(a=schema))])
        assert caught.value.pointer == "/0/parameters/properties/a"
        assert names(select([strict(closed(a=schema))], style=ToolStyle.JSON)) == ["s"]
        assert names(select([strict({**closed(a=schema), "required": []})])) == ["s"]

    @pytest.mark.parametrize("name", ["", "a>b", "<", "a\nb", "\r"])
    def test_a_name_that_cannot_be_written(self, name: str) -> None:
        with pytest.raises(UnsupportedJsonSchema, match="argument name") as caught:
            select([strict(closed(**{name: {"type": "null"}}))])
        assert caught.value.pointer == f"/0/parameters/properties/{name}"
        assert names(select([strict(closed(**{name: {"type": "null"}}))], style=ToolStyle.JSON)) == ["s"]

    @pytest.mark.parametrize("required", [["content"], []])
    def test_a_bound_is_named_with_tool_and_place(self, required: list[str]) -> None:
        with pytest.raises(UnsupportedJsonSchema, match="tool 's': ") as caught:
            select([strict({**closed(content={"type": "string", "maxLength": 100_000}), "required": required})])
        assert caught.value.pointer.startswith("/0/parameters/properties/content")
        assert names(select([strict(closed(content={"type": "string", "maxLength": 100_000}))], style=ToolStyle.JSON))
