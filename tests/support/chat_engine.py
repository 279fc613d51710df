"""An engine whose model thinks, calls tools and wants whatever a test says, over the vocabulary of `chat_output`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from infernix.engine import Engine
from infernix.engine.prompt import prepare_prompt
from infernix.frontend.framing import Framing, ToolStyle
from infernix.frontend.template_values import Conversation
from infernix.frontend.tokenizer import TextPiece
from infernix.matching import GrammarCompiler
from infernix.matching.vocabulary import Vocabulary
from infernix.messages import ChatPrompt
from infernix.options import RequestOptions, SamplingOptions, SamplingParameters
from infernix.results import FinishReason, GenerationResult, PublishedDelta
from infernix.tools import ToolDefinition
from support.chat_output import (
    CHAT,
    EOS,
    THINK_CLOSE,
    THINK_OPEN,
    TURN_START,
    XML,
    answer_tokens,
    joined_calls,
    json_call,
    published,
    reasoning_of,
    text_tokens,
    xml_call,
)
from support.scripted_model import Script, ScriptedModel, preferring

USER = ({"role": "user", "content": "Hi"},)
FORCED_TEXT = "\nEnough."


class ChatTokenizer:
    """Text as its longest tokens; the marks are never spelled by it."""

    num_tokens = CHAT.num_tokens
    eos_ids = CHAT.eos_ids

    def vocabulary(self) -> Vocabulary:
        return CHAT

    def token_bytes(self, token: int) -> bytes:
        return CHAT.token_bytes[token]

    def encode_prompt(self, text: str) -> list[int]:
        return text_tokens(text.encode())

    def encode_pieces(self, pieces: Iterable[TextPiece | int]) -> list[int]:
        return [
            token
            for piece in pieces
            for token in ([piece] if isinstance(piece, int) else text_tokens(piece.text.encode()))
        ]


class ChatTemplate:
    """Turns between their marks; a new turn of the assistant begins inside thinking where the model can think."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing

    def render(self, conversation: Conversation) -> list[int]:
        tokens: list[int] = []
        for message in conversation.messages:
            tokens += [TURN_START, *text_tokens(f"{message.role}\n{message.content}".encode()), EOS]
        if conversation.continue_final:
            return tokens[:-1]
        tokens += [TURN_START, *text_tokens(b"assistant\n")]
        if self._framing.think_close is None:
            return tokens
        tokens += [THINK_OPEN, *text_tokens(b"\n")]
        if conversation.thinking is False:
            tokens += [*text_tokens(b"\n"), THINK_CLOSE, *text_tokens(b"\n\n")]
        return tokens


@cache
def chat_compiler() -> GrammarCompiler:
    """One compiler for all engines."""
    return GrammarCompiler(CHAT)


def chat_engine(
    script: Script, framing: Framing = XML, *, sampling_defaults: SamplingParameters | None = None, **options: Any
) -> Engine:
    """An engine around a script."""
    loaded: Any = SimpleNamespace(
        model=ScriptedModel(script, CHAT.num_tokens, max_context=options.pop("max_context", 4000)),
        tokenizer=ChatTokenizer(),
        template=ChatTemplate(framing),
        framing=framing,
        sampling_defaults=sampling_defaults or SamplingParameters(temperature=0.0),
        name="scripted",
    )
    return Engine(loaded, compiler=chat_compiler(), thinking_end=FORCED_TEXT, **options)


def wanting(answer: str | Sequence[int], framing: Framing = XML, then: int = EOS) -> Callable[[int], Script]:
    """A model that wants exactly this answer, token for token, and `then` for ever."""
    tokens = [*(answer_tokens(answer, framing) if isinstance(answer, str) else answer), then]

    def after(num_prompt_tokens: int) -> Script:
        def script(so_far: tuple[int, ...]) -> ArrayLike:
            place = min(len(so_far) - num_prompt_tokens, len(tokens) - 1)
            return preferring(CHAT.num_tokens, {tokens[place]: 10.0})

        return script

    return after


def noise(seed: int, likes: dict[int, float]) -> Callable[[int], Script]:
    """A model without any idea, but with likes, whatever was said."""
    table = np.random.default_rng(seed).standard_normal((512, CHAT.num_tokens)) * 1.5
    for token, like in likes.items():
        table[:, token] += like

    def after(num_prompt_tokens: int) -> Script:
        return lambda so_far: table[(len(so_far) - num_prompt_tokens) % len(table)]

    return after


def converse(
    wants: Callable[[int], Script],
    framing: Framing = XML,
    *,
    thinking: bool | None = None,
    tools: tuple[ToolDefinition, ...] = (),
    prompt: Any = None,
    continued: str | None = None,
    max_new_tokens: int = 300,
    engine: Engine | None = None,
    sampling: SamplingOptions | None = None,
    **options: Any,
) -> GenerationResult:
    """One answer of a model that `wants` something; `prompt` replaces the chat, `continued` is what it continues.

    Checks what holds for every answer: joined pieces are the whole, and `generate` gives the same as `stream`.
    """
    if prompt is None:
        final = () if continued is None else ({"role": "assistant", "content": continued},)
        prompt = ChatPrompt([*USER, *final], tools, thinking, continue_final=continued is not None)
    engine = engine or chat_engine(lambda _: [], framing)
    model: Any = engine._loaded.model
    request = RequestOptions(max_new_tokens, sampling=sampling or SamplingOptions(temperature=0.0), **options)
    model.script = wants(len(prepare_prompt(prompt, engine._loaded).tokens))
    stream = engine.stream(prompt, request)
    deltas = list(stream.deltas())
    result = stream.result
    check_pieces(deltas, result)
    whole = engine.generate(prompt, request)
    assert (whole.token_ids, whole.text, whole.reasoning) == (result.token_ids, result.text, result.reasoning)
    assert (whole.tool_calls, whole.finish_reason) == (result.tool_calls, result.finish_reason)
    return result


def check_pieces(deltas: Sequence[PublishedDelta], result: GenerationResult) -> None:
    """The pieces that were published join to the result, and a call that was not completed is not in it."""
    assert (published(deltas), reasoning_of(deltas)) == (result.text, result.reasoning)
    calls = joined_calls(deltas)
    assert [calls[index] for index in range(len(result.tool_calls))] == list(result.tool_calls)
    num_open = len(calls) - len(result.tool_calls)
    assert num_open == 0 or (num_open == 1 and result.finish_reason is not FinishReason.STOP_TOKEN)


def strict_tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> ToolDefinition:
    """A strict tool with these properties' schemas."""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolDefinition.of(name, parameters, strict=True)


def call_text(framing: Framing, name: str, **arguments: Any) -> str:
    """A call as the framing has it."""
    if framing.tool_style is ToolStyle.JSON:
        return json_call(name, json.dumps(arguments, ensure_ascii=False))
    return xml_call(
        name, {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    )


def at_content(framing: Framing) -> bool | None:
    """How to ask for an answer that begins with its content."""
    return None if framing.think_close is None else False
