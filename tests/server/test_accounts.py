from __future__ import annotations

from typing import Any

import pytest

from infernix.results import GenerationResult
from infernix.server.accounts import Usage
from support.chat_engine import converse, wanting
from support.chat_output import FORCED_END, THINK_CLOSE, text_tokens

A = ord("a")
OK = text_tokens(b"\n\nok")


def answer(said: list[int], **options: Any) -> GenerationResult:
    """Ends in one token more than `said`."""
    return converse(wanting(said), **options)


@pytest.mark.parametrize(
    ("said", "budget", "num_reasoning"),
    [
        # The token that closes is no thinking where the model says it, and nothing behind it is.
        ([A, A, THINK_CLOSE, *OK], None, 2),
        ([A, A, THINK_CLOSE, *OK], 7, 2),
        # What the engine puts in to end it counts, whole.
        ([A] * 3 + [*FORCED_END, *text_tokens(b"ok")], 3, 3 + len(FORCED_END)),
        ([*FORCED_END, *text_tokens(b"ok")], 0, len(FORCED_END)),
    ],
)
def test_the_tokens_of_thinking_and_no_others_are_reasoning(
    said: list[int], budget: int | None, num_reasoning: int
) -> None:
    result = answer(said, thinking_budget=budget)
    usage = Usage.of([result])
    assert (result.text, usage.reasoning) == ("ok", num_reasoning)
    assert usage.output == len(said) + 1
    assert usage.total == result.num_prompt_tokens + len(said) + 1


def test_several_answers_to_one_prompt_count_it_once() -> None:
    results = [answer([A, A, THINK_CLOSE, *OK]), answer([A, THINK_CLOSE, *OK])]
    usage = Usage.of(results)
    assert (usage.prompt, usage.reasoning) == (results[0].num_prompt_tokens, 3)
    assert usage.output == sum(len(result.token_ids) for result in results)
