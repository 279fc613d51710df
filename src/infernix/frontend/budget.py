"""How many tokens a request may still have, and what ends it when they are used up."""

from __future__ import annotations

from dataclasses import dataclass

from infernix.errors import ContextLengthExceeded
from infernix.results import FinishReason


@dataclass(frozen=True, slots=True)
class OutputBudget:
    """At most `num_tokens` new tokens; `limit_reason` says which limit that is."""

    num_tokens: int
    limit_reason: FinishReason

    @classmethod
    def of(cls, max_new_tokens: int, num_prompt_tokens: int, max_context: int) -> OutputBudget:
        """The smaller of what was asked for and what the context has room for.

        The last new token needs no position of its own, since nothing is predicted from it: hence the one more.
        Raises ContextLengthExceeded if the prompt has no room.
        """
        if num_prompt_tokens > max_context:
            raise ContextLengthExceeded(
                f"the prompt has {num_prompt_tokens} tokens and the context holds {max_context}"
            )
        capacity = max_context - num_prompt_tokens + 1
        if max_new_tokens <= capacity:
            return cls(max_new_tokens, FinishReason.OUTPUT_LIMIT)
        return cls(capacity, FinishReason.CONTEXT_CAPACITY)
