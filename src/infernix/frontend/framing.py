"""How a model marks the parts of its output: thinking, content, tool calls."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from infernix.frontend.tokenizer import Tokenizer

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"
TOOL_OPEN, TOOL_CLOSE = "<tool_call>", "</tool_call>"
# Between the token that closes thinking and the content, byte for byte.
THINK_SEPARATOR = b"\n\n"


class ToolStyle(StrEnum):
    """How a call is written: XML as Qwen3.5 does, JSON as Hermes, Qwen2 and Qwen3 do."""

    XML = "xml"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Framing:
    """The control tokens of a model's output; None where its vocabulary has no such token.

    Without a `think_close` the model does not think. Without `tool_open` and `tool_close` their spelling as text takes
    their place. `passing_ids` are control tokens that may stand inside reasoning: those that a model is trained to
    write and read as text. The one that closes thinking and those that end the sequence are never among them.
    """

    tool_style: ToolStyle = ToolStyle.JSON
    think_open: int | None = None
    think_close: int | None = None
    tool_open: int | None = None
    tool_close: int | None = None
    passing_ids: tuple[int, ...] = ()

    @classmethod
    def of(cls, tokenizer: Tokenizer, template_source: str) -> Framing:
        """From the tokens that a model has and the way its chat template writes a call."""
        think_close = tokenizer.control_id(THINK_CLOSE)
        passing = tokenizer.unmarked_control_ids - tokenizer.eos_ids - {think_close}
        return cls(
            tool_style=ToolStyle.XML if "<function=" in template_source else ToolStyle.JSON,
            think_open=tokenizer.control_id(THINK_OPEN),
            think_close=think_close,
            tool_open=tokenizer.control_id(TOOL_OPEN),
            tool_close=tokenizer.control_id(TOOL_CLOSE),
            passing_ids=tuple(sorted(passing)),
        )
