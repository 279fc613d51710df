"""What an answer cost and what is known of its constraint, the same on all protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from infernix.results import ConstraintObservation, GenerationResult


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of an answer, or of several to one prompt, which then counts once.

    `cached` of the prompt's tokens were not computed anew; `reasoning` of the output's tokens are thinking, what ends
    it by force included.
    """

    prompt: int
    cached: int
    output: int
    reasoning: int

    @classmethod
    def of(cls, results: Sequence[GenerationResult]) -> Usage:
        """Of at least one result."""
        return cls(
            prompt=results[0].num_prompt_tokens,
            cached=results[0].num_reused_prompt_tokens,
            output=sum(result.num_generated_tokens for result in results),
            reasoning=sum(map(_num_reasoning_tokens, results)),
        )

    @property
    def total(self) -> int:
        """Of prompt and output."""
        return self.prompt + self.output


def _num_reasoning_tokens(result: GenerationResult) -> int:
    thinking = result.thinking
    return 0 if thinking is None else thinking.num_model_tokens + thinking.num_injected_tokens


def constraint_record(observation: ConstraintObservation | None) -> dict[str, Any] | None:
    """The `constraint` object of bodies and terminal events; None for an answer without a constraint."""
    return None if observation is None else observation.record()
