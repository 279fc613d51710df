from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from infernix.results import FinishReason, GenerationResult, GenerationTimings, ThinkingStatistics


class Person(BaseModel):
    name: str
    age: int


def result_with(text: str) -> GenerationResult:
    timings = GenerationTimings(prepare_seconds=0.0, prefill_seconds=0.0, decode_seconds=0.0, total_seconds=0.0)
    return GenerationResult(text, (5, 6, 7), 4, FinishReason.STOP_TOKEN, None, timings)


def test_parsing_gives_the_typed_object() -> None:
    person = result_with(' {"name": "Ada", "age": 36}\n').parse(Person)
    assert person == Person(name="Ada", age=36)


@pytest.mark.parametrize("text", ["", '{"name": "Ada", "ag', '{"name": "Ada"}'])
def test_parsing_a_text_that_a_limit_cut_raises(text: str) -> None:
    with pytest.raises(ValidationError):
        result_with(text).parse(Person)


def test_every_committed_token_is_counted() -> None:
    assert result_with("").num_generated_tokens == 3


def test_reasons_are_their_own_text() -> None:
    reasons = ["stop_token", "stop_string", "output_limit", "context_capacity", "cancelled"]
    assert [str(reason) for reason in FinishReason] == reasons


def test_thinking_was_forced_where_tokens_were_injected() -> None:
    assert ThinkingStatistics(5, 5, 3).was_forced
    assert not ThinkingStatistics(5, 5, 0).was_forced
