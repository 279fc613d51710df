"""An output that continues a given text."""

from __future__ import annotations

from random import Random

import pytest

from infernix.errors import (
    ConstraintError,
    InvalidChoice,
    InvalidGrammar,
    InvalidJsonSchema,
    InvalidRegex,
    InvalidToolConstraint,
)
from infernix.frontend.budget import OutputBudget
from infernix.frontend.constraint import ConstraintState
from infernix.frontend.framing import Framing
from infernix.frontend.opening import OutputModel, open_session
from infernix.frontend.phases import StartingPhase
from infernix.frontend.session import OutputSession
from infernix.grammar import ir
from infernix.matching import compile_grammar
from infernix.options import OutputConstraint, RequestOptions
from infernix.results import CacheAccess, FinishReason, OutputBranch, OutputChannel, OutputDelta
from infernix.tools import ToolCall
from support.chat_output import (
    EOS,
    JSON,
    JSON_AS_TEXT,
    XML,
    XML_AS_TEXT,
    answer_tokens,
    chat_session,
    grammar_state,
    joined_calls,
    json_call,
    policy,
    published,
    run_tokens,
    text_tokens,
    tool,
    xml_call,
)
from support.output_grammars import JSON_CONTENT, json_or_calls, text_then_calls, tool_calls
from support.vocabularies import text_vocabulary

F = tool("f", a="text")
KINDS = [
    (OutputConstraint.grammar("root ::= x"), InvalidGrammar),
    (OutputConstraint.regex("x"), InvalidRegex),
    (OutputConstraint.choice(["x"]), InvalidChoice),
    (OutputConstraint.json_object(), InvalidJsonSchema),
    (OutputConstraint.json_schema("{}"), InvalidJsonSchema),
]


@pytest.mark.parametrize(
    ("content", "error"),
    KINDS,
    ids=lambda value: getattr(value, "kind", value.__name__ if isinstance(value, type) else ""),
)
def test_a_content_is_continued_byte_for_byte(content: OutputConstraint, error: type[ConstraintError]) -> None:
    language = ir.Literal("在家, ok".encode())
    for prefix in ("", "在", "在家, ok"):
        session = chat_session(state=grammar_state(language), content=content, continuation=prefix)
        suffix = "在家, ok".removeprefix(prefix)
        deltas = run_tokens(session, [*text_tokens(suffix.encode()), EOS])
        assert (published(deltas), session.text) == (suffix, suffix)
        observation = session.observe_constraint()
        assert observation is not None
        assert (observation.complete, observation.branch) == (True, OutputBranch.CONTENT)
    with pytest.raises(error, match="begins no text of the constraint"):
        chat_session(state=grammar_state(language), content=content, continuation="在x")


def test_completeness_counts_prefix_and_suffix() -> None:
    session = chat_session(state=grammar_state(JSON_CONTENT), content=KINDS[3][0], continuation='{"a": "x')
    observation = session.observe_constraint()
    assert observation is not None
    assert (observation.complete, observation.branch) == (False, OutputBranch.CONTENT)
    run_tokens(session, [*text_tokens(b'y"}')])
    observation = session.observe_constraint()
    assert observation is not None
    assert (observation.complete, session.text, len(session.token_ids)) == (True, 'y"}', 3)


@pytest.mark.parametrize("framing", [XML, JSON], ids=["xml", "json"])
def test_every_beginning_of_an_answer_with_a_call_can_be_continued(framing: Framing) -> None:
    """The prefix is cut at any character before the call is complete; marks that are not whole are text."""
    call = xml_call("f", {"a": "a在"}) if framing is XML else json_call("f", '{"a": "ab"}')
    answer = f"Hi 在.{call}"
    rng = Random(11)
    for end in range(len(answer) - len("</tool_call>") + 1):
        prefix, suffix = answer[:end], answer[end:]
        if "<tool_call>" not in prefix and "Hi 在." in prefix and prefix != "Hi 在.":
            continue
        for constrained in (True, False):
            state = grammar_state(text_then_calls(framing)) if constrained else None
            tools = policy(F, constrained=constrained)
            session = chat_session(framing, state=state, tools=tools, continuation=prefix)
            deltas = run_tokens(session, [*answer_tokens(suffix, framing, rng), EOS])
            assert published(deltas) == "Hi 在."[len(prefix) :]
            assert session.tool_calls == (ToolCall("f", '{"a":"a在"}' if framing is XML else '{"a": "ab"}'),)
            assert joined_calls(deltas) == dict(enumerate(session.tool_calls))


def test_a_call_that_the_prefix_opened_is_published_once_with_the_first_commit() -> None:
    prefix = "<tool_call>\n<function=f>\n<parameter=a>\na"
    session = chat_session(state=grammar_state(tool_calls(XML)), tools=policy(F, required=True), continuation=prefix)
    session.preview_model([ord("b")])
    session.discard_preview()
    preview = session.preview_model([ord("b")])
    assert joined_calls(preview.deltas) == {0: ToolCall("f", '{"a":"ab')}
    session.commit_preview()
    session.preview_model([ord("c")])
    assert [getattr(delta, "arguments", None) for delta in session.commit_preview()] == ["c"]


@pytest.mark.parametrize("framing", [XML, JSON], ids=["xml", "json"])
@pytest.mark.parametrize("constrained", [True, False])
def test_a_completed_call_cannot_be_continued(framing: Framing, constrained: bool) -> None:
    call = xml_call("f", {}) if framing is XML else json_call("f", "{}")
    for prefix in (call, f"{call}\n", f"{call}\n<tool_call>", f"Hi{call}"):
        state = grammar_state(text_then_calls(framing)) if constrained else None
        with pytest.raises(InvalidToolConstraint):
            chat_session(framing, state=state, tools=policy(F, constrained=constrained), continuation=prefix)


def test_a_completed_call_in_text_marks_cannot_be_continued() -> None:
    for framing, call in [(XML_AS_TEXT, xml_call("f", {})), (JSON_AS_TEXT, json_call("f", "{}"))]:
        for constrained in (True, False):
            state = grammar_state(tool_calls(framing)) if constrained else None
            with pytest.raises(InvalidToolConstraint, match="completed tool call"):
                chat_session(framing, state=state, tools=policy(F, constrained=constrained), continuation=call)


@pytest.mark.parametrize("prefix", ["<tool_call>x", "<tool_call>\n<function=g>", "<tool_call><tool_call>"])
def test_a_malformed_call_cannot_be_continued(prefix: str) -> None:
    with pytest.raises(InvalidToolConstraint, match="begins no answer"):
        chat_session(state=grammar_state(text_then_calls(XML)), tools=policy(F), continuation=prefix)


def test_the_first_character_decides_between_json_and_calls() -> None:
    def session_behind(prefix: str) -> OutputSession:
        state = grammar_state(json_or_calls(XML))
        return chat_session(state=state, content=KINDS[3][0], tools=policy(F), continuation=prefix)

    # In JSON the mark is part of a string.
    session = session_behind('{"a": "<tool_call>')
    assert published(run_tokens(session, [*text_tokens(b'x"}'), EOS])) == 'x"}'
    session = session_behind("<tool_call>\n<function=f>\n")
    run_tokens(session, [*answer_tokens("</function>\n</tool_call>"), EOS])
    assert session.tool_calls == (ToolCall("f", "{}"),)
    with pytest.raises(InvalidJsonSchema):
        session_behind("x")
    with pytest.raises(InvalidToolConstraint):
        session_behind("<tool_c")
    with pytest.raises(InvalidJsonSchema):
        session_behind(' {"a"')


def test_the_mark_of_the_client_is_the_token_where_no_call_is_allowed_either() -> None:
    any_text = ir.Repeat(ir.TokenSet((), excluded=True), 0, None)
    session = chat_session(state=grammar_state(any_text), tools=policy(), continuation="Hi ")
    assert published(run_tokens(session, [ord("x"), EOS])) == "x"
    with pytest.raises(InvalidToolConstraint):
        chat_session(state=grammar_state(any_text), tools=policy(), continuation="Hi <tool_call>")


def test_free_content_is_continued_as_it_stands() -> None:
    session = chat_session(continuation="Hi\n")
    assert published(run_tokens(session, [*text_tokens(b" \n there"), EOS])) == " \n there"


def test_a_free_call_that_turns_out_to_be_none_is_published_without_the_prefix() -> None:
    for framing in (XML, XML_AS_TEXT):
        tools = policy(F, constrained=False)
        session = chat_session(framing, tools=tools, continuation="Hi <tool_call>\nno")
        deltas = run_tokens(session, [*answer_tokens("thing</tool_call>!", framing), EOS])
        assert published(deltas) == "thing</tool_call>!"
        session = chat_session(framing, tools=tools, continuation="Hi <tool_call>\nno")
        session.preview_terminal(FinishReason.CANCELLED)
        assert session.commit_preview() == ()


def test_content_behind_a_free_call_that_the_prefix_opened_is_published() -> None:
    session = chat_session(tools=policy(F, constrained=False), continuation="Hi <tool_call>\n<function=f>")
    deltas = run_tokens(session, [*answer_tokens("</function></tool_call>Done, and all of it."), EOS])
    assert (published(deltas), session.tool_calls) == ("Done, and all of it.", (ToolCall("f", "{}"),))


def test_half_a_mark_of_the_prefix_may_become_a_call_or_content() -> None:
    for constrained in (True, False):
        for suffix, content, num_calls in [("all>\n<function=f>\n</function>\n</tool_call>", "", 1), ("x", "x", 0)]:
            state = grammar_state(ANY_THEN_TEXT_CALL) if constrained else None
            tools = policy(F, constrained=constrained)
            session = chat_session(XML_AS_TEXT, state=state, tools=tools, continuation="Hi <tool_c")
            deltas = run_tokens(session, [*text_tokens(suffix.encode()), EOS])
            assert (published(deltas), len(session.tool_calls)) == (content, num_calls)


ANY_THEN_TEXT_CALL = ir.Sequence((ir.Literal(b"Hi "), ir.Choice((ir.Literal(b"<tool_cx"), tool_calls(XML_AS_TEXT)))))


def test_a_vocabulary_that_cannot_spell_the_prefix_is_told_so() -> None:
    vocabulary = text_vocabulary(["a"], control=["<tool_call>", "</tool_call>"])
    framing = Framing(XML.tool_style, tool_open=1, tool_close=2)
    grammar = compile_grammar(ir.Grammar.of(ir.Repeat(ir.TokenSet((), excluded=True), 0, None)), vocabulary)
    state = ConstraintState(grammar.new_matcher(), CacheAccess.BUILT, prepare_seconds=0.0)
    with pytest.raises(InvalidToolConstraint, match="no token for byte 0x62"):
        open_session(
            OutputModel(vocabulary, framing),
            StartingPhase.CONTENT,
            OutputBudget(5, FinishReason.OUTPUT_LIMIT),
            RequestOptions(),
            constraint=state,
            policy=policy(F),
            continuation="ab",
        )


def test_a_long_prefix_is_no_problem() -> None:
    prefix = "x" * 50_000
    session = chat_session(state=grammar_state(text_then_calls(XML)), tools=policy(F), continuation=prefix)
    deltas = run_tokens(session, [ord("y"), EOS])
    assert deltas == [OutputDelta(OutputChannel.CONTENT, "y")]
    with pytest.raises(InvalidToolConstraint, match="begins no answer"):
        chat_session(state=grammar_state(text_then_calls(XML)), tools=policy(F), continuation=prefix + "<tool_call>y")


def test_only_a_new_output_can_be_put_behind_a_text() -> None:
    session = chat_session()
    run_tokens(session, [ord("a")])
    with pytest.raises(ValueError, match="has begun"):
        session.seed([b"x"])
