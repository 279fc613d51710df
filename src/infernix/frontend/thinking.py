"""The thinking budget, and the text that ends the reasoning when it is used up."""

from __future__ import annotations

from dataclasses import dataclass

from infernix.errors import InvalidOptions, ThinkingBudgetCapacity
from infernix.frontend.framing import THINK_CLOSE, THINK_SEPARATOR, Framing
from infernix.frontend.tokenizer import TextPiece, Tokenizer

DEFAULT_FORCED_END = (
    "\n\nThere is no time left to think further, so I give my answer now, from what I have found so far.\n</think>\n\n"
)
# What ends every reasoning in the models' own form; the mark in it is the token, not its spelling.
_CANONICAL_CLOSE = f"\n{THINK_CLOSE}{THINK_SEPARATOR.decode()}"


def encode_forced_end(tokenizer: Tokenizer, framing: Framing, message: str = DEFAULT_FORCED_END) -> tuple[int, ...]:
    """The tokens that end a reasoning: `message`, with the canonical close put behind it where it does not end in it.

    Whatever else the message spells is text. Empty for a model that does not think. Raises InvalidOptions where the
    tokens do not give the message back byte for byte, or hold one that ends the sequence.
    """
    if framing.think_close is None:
        return ()
    text = message.removesuffix(_CANONICAL_CLOSE) + "\n"
    pieces: list[TextPiece | int] = [TextPiece(text), framing.think_close, TextPiece(THINK_SEPARATOR.decode())]
    tokens = tuple(tokenizer.encode_pieces(pieces))
    spelled = b"".join(tokenizer.token_bytes(token) for token in tokens)
    if spelled != text.encode() + _CANONICAL_CLOSE.encode().removeprefix(b"\n"):
        raise InvalidOptions("the tokenizer does not keep the text", field="thinking_end")
    if not tokenizer.eos_ids.isdisjoint(tokens) or tokens.count(framing.think_close) != 1:
        raise InvalidOptions("the text gives tokens that end the output or the reasoning", field="thinking_end")
    return tokens


@dataclass(frozen=True, slots=True)
class ThinkingLimit:
    """At most `budget` model tokens of reasoning (None: without bound); then `forced_end` takes its place."""

    budget: int | None = None
    forced_end: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.budget is not None and not self.forced_end:
            raise ValueError("a thinking budget needs the tokens that end the reasoning")

    def check_capacity(self, num_tokens: int, *, num_opening_tokens: int = 0) -> None:
        """Raises ThinkingBudgetCapacity where the reasoning can be cut, but no token of an answer fits behind it.

        A budget that the output's own limit, `num_tokens`, does not exceed never cuts anything. `num_opening_tokens`
        are the model's before its reasoning.
        """
        if self.budget is None or num_tokens - num_opening_tokens <= self.budget:
            return
        num_needed = num_opening_tokens + self.budget + len(self.forced_end) + 1
        if num_tokens < num_needed:
            raise ThinkingBudgetCapacity(
                f"{num_tokens} new tokens have no room for {self.budget} of thinking, the {len(self.forced_end)} that"
                f" end it and one of an answer: at least {num_needed} are needed"
            )

    def num_left(self, num_thinking_tokens: int) -> int | None:
        """Model tokens of reasoning that may still come; None: without bound."""
        return None if self.budget is None else max(0, self.budget - num_thinking_tokens)
