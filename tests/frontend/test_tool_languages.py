"""The calls of strict and of open tools: which arguments belong to the language, in both ways of writing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from infernix.frontend.output_grammar import OutputGrammar
from infernix.tools import ToolChoice, ToolDefinition, ToolMode
from support.answer_language import COMPILERS, FRAMINGS, MARKED, accepts, accepts_tokens, closed
from support.tool_answers import answer_grammar, json_call_text, spell_answer, xml_call_text

WEATHER = ToolDefinition.of("weather", {"type": "object", "properties": {"city": {"type": "string"}}})


class TestStrictXml:
    """Field cases of strict tools, in the XML way of writing."""

    FRAMING = FRAMINGS["xml"]

    def _grammar(self, schema: str) -> OutputGrammar:
        tool = ToolDefinition("s", parameters=schema, strict=True)
        return answer_grammar(self.FRAMING, [tool], ToolChoice(ToolMode.REQUIRED))

    def accepts(self, schema: Any, *arguments: Sequence[tuple[str, str]]) -> bool:
        grammar = self._grammar(json.dumps(schema, ensure_ascii=False))
        return accepts(self.FRAMING, grammar, *(xml_call_text("s", call) for call in arguments))

    def test_declared_order_and_optional_arguments(self) -> None:
        schema = closed("b", a={"type": "string"}, b={"type": "boolean"}, c={"type": "null"})
        a, b, c = ("a", "x"), ("b", "true"), ("c", "null")
        assert self.accepts(schema, [b], [a, b], [b, c], [a, b, c])
        assert not self.accepts(schema, [], [a], [b, a], [a, c], [b, b], [a, a, b], [("d", "1"), b], [b, c, c])

    def test_no_arguments_at_all(self) -> None:
        assert self.accepts(closed(), [])
        assert not self.accepts(closed(), [("", "")], [("a", "")])

    def test_names_of_any_script(self) -> None:
        schema = closed("城市", "日期", 城市={"type": "string"}, 日期={"type": "string"})
        assert self.accepts(schema, [("城市", "東京"), ("日期", "x")])
        assert not self.accepts(
            schema, [("城市", "東京")], [("日期", "x"), ("城市", "東京")], [("城市", ""), ("城市", "")]
        )

    def test_strings_as_they_are(self) -> None:
        schema = closed("a", a={"type": "string"})
        values = [
            "",
            " x ",
            "\n",
            "\n\n",
            '"',
            "\\n",
            "</parameter>",
            "<parameter=b>\n1",
            "\n</parameter",
            "<tool_call>é",
        ]
        assert self.accepts(schema, *([("a", value)] for value in values if "<tool_call>" not in value))
        spelled = xml_call_text("s", [("a", values[-1])]).replace("<tool_call>é", "<tool_\0call>é")
        compiled = COMPILERS[True].compile(self._grammar(json.dumps(schema))).grammar
        tokens = spell_answer(MARKED, self.FRAMING, spelled)
        tokens.remove(0)
        assert accepts_tokens(compiled, tokens)
        assert not self.accepts(schema, [("a", "\n</parameter>")], [("a", "x\n</parameter>\ny")])

    def test_length_and_pattern_hold_together_with_the_delimiter(self) -> None:
        schema = closed("a", a={"type": "string", "pattern": "^[^x]*$", "minLength": 1, "maxLength": 13})
        assert self.accepts(schema, [("a", "é")], [("a", "\n</parameter")], [("a", "\n" * 13)])
        assert not self.accepts(schema, [("a", "")], [("a", "x")], [("a", "é" * 14)], [("a", "\n</parameter>")])

    def test_listed_strings_that_hold_the_delimiter_drop_out(self) -> None:
        schema = closed("a", a={"enum": ["b", "bc", "x\n</parameter>\ny", ""]})
        assert self.accepts(schema, [("a", "b")], [("a", "bc")], [("a", "")])
        assert not self.accepts(schema, [("a", "x\n</parameter>\ny")], [("a", "x")], [("a", '"b"')])

    def test_a_union_of_strings(self) -> None:
        schema = closed("a", a={"anyOf": [{"type": "string", "maxLength": 1}, {"const": "yes"}, {"const": "é\n"}]})
        assert self.accepts(schema, [("a", "y")], [("a", "yes")], [("a", "é\n")], [("a", "")])
        assert not self.accepts(schema, [("a", "no")])

    def test_an_optional_argument_that_cannot_be_written_never_comes(self) -> None:
        schema = closed("b", a={"const": "\n</parameter>"}, b={"type": "null"})
        assert self.accepts(schema, [("b", "null")])
        assert not self.accepts(schema, [("a", ""), ("b", "null")])

    def test_json_in_the_spacing_of_templates(self) -> None:
        schema = closed(
            "o",
            o={
                "type": "object",
                "properties": {
                    "a": {"type": "array", "items": {"type": ["string", "number"]}},
                    "c": {"const": {"x": [1, {"y": "z,:"}]}},
                },
            },
        )
        written = [
            "{}",
            '{"a": []}',
            '{"a": ["é", 1.5, "a,b:c"], "c": {"x": [1, {"y": "z,:"}]}}',
            '{"c": {"x": [1, {"y": "z,:"}]}, "other": {"p": [1, 2]}}',
        ]
        assert self.accepts(schema, *([("o", value)] for value in written))
        for value in written[2:]:
            for wrong in (value.replace(", ", ","), value.replace(": ", ":"), value.replace("[", "[ "), value + " "):
                assert not self.accepts(schema, [("o", wrong)])
        assert not self.accepts(schema, [("o", "{ }")], [("o", " {}")], [("o", '{"a": [ ]}')], [("o", "\n{}")])

    def test_integers_and_numbers(self) -> None:
        schema = closed("i", "n", i={"type": "integer"}, n={"type": "number"})
        assert self.accepts(schema, [("i", "9223372036854775807"), ("n", "-0.5e10")])
        assert not self.accepts(
            schema, [("i", "9223372036854775808"), ("n", "1")], [("i", "1.0"), ("n", "1")], [("i", "1"), ("n", "1e400")]
        )

    def test_a_schema_that_refers_to_itself(self) -> None:
        schema = closed("v", v={"type": "integer"}, next={"$ref": "#"})
        assert self.accepts(schema, [("v", "1")], [("v", "1"), ("next", '{"v": 2, "next": {"v": 3}}')])
        assert not self.accepts(schema, [("v", "1"), ("next", "{}")])

    def test_many_optional_arguments(self) -> None:
        names = [f"p{number}" for number in range(300)]
        schema = closed(**{name: {"type": "integer"} for name in names})
        assert self.accepts(schema, [], [(name, "1") for name in names], [(name, "1") for name in names[::7]])
        assert not self.accepts(schema, [(name, "1") for name in reversed(names[:2])])


class TestStrictJson:
    FRAMING = FRAMINGS["json"]

    def accepts(self, schema: Any, *arguments: str) -> bool:
        tool = ToolDefinition.of("s", schema, strict=True)
        grammar = answer_grammar(self.FRAMING, [tool], ToolChoice(ToolMode.REQUIRED))
        return accepts(self.FRAMING, grammar, *(json_call_text("s", text) for text in arguments))

    def test_arguments_satisfy_the_schema(self) -> None:
        schema = closed("b", a={"type": ["string", "null"], "maxLength": 2}, b={"enum": [1, "x"]})
        assert self.accepts(schema, '{"b": 1}', '{"a": null, "b": "x"}', '{"a": "\\u0001é", "b": 1}')
        assert not self.accepts(
            schema, "{}", '{"b": 2}', '{"a": "abc", "b": 1}', '{"b": 1, "a": "x"}', '{"b":1}', '{"b": 1 }'
        )
        assert self.accepts(closed(), "{}")
        assert not self.accepts(closed(), '{"a": 1}', "{ }")

    def test_any_name_and_every_script(self) -> None:
        schema = closed("", "城>市", **{"": {"type": "null"}, "城>市": {"const": "\n</parameter>"}})
        assert self.accepts(schema, '{"": null, "城>市": "\\n</parameter>"}')


class TestOpenArguments:
    def test_any_representable_name_in_any_order(self) -> None:
        framing = FRAMINGS["xml"]
        grammar = answer_grammar(framing, [WEATHER])
        calls = [
            [],
            [("x", "1"), ("city", "")],
            [("城 市", "\n\n"), ('"', "</parameter>")],
            [("city", "a\n<parameter=b>")],
        ]
        assert accepts(framing, grammar, *(xml_call_text("weather", call) for call in calls))
        wrong = [[("", "1")], [("a<b", "1")], [("a\nb", "1")], [("a\rb", "1")], [("a", "\n</parameter>")]]
        assert not accepts(framing, grammar, *(xml_call_text("weather", call) for call in wrong))

    def test_any_object(self) -> None:
        framing = FRAMINGS["json"]
        grammar = answer_grammar(framing, [WEATHER])
        written = ["{}", '{"x": [1, {"y": null}], "": "\\u00e9\\ud83d\\ude00"}']
        assert accepts(framing, grammar, *(json_call_text("weather", text) for text in written))
        wrong = ["[]", "null", '{"x":1}', "{ }", '{"x": 1,}', '{"x": "\\ud83d"}', '{"x": 1}\n']
        assert not accepts(framing, grammar, *(json_call_text("weather", text) for text in wrong))

    def test_strict_and_open_tools_side_by_side(self) -> None:
        strict = ToolDefinition.of("weather_at", closed("t", t={"type": "integer"}), strict=True)
        for name in ("xml", "json"):
            framing = FRAMINGS[name]
            grammar = answer_grammar(framing, [WEATHER, strict])
            if name == "xml":
                calls = [xml_call_text("weather", [("t", "x")]), xml_call_text("weather_at", [("t", "1")])]
                wrong = xml_call_text("weather_at", [("t", "x")])
            else:
                calls = [json_call_text("weather", '{"t": "x"}'), json_call_text("weather_at", '{"t": 1}')]
                wrong = json_call_text("weather_at", '{"t": "x"}')
            assert accepts(framing, grammar, *calls, "\n".join(calls))
            assert not accepts(framing, grammar, wrong, f"{calls[0]}\n{wrong}")
