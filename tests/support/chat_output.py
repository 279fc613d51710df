"""A vocabulary with the marks of a chat model, answers spelled in it, and the sessions that read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from infernix.frontend.budget import OutputBudget
from infernix.frontend.constraint import ConstraintState
from infernix.frontend.framing import Framing, ToolStyle
from infernix.frontend.opening import OutputModel, open_session
from infernix.frontend.phases import StartingPhase
from infernix.frontend.session import OutputSession
from infernix.frontend.tools.contract import ArgumentContract, ArgumentEncoding, ToolContract, ToolPolicy
from infernix.grammar import ir
from infernix.matching import compile_grammar
from infernix.options import OutputConstraint, RequestOptions
from infernix.results import CacheAccess, FinishReason, OutputChannel, OutputDelta, PublishedDelta
from infernix.tools import ToolCall, ToolCallDelta
from support.vocabularies import text_vocabulary

MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
# Merged over the borders of framing, values and words.
_MERGED = (
    *(
        "\n\n",
        "\n\n{",
        ">\n",
        "\n</",
        "</",
        "</parameter>",
        "\n</parameter>\n",
        "</function>\n",
        "<parameter=",
        "<function=",
    ),
    *(
        '{"',
        '": ',
        '", "',
        "}}",
        "}\n",
        "}}\n",
        "arguments",
        "name",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "ok",
        "yes",
    ),
    *("a", "b\n", "\n<", "lo", "<tool", "_call>", b"\xe5\x9c", b"\x9c\xa8", b"\xa8\n</parameter>"),
)
CHAT = text_vocabulary(
    [*(bytes([byte]) for byte in range(256)), *_MERGED], control=(*MARKS, "<|im_start|>"), eos=("<|im_end|>", "<|end|>")
)
_FIRST_CONTROL = 256 + len(_MERGED)
THINK_OPEN, THINK_CLOSE, TOOL_OPEN, TOOL_CLOSE, TURN_START, EOS, SECOND_EOS = range(_FIRST_CONTROL, _FIRST_CONTROL + 7)
XML = Framing(ToolStyle.XML, THINK_OPEN, THINK_CLOSE, TOOL_OPEN, TOOL_CLOSE, (THINK_OPEN, TOOL_OPEN, TOOL_CLOSE))
JSON = Framing(ToolStyle.JSON, THINK_OPEN, THINK_CLOSE, TOOL_OPEN, TOOL_CLOSE, (THINK_OPEN, TOOL_OPEN, TOOL_CLOSE))
# A model whose vocabulary has no such tokens.
JSON_AS_TEXT = Framing(ToolStyle.JSON)
XML_AS_TEXT = Framing(ToolStyle.XML)
_IDS = {data: token for token, data in reversed(list(enumerate(CHAT.token_bytes[:_FIRST_CONTROL])))}
_LONGEST = max(map(len, _IDS))
FORCED_END = (*(_IDS[bytes([byte])] for byte in b"\nEnough.\n"), THINK_CLOSE, _IDS[b"\n\n"])

_MARK = re.compile("|".join(map(re.escape, MARKS)).encode())
_MARK_IDS = dict(zip((mark.encode() for mark in MARKS), range(_FIRST_CONTROL, EOS), strict=False))


def text_tokens(data: bytes, rng: Random | None = None) -> list[int]:
    """TEXT tokens that join to `data`: the longest at each place, or any at random. Every byte is a token."""
    tokens: list[int] = []
    begin = 0
    while begin < len(data):
        ends = [end for end in range(begin + 1, begin + _LONGEST + 1) if data[begin:end] in _IDS and end <= len(data)]
        end = ends[-1] if rng is None else rng.choice(ends)
        tokens.append(_IDS[data[begin:end]])
        begin = end
    return tokens


def answer_tokens(answer: str | bytes, framing: Framing = XML, rng: Random | None = None) -> list[int]:
    """`answer` in tokens, where the marks that `framing` has are tokens and all else is text, cut anyhow."""
    data = answer.encode() if isinstance(answer, str) else answer
    known = {framing.think_open, framing.think_close, framing.tool_open, framing.tool_close}
    tokens: list[int] = []
    begin = 0
    for mark in _MARK.finditer(data):
        if _MARK_IDS[mark.group()] in known:
            tokens += [*text_tokens(data[begin : mark.start()], rng), _MARK_IDS[mark.group()]]
            begin = mark.end()
    return tokens + text_tokens(data[begin:], rng)


def is_control(token: int) -> bool:
    """Whether the token is no text."""
    return token >= _FIRST_CONTROL


def tool(name: str, *, strict: bool = False, **arguments: str | set[str] | None) -> ToolContract:
    """A tool; an argument is "text", "json", or the JSON types that its declaration admits (None: nothing declared)."""
    contracts = {
        key: ArgumentContract(key, ArgumentEncoding(value), None)
        if isinstance(value, str)
        else ArgumentContract(key, ArgumentEncoding.HINTED, None if value is None else frozenset(value))
        for key, value in arguments.items()
    }
    return ToolContract(name, strict, contracts)


def policy(*tools: ToolContract, required: bool = False, parallel: bool = True, constrained: bool = True) -> ToolPolicy:
    """How these tools may be called."""
    return ToolPolicy(tools, required, parallel, constrained)


def grammar_state(body: ir.Expression) -> ConstraintState:
    """A constraint that is this expression."""
    return ConstraintState(
        compile_grammar(ir.Grammar.of(body), CHAT).new_matcher(), CacheAccess.BUILT, prepare_seconds=0.0
    )


def thinking_then(body: ir.Expression, framing: Framing = XML) -> ir.Expression:
    """Reasoning, the token that closes it, the separator, and then `body`."""
    assert framing.think_close is not None
    reasoning = ir.Choice((ir.TokenSet((framing.think_close,), excluded=True), ir.TokenSet(framing.passing_ids)))
    return ir.Sequence((ir.Repeat(reasoning, 0, None), ir.TokenSet((framing.think_close,)), ir.Literal(b"\n\n"), body))


def chat_session(
    framing: Framing = XML,
    phase: StartingPhase = StartingPhase.CONTENT,
    num_tokens: int = 10_000,
    *,
    reason: FinishReason = FinishReason.OUTPUT_LIMIT,
    state: ConstraintState | None = None,
    content: OutputConstraint | None = None,
    tools: ToolPolicy | None = None,
    continuation: str | None = None,
    **options: Any,
) -> OutputSession:
    """A session over CHAT: `state` is the matcher, `content` the constraint that the caller asked for."""
    model = OutputModel(CHAT, framing, FORCED_END if framing.think_close is not None else ())
    return open_session(
        model,
        phase,
        OutputBudget(num_tokens, reason),
        RequestOptions(constraint=content, **options),
        constraint=state,
        policy=tools,
        continuation=continuation,
    )


def run_tokens(session: OutputSession, tokens: Iterable[int]) -> list[PublishedDelta]:
    """Commits the tokens one by one, as far as the output goes."""
    deltas: list[PublishedDelta] = []
    for token in tokens:
        session.preview_model([token])
        deltas += session.commit_preview()
        if session.finish_reason is not None:
            break
    return deltas


def published(deltas: Sequence[PublishedDelta], channel: OutputChannel = OutputChannel.CONTENT) -> str:
    """All text of one channel."""
    return "".join(delta.text for delta in deltas if isinstance(delta, OutputDelta) and delta.channel is channel)


def reasoning_of(deltas: Sequence[PublishedDelta]) -> str:
    """All reasoning."""
    return published(deltas, OutputChannel.REASONING)


def joined_calls(deltas: Sequence[PublishedDelta]) -> dict[int, ToolCall]:
    """What the pieces of each call join to, checking that the name comes once, first and alone."""
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    for delta in deltas:
        if not isinstance(delta, ToolCallDelta):
            continue
        if delta.index not in names:
            assert delta.name is not None
            assert delta.arguments == ""
            names[delta.index] = delta.name
            arguments[delta.index] = ""
            continue
        assert delta.name is None
        assert delta.arguments
        arguments[delta.index] += delta.arguments
    assert list(names) == list(range(len(names)))
    return {index: ToolCall(name, arguments[index]) for index, name in names.items()}


def xml_call(name: str, arguments: Mapping[str, str]) -> str:
    """A call as Qwen3.5 writes it, values as they are given."""
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


def json_call(written_name: str, arguments: str) -> str:
    """A call as Hermes writes it; `written_name` is what stands between the quotes."""
    return f'<tool_call>\n{{"name": "{written_name}", "arguments": {arguments}}}\n</tool_call>'
