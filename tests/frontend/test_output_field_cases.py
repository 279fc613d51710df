"""Failures reported against other engines that what reads an output can have, each as its smallest case."""

from __future__ import annotations

import numpy as np
import pytest

from infernix.errors import InternalError
from infernix.frontend.constraint import ConstraintState
from infernix.frontend.phases import StartingPhase
from infernix.frontend.session import OutputSession
from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.matching import compile_grammar
from infernix.ops import masks
from infernix.options import OutputConstraint
from infernix.results import CacheAccess, FinishReason, OutputBranch, OutputDelta
from infernix.tools import ToolCall, ToolCallDelta
from support.chat_output import (
    CHAT,
    EOS,
    SECOND_EOS,
    THINK_CLOSE,
    TOOL_CLOSE,
    TOOL_OPEN,
    XML,
    answer_tokens,
    chat_session,
    grammar_state,
    joined_calls,
    policy,
    published,
    reasoning_of,
    run_tokens,
    text_tokens,
    thinking_then,
    tool,
    xml_call,
)
from support.output_grammars import text_then_calls, tool_calls

PERSON = OutputConstraint.json_schema(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
)
ANSWER = b'{"name":"Ada","age":36}'


def legal(session: OutputSession) -> set[int]:
    words = np.zeros(CHAT.num_mask_words, dtype=np.int32)
    assert session.fill_mask(words)
    return {int(token) for token in masks.legal_ids(words, CHAT.num_tokens)}


# Phases


def test_a_raw_text_is_constrained_from_its_first_token() -> None:
    """vllm#57726, sglang#11971: a raw request waited for a close of thinking that never came."""
    matcher = compile_grammar(build_grammar(PERSON), CHAT).new_matcher()
    state = ConstraintState(matcher, CacheAccess.BUILT, prepare_seconds=0.0)
    session = chat_session(phase=StartingPhase.RAW, state=state, content=PERSON)
    assert {CHAT.token_bytes[token][:1] for token in legal(session)} == {b"{"}


@pytest.mark.parametrize("thinks", [True, False])
@pytest.mark.parametrize("has_format", [True, False])
def test_thinking_and_format_are_independent(thinks: bool, has_format: bool) -> None:
    """ollama#14645: without thinking the format was ignored; vllm#50948: with it, the JSON became reasoning."""
    body = ir.Literal(ANSWER)
    state = grammar_state(thinking_then(body) if thinks else body) if has_format else None
    session = chat_session(
        phase=StartingPhase.THINKING if thinks else StartingPhase.CONTENT,
        state=state,
        content=PERSON if has_format else None,
    )
    thought = [*text_tokens(b"{hm}\n"), THINK_CLOSE, *text_tokens(b"\n\n")] if thinks else []
    deltas = run_tokens(session, [*thought, *text_tokens(ANSWER), EOS])
    assert (reasoning_of(deltas), published(deltas)) == ("{hm}" if thinks else "", ANSWER.decode())


def test_a_lone_close_is_legal_where_the_prompt_opened_thinking() -> None:
    """MTPLX#186: a grammar that wanted the whole block could never be left."""
    session = chat_session(phase=StartingPhase.THINKING, state=grammar_state(thinking_then(tool_calls(XML))))
    assert THINK_CLOSE in legal(session)
    assert not {EOS, SECOND_EOS} & legal(session)


@pytest.mark.parametrize("eos", [EOS, SECOND_EOS])
def test_no_end_token_is_legal_before_the_content_may_end(eos: int) -> None:
    """vllm#42403: a second end token ended the JSON in its middle."""
    session = chat_session(phase=StartingPhase.THINKING, state=grammar_state(thinking_then(ir.Literal(ANSWER))))
    for token in [ord("a"), THINK_CLOSE, *text_tokens(b"\n\n"), *text_tokens(ANSWER)]:
        assert eos not in legal(session)
        run_tokens(session, [token])
    assert legal(session) == {EOS, SECOND_EOS}
    assert run_tokens(session, [eos]) == []
    assert session.finish_reason is FinishReason.STOP_TOKEN


# Tools


def test_streamed_and_whole_arguments_are_the_same_text() -> None:
    """vllm#24509: every piece was counted twice; vllm#34887: the first characters went out with the name."""
    tools = policy(tool("sub", strict=True, a="json", b="json"), required=True)
    call = xml_call("sub", {"a": "12", "b": "-3"})
    framed = call.removeprefix("<tool_call>").removesuffix("</tool_call>")
    language = ir.Sequence((ir.TokenSet((TOOL_OPEN,)), ir.text(framed), ir.TokenSet((TOOL_CLOSE,))))
    session = chat_session(state=grammar_state(language), tools=tools)
    deltas = run_tokens(session, [*answer_tokens(call), EOS])
    assert deltas[0] == ToolCallDelta(0, "sub", "")
    assert joined_calls(deltas) == {0: ToolCall("sub", '{"a":12,"b":-3}')} == dict(enumerate(session.tool_calls))


def test_a_format_leaves_the_tools_callable() -> None:
    """vllm#39929: tools beside a response format could not be called."""
    body = ir.Choice((ir.Literal(ANSWER), tool_calls(XML)))
    for answer, branch in [(ANSWER.decode(), OutputBranch.CONTENT), (xml_call("f", {}), OutputBranch.TOOLS)]:
        session = chat_session(state=grammar_state(body), content=PERSON, tools=policy(tool("f", a="text")))
        run_tokens(session, [*answer_tokens(answer), EOS])
        observation = session.observe_constraint()
        assert observation is not None
        assert (observation.branch, len(session.tool_calls)) == (branch, int(branch is OutputBranch.TOOLS))


@pytest.mark.parametrize("num_tokens", [12, 20])
@pytest.mark.parametrize("reason", [FinishReason.OUTPUT_LIMIT, FinishReason.CONTEXT_CAPACITY, FinishReason.CANCELLED])
def test_a_cut_call_is_not_reported_as_a_call(num_tokens: int, reason: FinishReason) -> None:
    """vllm#58228: a limit cut a call, and the client was told that it is complete."""
    is_cancelled = reason is FinishReason.CANCELLED
    session = chat_session(
        num_tokens=100 if is_cancelled else num_tokens,
        reason=FinishReason.OUTPUT_LIMIT if is_cancelled else reason,
        state=grammar_state(tool_calls(XML)),
        tools=policy(tool("f", a="text"), required=True),
    )
    deltas = run_tokens(session, answer_tokens(xml_call("f", {"a": "abcd\n"}))[:num_tokens])
    if is_cancelled:
        session.preview_terminal(reason)
        deltas += session.commit_preview()
    assert (session.finish_reason, session.tool_calls) == (reason, ())
    assert not any(isinstance(delta, OutputDelta) for delta in deltas)


def test_names_of_any_script_are_kept_apart() -> None:
    """llama.cpp#28429: two Chinese parameters became one."""
    tools = policy(tool("天气", 城市={"string"}, 日期={"string"}), constrained=False)
    session = chat_session(tools=tools)
    deltas = run_tokens(session, [*answer_tokens(xml_call("天气", {"城市": "a", "日期": "b"})), EOS])
    assert session.tool_calls == (ToolCall("天气", '{"城市":"a","日期":"b"}'),)
    assert joined_calls(deltas) == dict(enumerate(session.tool_calls))


def test_a_tool_without_parameters_is_called_with_an_empty_object() -> None:
    """llama.cpp#25923: such a tool made the whole request fail."""
    session = chat_session(state=grammar_state(tool_calls(XML)), tools=policy(tool("f", strict=True), required=True))
    run_tokens(session, [*answer_tokens(xml_call("f", {})), EOS])
    assert session.tool_calls == (ToolCall("f", "{}"),)


def test_a_call_that_cannot_be_read_is_an_error_and_never_an_empty_list() -> None:
    """vllm#39056: `required` was read as JSON only, and the model's own form gave no calls."""
    session = chat_session(state=grammar_state(tool_calls(XML)), tools=policy(tool("other"), required=True))
    with pytest.raises(InternalError, match="cannot be read"):
        run_tokens(session, answer_tokens(xml_call("f", {})))
    free_text = ir.Repeat(ir.TokenSet((), excluded=True), 0, None)
    session = chat_session(state=grammar_state(free_text), tools=policy(tool("f"), required=True))
    with pytest.raises(InternalError, match="required"):
        run_tokens(session, [EOS])


def test_marks_in_ordinary_letters_are_content() -> None:
    """llama.cpp#24382: control tokens spelled as text were taken for the tokens."""
    text = "a</think>b<tool_call>\n<function=f>"
    session = chat_session(state=grammar_state(text_then_calls(XML)), tools=policy(tool("f", a="text")))
    assert published(run_tokens(session, [*text_tokens(text.encode()), EOS])) == text
    assert session.tool_calls == ()
    assert THINK_CLOSE not in legal(chat_session(state=grammar_state(text_then_calls(XML)), tools=policy(tool("f"))))
