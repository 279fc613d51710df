"""The language of an answer, through every phase, tool choice and kind of content, in both ways of writing calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from infernix.errors import ConstraintDeadEnd, InvalidGrammar, InvalidToolConstraint, UnsatisfiableJsonSchema
from infernix.frontend.framing import Framing, ToolStyle
from infernix.frontend.output_grammar import OutputGrammar, output_grammar
from infernix.frontend.phases import StartingPhase
from infernix.frontend.tools.contract import ToolPolicy
from infernix.frontend.tools.selection import select_tools
from infernix.matching import CompiledGrammar, GrammarCompiler
from infernix.matching.sources import constraint_key
from infernix.options import OutputConstraint
from infernix.results import CacheAccess
from infernix.tools import ToolChoice, ToolDefinition, ToolEnforcement, ToolMode
from support.tool_answers import (
    answer_grammar,
    framing_of,
    json_call_text,
    spell_answer,
    tool_vocabulary,
    xml_call_text,
)
from support.vocabularies import text_vocabulary

RAW, THINKING, CONTENT = StartingPhase
MERGED = ("\n\n", "\n\n{", "\n\nHi", "</think>", "<tool_call>", "</function>\n", ">\n", "\n</", '": ', ', "', "{}")
MARKED, UNMARKED = tool_vocabulary(MERGED), tool_vocabulary(MERGED, has_marks=False)
FRAMINGS = {
    "xml": framing_of(MARKED, ToolStyle.XML),
    "json": framing_of(MARKED, ToolStyle.JSON),
    "xml by text": framing_of(UNMARKED, ToolStyle.XML),
    "json by text": framing_of(UNMARKED, ToolStyle.JSON),
}
COMPILERS = {True: GrammarCompiler(MARKED), False: GrammarCompiler(UNMARKED)}
FRAMING_NAMES = pytest.mark.parametrize("framing_name", list(FRAMINGS))

F = ToolDefinition.of("f", {"type": "object", "properties": {"n": {"type": "integer"}}})
G = ToolDefinition.of("g")
WEATHER = ToolDefinition.of("weather", {"type": "object", "properties": {"city": {"type": "string"}}})


def closed(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def accepts(framing: Framing, grammar: OutputGrammar, *answers: str, num_spellings: int = 2) -> bool:
    """Whether all the answers belong to the language, or none, each in several spellings: anything else is an error."""
    compiler = COMPILERS[framing.tool_open is not None]
    compiled = compiler.compile(grammar).grammar
    found = {
        _accepts(compiled, spell_answer(compiled.vocabulary, framing, answer, rng))
        for answer in answers
        for rng in (None, *(Random(f"{seed}{answer}") for seed in range(num_spellings - 1)))
    }
    assert len(found) == 1, answers
    return found.pop()


def _accepts(compiled: CompiledGrammar, tokens: Sequence[int]) -> bool:
    matcher = compiled.new_matcher()
    row = np.zeros(compiled.vocabulary.num_mask_words, np.int32)
    eos = min(compiled.vocabulary.eos_ids)
    for token in (*tokens, eos):
        assert matcher.fill(row)
        is_legal = bool(row[token >> 5] >> (token & 31) & 1)
        assert matcher.accept(token) == is_legal
        if not is_legal:
            return False
    return matcher.is_terminated


def f_call(framing_name: str, name: str = "f", value: str = "1") -> str:
    if framing_name.startswith("xml"):
        return xml_call_text(name, [("n", value)])
    return json_call_text(name, f'{{"n": {value}}}')


class TestChoices:
    @FRAMING_NAMES
    def test_auto_is_text_or_calls_behind_it(self, framing_name: str) -> None:
        framing = FRAMINGS[framing_name]
        grammar = answer_grammar(framing, [F, G])
        call, other = f_call(framing_name), f_call(framing_name, "g")
        assert accepts(
            framing, grammar, "", "Hi.", "é\n\n", call, f"Hi.\n\n{call}", f"{call}\n{other}\n{call}", "<tool_"
        )
        assert not accepts(
            framing,
            grammar,
            f"{call}\n",
            f"{call}{other}",
            f"{call}\n\n{other}",
            f"{call}\nHi.",
            f_call(framing_name, "h"),
            f_call(framing_name, "ff"),
            call.removesuffix("</tool_call>"),
            call.replace("\n", "", 1),
            "<tool_call>",
            "</think>",
        )

    @FRAMING_NAMES
    def test_required_begins_with_a_call(self, framing_name: str) -> None:
        framing = FRAMINGS[framing_name]
        grammar = answer_grammar(framing, [F, G], ToolChoice(ToolMode.REQUIRED))
        call, other = f_call(framing_name), f_call(framing_name, "g")
        assert accepts(framing, grammar, call, other, f"{call}\n{other}\n{call}")
        assert not accepts(framing, grammar, "", "Hi.", f"Hi.{call}", f"\n{call}", f"{call}Hi.")

    @FRAMING_NAMES
    def test_not_parallel_is_one_call(self, framing_name: str) -> None:
        framing = FRAMINGS[framing_name]
        call, other = f_call(framing_name), f_call(framing_name, "g")
        grammar = answer_grammar(framing, [F, G], ToolChoice(parallel=False))
        assert accepts(framing, grammar, "Hi.", call, f"Hi.{call}")
        assert not accepts(framing, grammar, f"{call}\n", f"{call}\n{other}")
        grammar = answer_grammar(framing, [F, G], ToolChoice.named("g"))
        assert accepts(framing, grammar, other)
        assert not accepts(framing, grammar, "Hi.", call, f"{other}\n", f"{other}\n{other}")

    @FRAMING_NAMES
    def test_none_is_text_without_an_opener(self, framing_name: str) -> None:
        framing = FRAMINGS[framing_name]
        grammar = answer_grammar(framing, [F, G], ToolChoice(ToolMode.NONE))
        assert accepts(framing, grammar, "", "Hi.\n<tool_cal", "<function=f>")
        assert not accepts(framing, grammar, "<tool_call>", f"Hi.{f_call(framing_name)}")

    @pytest.mark.parametrize("style", ["xml", "json"])
    def test_a_mark_spelled_by_ordinary_tokens_is_text(self, style: str) -> None:
        framing = FRAMINGS[style]
        for choice in (ToolChoice(), ToolChoice(ToolMode.NONE)):
            compiled = COMPILERS[True].compile(answer_grammar(framing, [F], choice)).grammar
            assert _accepts(compiled, list(b"Hi <tool_call>\n<function=x> </tool_call></think>"))
            assert _accepts(compiled, [MARKED.token_bytes.index(b"<tool_call>")])
        required = COMPILERS[True].compile(answer_grammar(framing, [F], ToolChoice(ToolMode.REQUIRED))).grammar
        assert not _accepts(required, list(f_call(style).encode()))

    @FRAMING_NAMES
    def test_allowed_names(self, framing_name: str) -> None:
        framing = FRAMINGS[framing_name]
        grammar = answer_grammar(framing, [F, G], ToolChoice(allowed_names=("g",)))
        assert accepts(framing, grammar, "Hi.", f_call(framing_name, "g"))
        assert not accepts(framing, grammar, f_call(framing_name, "f"))

    @FRAMING_NAMES
    def test_names_of_any_script_that_begin_alike(self, framing_name: str) -> None:
        framing = FRAMINGS[framing_name]
        names = ["get", "get_weather", "get weather", "天気", "天気予報", 'quo"te', "back\\slash", "a" * 128, "🙂"]
        grammar = answer_grammar(framing, [ToolDefinition.of(name) for name in names])
        assert accepts(framing, grammar, *(f_call(framing_name, name) for name in names))
        assert not accepts(framing, grammar, *(f_call(framing_name, name) for name in ("ge", "get_", "天", "a" * 127)))


class TestJsonContent:
    SCHEMA = OutputConstraint.json_schema(closed("answer", answer={"type": "string"}))

    @FRAMING_NAMES
    def test_json_or_calls_and_no_mixture(self, framing_name: str) -> None:
        framing, call = FRAMINGS[framing_name], f_call(framing_name)
        for choice in (ToolChoice(), ToolChoice(enforcement=ToolEnforcement.AUTOMATIC)):
            grammar = answer_grammar(framing, [F], choice, content=self.SCHEMA)
            assert accepts(framing, grammar, '{"answer": "Paris"}', '{ "answer":"Paris" }', call, f"{call}\n{call}")
            assert not accepts(
                framing,
                grammar,
                "",
                "Hi.",
                "{}",
                f'{{"answer": "Paris"}}{call}',
                f'{call}\n{{"answer": ""}}',
                f" {call}",
            )

    @pytest.mark.parametrize("style", ["xml", "json"])
    def test_content_may_spell_every_mark(self, style: str) -> None:
        grammar = answer_grammar(FRAMINGS[style], [F], content=self.SCHEMA)
        compiled = COMPILERS[True].compile(grammar).grammar
        text = b'{"answer": "</think> <tool_call>"}'
        assert _accepts(compiled, list(text))
        assert not _accepts(compiled, [*text[:20], FRAMINGS[style].tool_open or 0, *text[20:]])

    @FRAMING_NAMES
    def test_required_is_calls_only(self, framing_name: str) -> None:
        framing, call = FRAMINGS[framing_name], f_call(framing_name)
        grammar = answer_grammar(framing, [F], ToolChoice(ToolMode.REQUIRED), content=self.SCHEMA)
        assert accepts(framing, grammar, call)
        assert not accepts(framing, grammar, '{"answer": "Paris"}')

    @FRAMING_NAMES
    def test_none_is_json_only(self, framing_name: str) -> None:
        framing, call = FRAMINGS[framing_name], f_call(framing_name)
        grammar = answer_grammar(framing, [F], ToolChoice(ToolMode.NONE), content=self.SCHEMA)
        assert accepts(framing, grammar, '{"answer": "<tool_call>"}' if "text" in framing_name else '{"answer": ""}')
        assert not accepts(framing, grammar, call, "Hi.")

    @pytest.mark.parametrize("choice", [ToolChoice(), ToolChoice(ToolMode.REQUIRED)])
    def test_a_schema_that_nothing_satisfies_is_refused_beside_tools(self, choice: ToolChoice) -> None:
        grammar = answer_grammar(FRAMINGS["xml"], [F], choice, content=OutputConstraint.json_schema(False))
        with pytest.raises(UnsatisfiableJsonSchema):
            COMPILERS[True].compile(grammar)


class TestThinking:
    @FRAMING_NAMES
    def test_thinking_stands_before_everything(self, framing_name: str) -> None:
        framing, call = FRAMINGS[framing_name], f_call(framing_name)
        schema = OutputConstraint.json_schema({"type": "boolean"})
        bodies: list[tuple[OutputGrammar | None, list[str], list[str]]] = [
            (output_grammar(framing, THINKING, None, schema), ["true"], ["", "tru", call]),
            (answer_grammar(framing, [F], phase=THINKING), ["", "Hi.", "\nHi.", call], [f"{call}Hi."]),
            (answer_grammar(framing, [F], ToolChoice(ToolMode.REQUIRED), phase=THINKING), [call], ["", "Hi."]),
            (answer_grammar(framing, [F], ToolChoice(ToolMode.NONE), phase=THINKING), ["", "Hi."], [call]),
            (answer_grammar(framing, [F], phase=THINKING, content=schema), ["true", call], ["", "Hi."]),
        ]
        for grammar, members, others in bodies:
            assert grammar is not None
            for reasoning in ("", "Hmm.\n", "true", call):
                begin = f"{reasoning}</think>\n\n"
                assert accepts(framing, grammar, *(begin + body for body in members))
                assert not accepts(framing, grammar, *(begin + body for body in others))
                # The end of thinking is one token and two line breaks, and before it there is no end of the answer.
                assert not accepts(framing, grammar, reasoning, f"{reasoning}</think>", f"{reasoning}</think>\n")
            assert not accepts(framing, grammar, *(f"</think>{space}{members[-1]}" for space in ("", "\n", " \n")))

    def test_thinking_is_tokens_and_ends_with_a_token(self) -> None:
        framing = FRAMINGS["xml"]
        grammar = output_grammar(framing, THINKING, None, OutputConstraint.json_object())
        assert grammar is not None
        compiled = COMPILERS[True].compile(grammar).grammar
        assert framing.think_close is not None
        assert framing.think_open is not None
        separator = MARKED.token_bytes.index(b"\n\n{")
        spelled = [MARKED.token_bytes.index(b"</think>"), *b"</think>\n\n{}"]
        # Spelled by ordinary tokens it is reasoning; broken bytes are too, and so are the marks that pass.
        begin = [*spelled, 0xFF, framing.think_open, *framing.passing_ids]
        assert _accepts(compiled, [*begin, framing.think_close, *b"\n\n{}"])
        assert _accepts(compiled, [*begin, framing.think_close, separator, ord("}")])
        assert not _accepts(compiled, [*begin, *b"\n\n{}"])
        assert not _accepts(compiled, [*begin, framing.think_close, *b"\n\n", framing.think_close])

    def test_content_keeps_a_space_after_the_separator(self) -> None:
        framing = FRAMINGS["xml"]
        grammar = output_grammar(framing, THINKING, None, OutputConstraint.grammar('root ::= " a" | "\\n"'))
        assert grammar is not None
        assert accepts(framing, grammar, "</think>\n\n a", "x</think>\n\n\n")
        assert not accepts(framing, grammar, "</think>\n\na", "</think>\n\n  a")

    def test_prompts_past_thinking_and_raw_ones_begin_with_the_content(self) -> None:
        framing = FRAMINGS["xml"]
        constraint = OutputConstraint.choice(["a", "b"])
        for phase in (CONTENT, RAW):
            grammar = output_grammar(framing, phase, None, constraint)
            assert grammar is not None
            assert accepts(framing, grammar, "a", "b")
            assert not accepts(framing, grammar, "", "</think>\n\na", "c")

    def test_a_model_without_the_closing_token_does_not_think(self) -> None:
        grammar = output_grammar(Framing(), THINKING, None, OutputConstraint.choice(["a"]))
        assert grammar is not None
        assert not grammar.thinks

    @pytest.mark.parametrize("text", ["", "root ::= root", 'root ::= "a'])
    def test_a_grammar_in_it_is_read_as_one_by_itself(self, text: str) -> None:
        grammar = output_grammar(FRAMINGS["xml"], THINKING, None, OutputConstraint.grammar(text))
        assert grammar is not None
        with pytest.raises(InvalidGrammar) as framed:
            COMPILERS[True].compile(grammar)
        with pytest.raises(InvalidGrammar) as bare:
            COMPILERS[True].compile(OutputConstraint.grammar(text))
        assert framed.value.message == bare.value.message

    def test_content_that_no_token_can_begin_is_found_behind_thinking(self) -> None:
        vocabulary = text_vocabulary(["a", "\n\n", "\n"], control=["</think>"])
        framing = framing_of(vocabulary, ToolStyle.XML)
        compiler = GrammarCompiler(vocabulary)
        for text, is_dead in (("ab", False), ("b", True)):
            grammar = output_grammar(framing, THINKING, None, OutputConstraint.choice([text]))
            assert grammar is not None
            if is_dead:
                with pytest.raises(ConstraintDeadEnd):
                    compiler.compile(grammar)
            else:
                assert compiler.compile(grammar).access is CacheAccess.BUILT


class TestNothingToEnforce:
    def test_no_grammar(self) -> None:
        framing = FRAMINGS["xml"]
        free = ToolPolicy((), required=False, parallel=True, constrained=False)
        for phase in StartingPhase:
            assert output_grammar(framing, phase, None, None) is None
        assert output_grammar(framing, THINKING, free, None) is None

    def test_a_raw_text_has_no_calls(self) -> None:
        framing = FRAMINGS["xml"]
        policy = select_tools([F], ToolChoice(), ToolStyle.XML, None)
        with pytest.raises(InvalidToolConstraint, match="continued as it stands"):
            output_grammar(framing, RAW, policy, None)
        assert output_grammar(framing, RAW, ToolPolicy((), False, True, True), None) is None


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
        assert _accepts(compiled, tokens)
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


class TestKeys:
    BASE = ToolDefinition.of("f", {"type": "object", "properties": {"a": {"type": "string"}}}, description="d")

    def test_of_an_open_tool_only_the_name_counts(self) -> None:
        other = ToolDefinition.of("f", {"type": "object", "properties": {"b": {"type": "integer"}}}, description="e")
        for framing in FRAMINGS.values():
            grammar = answer_grammar(framing, [self.BASE])
            assert grammar.cache_key == answer_grammar(framing, [other]).cache_key
            # Nor does its place, of which no error can speak.
            assert grammar.cache_key == answer_grammar(framing, [G, other], ToolChoice(allowed_names=("f",))).cache_key

    def test_a_compiled_grammar_is_shared(self) -> None:
        compiler = GrammarCompiler(MARKED)
        grammars = [answer_grammar(FRAMINGS["xml"], [self.BASE], phase=THINKING) for _ in range(2)]
        found = [compiler.compile(grammar) for grammar in grammars]
        assert [compilation.access for compilation in found] == [CacheAccess.BUILT, CacheAccess.HIT]
        assert found[0].grammar is found[1].grammar

    def test_all_that_changes_the_language_changes_the_key(self) -> None:
        strict = ToolDefinition.of("s", closed(a={"type": "string"}), strict=True)
        spaced = ToolDefinition("s", parameters=strict.parameters.replace(" ", ""), strict=True)
        content = OutputConstraint.json_object()
        grammars = [
            *(answer_grammar(framing, [self.BASE]) for framing in FRAMINGS.values()),
            answer_grammar(FRAMINGS["xml"], [self.BASE], phase=THINKING),
            answer_grammar(FRAMINGS["xml"], [self.BASE, G]),
            answer_grammar(FRAMINGS["xml"], [self.BASE], ToolChoice(parallel=False)),
            answer_grammar(FRAMINGS["xml"], [self.BASE], ToolChoice(ToolMode.REQUIRED)),
            answer_grammar(FRAMINGS["xml"], [self.BASE], ToolChoice(ToolMode.NONE)),
            answer_grammar(FRAMINGS["xml"], [self.BASE], content=content),
            answer_grammar(FRAMINGS["xml"], [self.BASE], content=OutputConstraint.json_schema({})),
            answer_grammar(FRAMINGS["xml"], [strict]),
            answer_grammar(FRAMINGS["xml"], [spaced]),
            answer_grammar(FRAMINGS["xml"], [self.BASE, strict]),
            answer_grammar(FRAMINGS["xml"], [strict, self.BASE]),
            output_grammar(FRAMINGS["xml"], THINKING, None, content),
            output_grammar(FRAMINGS["xml by text"], THINKING, None, content),
            output_grammar(FRAMINGS["xml"], CONTENT, None, content),
        ]
        keys = [grammar.cache_key for grammar in grammars if grammar is not None]
        assert len(set(keys)) == len(grammars)

    def test_bare_content_is_the_constraint_itself(self) -> None:
        content = OutputConstraint.choice(["b", "a"])
        for phase in (RAW, CONTENT):
            grammar = output_grammar(FRAMINGS["xml"], phase, None, content)
            assert grammar is not None
            assert grammar.cache_key == constraint_key(OutputConstraint.choice(["a", "b"]))
