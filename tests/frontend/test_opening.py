"""Which reader an output gets, and which options a constraint rules out."""

from __future__ import annotations

from typing import Any

import pytest

from infernix.errors import InvalidOptions
from infernix.frontend.framing import Framing
from infernix.frontend.opening import refuse_loose_options
from infernix.frontend.phases import StartingPhase
from infernix.grammar import ir
from infernix.options import OutputConstraint, RequestOptions
from infernix.results import FinishReason, OutputBranch
from infernix.tools import ToolCall
from support.chat_output import (
    CHAT,
    EOS,
    JSON,
    SECOND_EOS,
    TOOL_OPEN,
    TURN_START,
    XML,
    answer_tokens,
    chat_session,
    grammar_state,
    joined_calls,
    json_call,
    policy,
    published,
    reasoning_of,
    run_tokens,
    text_tokens,
    thinking_then,
    tool,
    xml_call,
)
from support.output_grammars import JSON_CONTENT, json_or_calls, text_then_calls, tool_calls

LOOSE: list[tuple[str, Any]] = [
    ("stop", ("x",)),
    ("stop_token_ids", (5,)),
    ("raw_output", True),
    ("publish_special_tokens", True),
    ("ignore_eos", True),
]
F = tool("f", a="text")
OBJECT = OutputConstraint.json_object()
PHASES = pytest.mark.parametrize("phase", list(StartingPhase))


@pytest.mark.parametrize(("name", "value"), LOOSE)
def test_options_that_break_a_guarantee_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidOptions, match=f"{name}: cannot be combined") as caught:
        chat_session(state=grammar_state(ir.Literal(b"ok")), **{name: value})
    assert caught.value.field == name
    with pytest.raises(InvalidOptions, match=name):
        chat_session(state=grammar_state(text_then_calls(XML)), tools=policy(F), **{name: value})
    chat_session(tools=policy(F, constrained=False), **{name: value})
    refuse_loose_options(RequestOptions(constraint=OBJECT, thinking_budget=3))


def test_a_constraint_without_its_matcher_is_a_mistake() -> None:
    for arguments in ({"tools": policy(F)}, {"tools": policy()}, {"content": OBJECT}):
        with pytest.raises(ValueError, match="needs its constraint"):
            chat_session(**arguments)  # type: ignore[arg-type]


# Phase x constraint x tools. The answers are written down as they are generated.

THOUGHT = "hm\n</think>\n\n"


@pytest.mark.parametrize("framing", [XML, JSON], ids=["xml", "json"])
@pytest.mark.parametrize("thinks", [True, False])
@pytest.mark.parametrize(
    ("tools", "has_json", "answer", "content", "num_calls", "branch"),
    [
        # No tools, none of them callable, or calls of them.
        (None, True, '{"a": "x<tool_call>"}', '{"a": "x<tool_call>"}', 0, OutputBranch.CONTENT),
        ("auto", False, " Hi.\n", " Hi.\n", 0, OutputBranch.CONTENT),
        ("auto", False, "Hi.\n\nCALL", "Hi.\n\n", 1, OutputBranch.TOOLS),
        ("auto", False, "CALL\nCALL", "", 2, OutputBranch.TOOLS),
        ("auto", False, "", "", 0, OutputBranch.UNDECIDED),
        ("required", False, "CALL", "", 1, OutputBranch.TOOLS),
        ("auto", True, '{"a": "<tool_call>"}', '{"a": "<tool_call>"}', 0, OutputBranch.CONTENT),
        ("auto", True, "CALL\nCALL", "", 2, OutputBranch.TOOLS),
        ("required", True, "CALL", "", 1, OutputBranch.TOOLS),
        ("none", False, "Hi </tool_call>", "Hi </tool_call>", 0, OutputBranch.CONTENT),
    ],
)
def test_constrained_answers(
    framing: Framing,
    thinks: bool,
    tools: str | None,
    has_json: bool,
    answer: str,
    content: str,
    num_calls: int,
    branch: OutputBranch,
) -> None:
    body = {
        (None, True): JSON_CONTENT,
        ("auto", False): text_then_calls(framing),
        ("required", False): tool_calls(framing),
        ("auto", True): json_or_calls(framing),
        ("required", True): tool_calls(framing),
        ("none", False): ir.Repeat(ir.TokenSet((), excluded=True), 0, None),
    }[tools, has_json]
    policies = {None: None, "auto": policy(F), "required": policy(F, required=True), "none": policy()}
    session = chat_session(
        framing,
        StartingPhase.THINKING if thinks else StartingPhase.CONTENT,
        state=grammar_state(thinking_then(body, framing) if thinks else body),
        tools=policies[tools],
        content=OBJECT if has_json else None,
    )
    call = xml_call("f", {"a": "ab"}) if framing is XML else json_call("f", '{"a": "ab"}')
    marked = answer.replace("CALL", "\x00")
    tokens = answer_tokens(THOUGHT, framing) if thinks else []
    for index, part in enumerate(marked.split("\x00")):
        tokens += answer_tokens(call, framing) if index else []
        tokens += text_tokens(part.encode())
    deltas = run_tokens(session, [*tokens, EOS])
    assert session.finish_reason is FinishReason.STOP_TOKEN
    assert (reasoning_of(deltas), published(deltas)) == ("hm" if thinks else "", content)
    arguments = '{"a":"ab"}' if framing is XML else '{"a": "ab"}'
    assert session.tool_calls == (ToolCall("f", arguments),) * num_calls
    assert joined_calls(deltas) == dict(enumerate(session.tool_calls))
    observation = session.observe_constraint()
    assert observation is not None
    assert (observation.branch, observation.complete, observation.terminated) == (branch, True, True)


@pytest.mark.parametrize("phase", [StartingPhase.RAW, StartingPhase.CONTENT])
def test_a_grammar_binds_from_the_first_token_where_nothing_is_thought(phase: StartingPhase) -> None:
    session = chat_session(phase=phase, state=grammar_state(ir.Literal(b" ok\n")))
    deltas = run_tokens(session, [*text_tokens(b" ok\n"), EOS])
    assert (published(deltas), reasoning_of(deltas), session.thinking_statistics) == (" ok\n", "", None)


# Free answers


@pytest.mark.parametrize("framing", [XML, JSON], ids=["xml", "json"])
def test_free_answers_with_tools_are_read_tolerantly(framing: Framing) -> None:
    call = xml_call("f", {"a": "ab"}) if framing is XML else json_call("f", '{"a": "ab"}')
    session = chat_session(framing, StartingPhase.THINKING, tools=policy(F, constrained=False))
    deltas = run_tokens(session, [*answer_tokens(f"hm\n</think>\n\n Hi.{call}\n", framing), EOS])
    assert (reasoning_of(deltas), published(deltas)) == ("hm", "Hi.")
    assert joined_calls(deltas) == dict(enumerate(session.tool_calls))
    assert session.tool_calls[0].arguments() == {"a": "ab"}
    assert session.observe_constraint() is None


def test_without_tools_and_constraint_marks_of_calls_are_text() -> None:
    call = xml_call("f", {"a": "ab"})
    for tools in (None, policy(constrained=False)):
        session = chat_session(tools=tools)
        assert published(run_tokens(session, [*answer_tokens(call), EOS])) == call
        assert session.tool_calls == ()


@pytest.mark.parametrize("phase", list(StartingPhase))
def test_raw_output_is_all_content(phase: StartingPhase) -> None:
    answer = f"hm\n</think>\n\n {xml_call('f', {})}\n"
    session = chat_session(phase=phase, tools=policy(F, constrained=False), raw_output=True)
    deltas = run_tokens(session, [*answer_tokens(answer), TURN_START, EOS])
    assert (published(deltas), reasoning_of(deltas), session.tool_calls) == (answer, "", ())


@pytest.mark.parametrize("phase", list(StartingPhase))
def test_special_tokens_are_published_on_demand_but_never_the_last_one(phase: StartingPhase) -> None:
    tokens = [ord("a"), TURN_START, ord("b"), EOS]
    assert published(run_tokens(chat_session(phase=StartingPhase.RAW), tokens)) == "ab"
    session = chat_session(phase=phase, publish_special_tokens=True)
    deltas = run_tokens(session, tokens)
    assert published(deltas) + reasoning_of(deltas) == "a<|im_start|>b"


def test_an_end_token_can_be_ignored_and_others_can_be_added() -> None:
    session = chat_session(ignore_eos=True, stop_token_ids=(TURN_START, ord("x")))
    deltas = run_tokens(session, [ord("a"), EOS, SECOND_EOS, ord("b"), ord("x"), ord("c")])
    assert (published(deltas), session.finish_reason) == ("ab", FinishReason.STOP_TOKEN)
    assert session.token_ids[-1] == ord("x")
    session = chat_session(ignore_eos=True, publish_special_tokens=True, num_tokens=3)
    assert published(run_tokens(session, [ord("a"), EOS, ord("b")])) == "a<|im_end|>b"
    assert session.finish_reason is FinishReason.OUTPUT_LIMIT


def test_a_stop_token_that_is_no_token_is_refused() -> None:
    chat_session(stop_token_ids=(CHAT.num_tokens - 1,))
    with pytest.raises(InvalidOptions, match="stop_token_ids"):
        chat_session(stop_token_ids=(CHAT.num_tokens,))


@pytest.mark.parametrize(
    ("answer", "reasoning", "content", "matched"),
    [
        ("a</think>\n\nok then", "a", "o", "k t"),
        ("look then</think>\n\nok", "loo", "", "k t"),
        ("a</think>\n\nok \n\n", "a", "ok ", "\n\n"),
        ("k</think>\n\n t", "k", "t", None),
    ],
)
def test_stop_strings_end_reasoning_and_content(answer: str, reasoning: str, content: str, matched: str | None) -> None:
    session = chat_session(phase=StartingPhase.THINKING, stop=("\n\n", "k t"))
    deltas = run_tokens(session, [*answer_tokens(answer), EOS])
    assert (reasoning_of(deltas), published(deltas)) == (reasoning, content)
    assert session.matched_stop_string == matched
    assert session.finish_reason is (FinishReason.STOP_TOKEN if matched is None else FinishReason.STOP_STRING)


def test_a_round_ends_at_the_token_that_completes_a_stop_string() -> None:
    session = chat_session(stop=("ab",))
    preview = session.preview_model([ord("x"), ord("a"), ord("b"), ord("c")])
    assert (preview.num_accepted, preview.text, preview.finish_reason) == (3, "x", FinishReason.STOP_STRING)
    session.discard_preview()
    assert (session.finish_reason, session.matched_stop_string) == (None, None)
    # A string that is complete at the last token of the budget, or at an end token, is found first.
    session = chat_session(stop=("ab",), num_tokens=2)
    assert session.preview_model([ord("a"), ord("b")]).finish_reason is FinishReason.STOP_STRING
    session = chat_session(stop=("ab",), stop_token_ids=(ord("b"),))
    assert session.preview_model([ord("a"), ord("b")]).finish_reason is FinishReason.STOP_TOKEN


def test_calls_before_a_stop_string_stay() -> None:
    session = chat_session(tools=policy(F, constrained=False), stop=("END",))
    deltas = run_tokens(session, answer_tokens(f"{xml_call('f', {})}\nEND{xml_call('f', {})}"))
    assert (session.tool_calls, session.finish_reason) == ((ToolCall("f", "{}"),), FinishReason.STOP_STRING)
    assert published(deltas) == "\n"


def test_a_stop_string_in_what_turns_out_to_be_content_counts_at_the_end() -> None:
    session = chat_session(tools=policy(F, constrained=False), stop=("END",))
    deltas = run_tokens(session, [TOOL_OPEN, *text_tokens(b"xENDy"), EOS])
    assert (published(deltas), session.finish_reason) == ("<tool_call>x", FinishReason.STOP_STRING)
