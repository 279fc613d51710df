"""Requests that continue the assistant's last message, under every constraint and with tools."""

from __future__ import annotations

from typing import Any

import pytest

from infernix.errors import (
    ConstraintError,
    InvalidChoice,
    InvalidGrammar,
    InvalidJsonSchema,
    InvalidPrompt,
    InvalidRegex,
    InvalidToolConstraint,
)
from infernix.frontend.framing import Framing
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint
from infernix.results import FinishReason, OutputBranch
from infernix.tools import ToolCall, ToolChoice, ToolDefinition, ToolEnforcement, ToolMode
from support.chat_engine import USER, converse, wanting
from support.chat_output import (
    EOS,
    JSON,
    XML,
    answer_tokens,
    json_call,
    text_tokens,
    xml_call,
)

NAME = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
# Constraint, a whole text of it, a text that begins none, and the error for that.
KINDS: list[tuple[OutputConstraint, str, str, type[ConstraintError]]] = [
    (OutputConstraint.json_schema(NAME), '{"name": "Shang\\u0020hai 在"}', '{"nam": ', InvalidJsonSchema),
    (OutputConstraint.json_object(), '{ "a": [1, {"b": null}]\n}', "[", InvalidJsonSchema),
    (OutputConstraint.grammar('root ::= "ok" [ \\n]+ "在" root?'), "ok \n在ok 在", "ok在", InvalidGrammar),
    (OutputConstraint.regex("(在|lo){2,3} ?"), "在lo在 ", "lolololo", InvalidRegex),
    (OutputConstraint.choice(["yes", "yes, 在", "no"]), "yes, 在", "yes!", InvalidChoice),
]
EVERY_KIND = pytest.mark.parametrize(
    ("constraint", "text", "wrong", "error"), KINDS, ids=[str(k[0].kind) for k in KINDS]
)
STYLES = pytest.mark.parametrize("framing", [XML, JSON], ids=["xml", "json"])
TOOL = ToolDefinition("f", parameters='{"properties": {"a": {"type": "string"}}}')


@EVERY_KIND
def test_prefix_and_suffix_together_are_a_text_of_the_constraint(
    constraint: OutputConstraint, text: str, wrong: str, error: type[ConstraintError]
) -> None:
    for end in range(1, len(text) + 1):
        suffix = text[end:]
        result = converse(wanting(text_tokens(suffix.encode())), continued=text[:end], constraint=constraint)
        assert (result.text, result.finish_reason) == (suffix, FinishReason.STOP_TOKEN)
        assert result.token_ids == (*text_tokens(suffix.encode()), EOS)
        assert result.constraint is not None
        assert (result.constraint.complete, result.constraint.terminated) == (True, True)
        assert result.constraint.branch is OutputBranch.CONTENT
    with pytest.raises(error, match="begins no text of the constraint"):
        converse(wanting("x"), continued=wrong, constraint=constraint)


@EVERY_KIND
def test_completeness_at_a_limit_counts_the_prefix(
    constraint: OutputConstraint, text: str, wrong: str, error: type[ConstraintError]
) -> None:
    prefix, suffix = text[:3], text_tokens(text[3:].encode())
    for limit in range(len(suffix) + 1):
        result = converse(wanting(suffix), continued=prefix, constraint=constraint, max_new_tokens=limit)
        written = [*text_tokens(prefix.encode()), *suffix[:limit]]
        whole = converse(wanting(written), thinking=False, constraint=constraint, max_new_tokens=len(written) + 1)
        assert result.finish_reason is FinishReason.OUTPUT_LIMIT
        assert result.constraint is not None
        is_member = whole.token_ids == (*written, EOS)
        assert (result.constraint.complete, result.constraint.terminated) == (is_member, False)


def test_the_constraint_is_not_begun_anew() -> None:
    """Without the prefix in the matcher, the model could write a second document behind the first half of one."""
    wants = wanting('{"name": "x"}')
    result = converse(wants, continued='{"name": "a', constraint=OutputConstraint.json_schema(NAME))
    assert ('{"name": "a' + result.text).count("{") == 2  # the second one is a character of the string
    assert result.finish_reason is FinishReason.STOP_TOKEN


def test_the_message_is_continued_in_the_models_own_tokens_and_counts_as_prompt() -> None:
    result = converse(wanting("x"), continued="ab\n\n")
    (fresh,) = [converse(wanting("x"), prompt=ChatPrompt([*USER, {"role": "assistant", "content": ""}]))]
    assert (result.text, result.num_generated_tokens) == ("x", 2)
    assert result.num_prompt_tokens < fresh.num_prompt_tokens


@STYLES
def test_every_beginning_of_a_call_is_continued(framing: Framing) -> None:
    call = xml_call("f", {"a": "x\n在"}) if framing is XML else json_call("f", '{"a": "x\\n在"}')
    answer = f"Hi.{call}"
    expected = ToolCall("f", '{"a":"x\\n在"}' if framing is XML else '{"a": "x\\n在"}')
    ends = [*range(1, 4), *range(3 + len("<tool_call>"), len(answer) - len("</tool_call>") + 1)]
    for end in ends:
        for enforcement in ToolEnforcement:
            result = converse(
                wanting(answer_tokens(answer[end:], framing)),
                framing,
                continued=answer[:end],
                tools=(TOOL,),
                tool_choice=ToolChoice(enforcement=enforcement),
            )
            assert (result.text, result.tool_calls) == ("Hi."[end:], (expected,))
            assert result.finish_reason is FinishReason.STOP_TOKEN


@STYLES
@pytest.mark.parametrize("choice", [ToolChoice(), ToolChoice(ToolMode.REQUIRED), ToolChoice.named("f")])
def test_a_completed_or_malformed_call_is_not_continued(framing: Framing, choice: ToolChoice) -> None:
    call = xml_call("f", {}) if framing is XML else json_call("f", "{}")
    for prefix in (call, f"{call}\n<tool_call>", "<tool_call>x", call.replace("f", "g", 1)):
        with pytest.raises(InvalidToolConstraint):
            converse(wanting("x", framing), framing, continued=prefix, tools=(TOOL,), tool_choice=choice)
    if choice.mode is ToolMode.REQUIRED:
        with pytest.raises(InvalidToolConstraint, match="begins no answer"):
            converse(wanting("x", framing), framing, continued="Hi", tools=(TOOL,), tool_choice=choice)


def test_the_first_character_decides_between_json_and_calls() -> None:
    request: dict[str, Any] = {"tools": (TOOL,), "constraint": OutputConstraint.json_object()}
    result = converse(wanting(text_tokens(b'ool_call>"}')), continued='{"a": "<t', **request)
    assert (result.text, result.tool_calls) == ('ool_call>"}', ())
    rest = xml_call("f", {}).removeprefix("<tool_call>")
    result = converse(wanting(rest), continued="<tool_call>", **request)
    assert (result.text, result.tool_calls) == ("", (ToolCall("f", "{}"),))
    assert result.constraint is not None
    assert result.constraint.branch is OutputBranch.TOOLS
    for prefix, error in [("x", InvalidJsonSchema), ("<tool_c", InvalidToolConstraint)]:
        with pytest.raises(error):
            converse(wanting("x"), continued=prefix, **request)


def test_no_call_is_continued_where_none_may_be_made() -> None:
    request: dict[str, Any] = {"tools": (TOOL,), "tool_choice": ToolChoice(ToolMode.NONE)}
    assert converse(wanting("x"), continued="Hi ", **request).text == "x"
    with pytest.raises(InvalidToolConstraint, match="begins no answer"):
        converse(wanting("x"), continued="Hi <tool_call>", **request)
    # A content constraint owns the answer there, and its text may spell the mark.
    constraint = OutputConstraint.choice(["<tool_call>x"])
    assert converse(wanting("x"), continued="<tool_call>", constraint=constraint, **request).text == "x"


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (USER, r"messages\[0\].role: only an assistant's message"),
        ([*USER, {"role": "assistant", "content": ""}], r"messages\[1\].content: there is nothing to continue"),
        (
            [*USER, {"role": "assistant", "content": "x", "tool_calls": [{"name": "f", "arguments": {}}]}],
            r"messages\[1\].tool_calls: a message with finished calls",
        ),
    ],
)
def test_only_a_begun_message_of_the_assistant_is_continued(messages: Any, message: str) -> None:
    with pytest.raises(InvalidPrompt, match=message):
        converse(wanting("x"), prompt=ChatPrompt(messages, continue_final=True))


def test_a_continued_answer_is_past_its_thinking() -> None:
    result = converse(wanting("x"), continued="Hi ", thinking_budget=0, max_new_tokens=2)
    assert (result.text, result.thinking) == ("x", None)
    with pytest.raises(InvalidPrompt, match="does not begin an answer with thinking"):
        converse(wanting("x"), continued="Hi", thinking=True)
