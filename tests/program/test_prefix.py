"""Shared beginnings: what is not run again, and that nothing of the first request is in the second."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from models.tiny import load, tiny_model
from models.tiny_qwen3_5 import load_qwen3_5, tiny_qwen3_5

from infernix.options import SamplingParameters
from infernix.program.pending import PendingBatch, RowDecision
from infernix.program.prefix import num_common_tokens
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from support.scripted_model import ScriptedModel
from support.scripted_program import GO_ON, NUM_LOGITS, VOCABULARY, FixedMask, spread

PROMPT = [1, 2, 3, 4, 5, 6]
SAMPLED = SamplingParameters(seed=3)


def pooled(num_positions: int = 200) -> tuple[Program, ScriptedModel]:
    model = ScriptedModel(spread, NUM_LOGITS)
    return Program(model, VOCABULARY, num_cache_positions=num_positions), model


def finish(program: Program, sequence: PhysicalSequence, count: int, masks: FixedMask | None = None) -> list[int]:
    batch: PendingBatch | None = None
    while batch is None:
        batch = program.prefill_chunk(sequence, masks)
    program.commit(batch, [GO_ON])
    for _ in range(count - 1):
        program.commit(program.decode_batch([sequence], masks), [GO_ON])
    return sequence.ledger[sequence.num_prompt_tokens :]


def test_an_exact_hit_samples_with_the_new_requests_mask_and_without_a_pass() -> None:
    program, model = pooled()
    first = program.start(PROMPT, 5, SAMPLED)
    finish(program, first, 1, FixedMask([30]))
    prefix = program.prefix(first)
    assert prefix.tokens == tuple(PROMPT)
    expected = finish(program, program.start(PROMPT, 5, SAMPLED), 3, FixedMask([7, 8, 9]))
    num_passes = len(model.batches)
    sequence = program.start(PROMPT, 5, SAMPLED, prefix=prefix)
    assert sequence.num_unprocessed_prompt_tokens == 0
    batch = program.prefill_chunk(sequence, FixedMask([7, 8, 9]))
    assert len(model.batches) == num_passes
    assert batch is not None
    program.abort_pending(batch)
    batch = program.prefill_chunk(sequence, FixedMask([7, 8, 9]))
    assert batch is not None
    program.commit(batch, [GO_ON])
    for _ in range(2):
        program.commit(program.decode_batch([sequence], FixedMask([7, 8, 9])), [GO_ON])
    assert sequence.ledger[len(PROMPT) :] == expected
    with pytest.raises(ValueError, match="processed"):
        program.prefill_chunk(sequence, None)


def test_a_prompt_is_an_exact_hit_although_its_request_ends_with_its_first_token() -> None:
    program, model = pooled()
    first = program.start(PROMPT, 5, SAMPLED)
    batch = program.prefill_chunk(first, FixedMask([30]))
    assert batch is not None
    prefix = program.prefix(first)
    program.commit(batch, [RowDecision(1, is_terminal=True)])
    expected = finish(program, program.start(PROMPT, 5, SAMPLED), 3)
    num_passes = len(model.batches)
    sequence = program.start(PROMPT, 5, SAMPLED, prefix=prefix)
    assert finish(program, sequence, 1) == expected[:1]
    assert len(model.batches) == num_passes
    assert first.pending_logits is sequence.pending_logits is None


def test_a_recurrent_state_is_shared_where_it_ends_and_nowhere_else() -> None:
    model = ScriptedModel(spread, NUM_LOGITS, is_recurrent=True)
    program = Program(model, VOCABULARY, num_cache_positions=200)
    first = program.start(PROMPT, 5, SAMPLED)
    finish(program, first, 1)
    prefix = program.prefix(first)
    longer, shorter = [*PROMPT, 9, 9], PROMPT[:4]
    assert [prefix.num_reusable(prompt) for prompt in (PROMPT, longer, shorter)] == [6, 6, 0]
    for prompt in (PROMPT, longer, shorter):
        expected = finish(program, program.start(prompt, 5, SAMPLED), 3)
        assert finish(program, program.start(prompt, 5, SAMPLED, prefix=prefix), 3) == expected


def test_an_exact_hit_may_be_a_dead_end_for_the_next() -> None:
    program, _ = pooled()
    first = program.start(PROMPT, 5, SAMPLED)
    finish(program, first, 1)
    sequence = program.start(PROMPT, 5, SAMPLED, prefix=program.prefix(first))
    batch = program.prefill_chunk(sequence, FixedMask([]))
    assert batch is not None
    assert batch.rows[0].failure == "dead_end"
    program.commit(batch, [RowDecision(0, is_terminal=True)])
    assert finish(program, program.start(PROMPT, 5, SAMPLED, prefix=program.prefix(first)), 2)


@pytest.mark.parametrize(
    ("prompt", "num_reused"), [([*PROMPT, 9, 9], 6), ([1, 2, 3, 9], 3), ([1, 2, 3], 2), ([9], 0), ([1], 0)]
)
def test_common_beginnings_are_not_run_again(prompt: list[int], num_reused: int) -> None:
    program, model = pooled()
    first = program.start(PROMPT, 5, SAMPLED)
    finish(program, first, 1)
    prefix = program.prefix(first)
    expected = finish(program, program.start(prompt, 5, SAMPLED), 4)
    passes = len(model.units)
    sequence = program.start(prompt, 5, SAMPLED, prefix=prefix)
    assert finish(program, sequence, 4) == expected
    assert model.units[passes] == len(prompt) - num_reused


def test_the_output_of_a_request_may_be_part_of_the_prefix() -> None:
    program, model = pooled()
    first = program.start(PROMPT, 5, SAMPLED)
    answer = finish(program, first, 3)
    batch = program.decode_batch([first], None)
    prefix = program.prefix(first)
    program.commit(batch, [RowDecision(1, is_terminal=True)])
    assert first.is_released
    assert prefix.tokens == (*PROMPT, *answer)
    prompt = [*PROMPT, *answer, 11, 12]
    expected = finish(program, program.start(prompt, 5, SAMPLED), 3)
    sequence = program.start(prompt, 5, SAMPLED, prefix=prefix)
    passes = len(model.units)
    assert finish(program, sequence, 3) == expected
    assert model.units[passes] == 2


def test_memory_is_held_as_long_as_somebody_needs_it() -> None:
    program, _ = pooled()
    first = program.start(PROMPT, 5, SAMPLED)
    finish(program, first, 2)
    prefix = program.prefix(first)
    sequence = program.start(PROMPT, 5, SAMPLED, prefix=prefix)
    first.release()
    prefix.release()
    assert program.pool.num_free_positions < program.pool.num_positions
    sequence.release()
    assert program.pool.num_free_positions == program.pool.num_positions


@pytest.mark.parametrize("kind", ["llama", "qwen3_5"])
def test_a_real_network_continues_a_prefix_to_the_bit(kind: str, tmp_path: Path) -> None:
    if kind == "llama":
        tiny_model("llama").save_pretrained(tmp_path)
    else:
        tiny_qwen3_5().save_pretrained(tmp_path)
    model = load(tmp_path) if kind == "llama" else load_qwen3_5(tmp_path)
    program = Program(model, VOCABULARY, num_cache_positions=1000)
    prompt = [(7 * place) % 50 for place in range(45)]
    first = program.start(prompt, 40, SAMPLED)
    answer = finish(program, first, 1)
    prefix = program.prefix(first)
    # The first one goes on: neither it nor its successor sees the other's tokens.
    for _ in range(19):
        program.commit(program.decode_batch([first], None), [GO_ON])
    second = program.start(prompt, 40, SAMPLED, prefix=prefix)
    assert finish(program, second, 20) == first.ledger[len(prompt) :]
    assert second.ledger[len(prompt)] == answer[0]
    assert first.frontier_logits is not None
    assert second.frontier_logits is not None
    assert torch.equal(first.frontier_logits, second.frontier_logits)
    # A longer prompt runs only what is new.
    longer = [*prompt, 9, 8, 7]
    alone = program.start(longer, 10, SAMPLED)
    assert program.start(longer, 10, SAMPLED, prefix=prefix).num_unprocessed_prompt_tokens == 3
    assert finish(program, program.start(longer, 10, SAMPLED, prefix=prefix), 5) == finish(program, alone, 5)


def test_common_beginnings_are_counted_as_token_by_token() -> None:
    rng = random.Random(4)
    for _ in range(2000):
        first = [rng.randint(0, 1) for _ in range(rng.choice([0, 5, 63, 64, 65, 300]))]
        second = first[: rng.randint(0, 300)] + [rng.randint(0, 1) for _ in range(rng.choice([0, 8, 200]))]
        pairs = zip(first, second, strict=False)
        expected = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
        assert num_common_tokens(tuple(first), tuple(second)) == expected


def test_comparing_takes_no_python_step_a_token() -> None:
    tokens = tuple(range(1 << 14))
    num_lines = 0

    def count(_: object, event: str, __: object) -> Any:
        nonlocal num_lines
        num_lines += event == "line"
        return count

    for place in (0, 1000, len(tokens) - 1):
        prompt = list(tokens)
        prompt[place] = -1
        before = sys.gettrace()
        sys.settrace(count)
        try:
            num_common = num_common_tokens(tuple(prompt), tokens)
        finally:
            sys.settrace(before)
        assert num_common == place
    assert num_lines < 300
