"""A caller's prompt as tokens, with what is known of where the answer begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from infernix.errors import InvalidPrompt, InvalidToolConstraint
from infernix.frontend.framing import Framing
from infernix.frontend.messages import checked_messages
from infernix.frontend.phases import StartingPhase, starting_phase
from infernix.frontend.template import ChatTemplate
from infernix.frontend.template_values import Conversation
from infernix.frontend.tokenizer import Tokenizer
from infernix.messages import ChatPrompt
from infernix.options import shown_value
from infernix.tools import ToolDefinition


@dataclass(frozen=True, slots=True)
class PreparedPrompt:
    """A prompt ready for the model.

    `phase` is what the answer begins in; `continuation` is the text of the assistant's message that it continues, or
    None where it begins a new one. `prepare_seconds` is the wall time that preparing it took, where it was measured.
    """

    tokens: tuple[int, ...]
    phase: StartingPhase = StartingPhase.RAW
    tools: tuple[ToolDefinition, ...] = ()
    continuation: str | None = None
    prepare_seconds: float = field(default=0.0, compare=False)


def prepare_text(text: str, tokenizer: Tokenizer) -> PreparedPrompt:
    """A text to continue as it stands: the spelling of a control token in it is that token, and what the model expects
    before any text (a beginning-of-sequence token) comes first. Raises InvalidPrompt.
    """
    return PreparedPrompt(_not_empty(tokenizer.encode_prompt(text)))


def prepare_tokens(tokens: Sequence[int], tokenizer: Tokenizer) -> PreparedPrompt:
    """Token ids to continue, taken as they are. Raises InvalidPrompt for what is no token id."""
    for token in tokens:
        if isinstance(token, bool) or not isinstance(token, int):
            raise InvalidPrompt(f"a list of token ids holds a {type(token).__name__}")
        if not 0 <= token < tokenizer.num_tokens:
            raise InvalidPrompt(f"token id {shown_value(token)} is outside 0..{tokenizer.num_tokens - 1}")
    return PreparedPrompt(_not_empty(tokens))


def prepare_chat(prompt: ChatPrompt, tokenizer: Tokenizer, template: ChatTemplate, framing: Framing) -> PreparedPrompt:
    """A conversation through the model's chat template, where nothing that is said can spell a control token.

    Raises InvalidPrompt for a malformed message and where the template cannot render the conversation, or not end it in
    the message that is to be continued; InvalidToolConstraint for tools that are not well formed.
    """
    _check_fields(prompt)
    messages = tuple(checked_messages(prompt.messages))
    if prompt.continue_final:
        final = messages[-1]
        place = f"messages[{len(messages) - 1}]"
        if final.role != "assistant":
            raise InvalidPrompt(
                f"{place}.role: only an assistant's message can be continued, not one of {final.role!r}"
            )
        if not final.content:
            raise InvalidPrompt(f"{place}.content: there is nothing to continue")
        if final.tool_calls:
            raise InvalidPrompt(f"{place}.tool_calls: a message with finished calls cannot be continued")
    tools = tuple(prompt.tools)
    conversation = Conversation(messages, tools, prompt.thinking, prompt.continue_final)
    tokens = _not_empty(template.render(conversation))
    phase = starting_phase(_after_last_turn(tokens, tokenizer.eos_ids), framing)
    _check_thinking(prompt, phase)
    return PreparedPrompt(tokens, phase, tools, messages[-1].content if prompt.continue_final else None)


def _check_fields(prompt: ChatPrompt) -> None:
    if isinstance(prompt.tools, str) or not isinstance(prompt.tools, Sequence):
        raise InvalidToolConstraint(f"tools are a list of ToolDefinition, not {type(prompt.tools).__name__}")
    for index, tool in enumerate(prompt.tools):
        if not isinstance(tool, ToolDefinition):
            raise InvalidToolConstraint(f"expected a ToolDefinition, got {type(tool).__name__}", f"/{index}")
    if prompt.thinking is not None and not isinstance(prompt.thinking, bool):
        raise InvalidPrompt(
            f"thinking: expected true, false or nothing, got {shown_value(prompt.thinking)}", field="thinking"
        )
    if not isinstance(prompt.continue_final, bool):
        raise InvalidPrompt(
            f"continue_final: expected true or false, got {shown_value(prompt.continue_final)}", field="continue_final"
        )


def _check_thinking(prompt: ChatPrompt, phase: StartingPhase) -> None:
    """A wish that the template does not fulfil is refused."""
    if phase is StartingPhase.THINKING:
        if prompt.continue_final:
            raise InvalidPrompt("the chat template leaves the message that is to be continued inside thinking")
        if prompt.thinking is False:
            raise InvalidPrompt("the chat template cannot switch thinking off", field="thinking")
    elif prompt.thinking:
        raise InvalidPrompt("the chat template does not begin an answer with thinking", field="thinking")


def _after_last_turn(tokens: Sequence[int], eos_ids: frozenset[int]) -> Sequence[int]:
    """What follows the last token that ends a turn: the turn to be answered."""
    for index in range(len(tokens) - 1, -1, -1):
        if tokens[index] in eos_ids:
            return tokens[index + 1 :]
    return tokens


def _not_empty(tokens: Sequence[int]) -> tuple[int, ...]:
    if not tokens:
        raise InvalidPrompt("the prompt is empty: there is nothing to continue")
    return tuple(tokens)
