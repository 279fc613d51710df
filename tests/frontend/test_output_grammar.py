"""The language of an answer, through every phase, tool choice and kind of content, in both ways of writing calls."""

from __future__ import annotations

import pytest

from infernix.errors import ConstraintDeadEnd, InvalidGrammar, InvalidToolConstraint, UnsatisfiableJsonSchema
from infernix.frontend.framing import Framing, ToolStyle
from infernix.frontend.output_grammar import OutputGrammar, output_grammar
from infernix.frontend.phases import StartingPhase
from infernix.frontend.tools.contract import ToolPolicy
from infernix.frontend.tools.selection import select_tools
from infernix.matching import GrammarCompiler
from infernix.matching.sources import constraint_key
from infernix.options import OutputConstraint
from infernix.results import CacheAccess
from infernix.tools import ToolChoice, ToolDefinition, ToolEnforcement, ToolMode
from support.answer_language import COMPILERS, FRAMINGS, MARKED, accepts, accepts_tokens, closed
from support.tool_answers import (
    answer_grammar,
    framing_of,
    json_call_text,
    xml_call_text,
)
from support.vocabularies import text_vocabulary

RAW, THINKING, CONTENT = StartingPhase
FRAMING_NAMES = pytest.mark.parametrize("framing_name", list(FRAMINGS))

F = ToolDefinition.of("f", {"type": "object", "properties": {"n": {"type": "integer"}}})
G = ToolDefinition.of("g")


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
            assert accepts_tokens(compiled, list(b"Hi <tool_call>\n<function=x> </tool_call></think>"))
            assert accepts_tokens(compiled, [MARKED.token_bytes.index(b"<tool_call>")])
        required = COMPILERS[True].compile(answer_grammar(framing, [F], ToolChoice(ToolMode.REQUIRED))).grammar
        assert not accepts_tokens(required, list(f_call(style).encode()))

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
        assert accepts_tokens(compiled, list(text))
        assert not accepts_tokens(compiled, [*text[:20], FRAMINGS[style].tool_open or 0, *text[20:]])

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
        assert accepts_tokens(compiled, [*begin, framing.think_close, *b"\n\n{}"])
        assert accepts_tokens(compiled, [*begin, framing.think_close, separator, ord("}")])
        assert not accepts_tokens(compiled, [*begin, *b"\n\n{}"])
        assert not accepts_tokens(compiled, [*begin, framing.think_close, *b"\n\n", framing.think_close])

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
