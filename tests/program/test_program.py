from __future__ import annotations

import numpy as np
import pytest

from infernix.matching.vocabulary import TokenClass
from infernix.ops.acceptance import RowFailure
from infernix.ops.random import Purpose, uniform
from infernix.ops.reference import target_distribution
from infernix.options import SamplingParameters
from infernix.program.pending import PendingBatch, RowDecision
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from support.scripted_model import ScriptedModel, preferring, saying
from support.scripted_program import GO_ON, NUM_LOGITS, VOCABULARY, FixedMask, spread
from support.vocabularies import EOS_IDS, PADDING

GREEDY = SamplingParameters(temperature=0.0)
PROMPT = [1, 2, 3, 4, 5]


def program_for(model: ScriptedModel, chunk: int = 512) -> Program:
    return Program(model, VOCABULARY, prefill_chunk_tokens=chunk, num_cache_positions=1000)


def prefill(program: Program, sequence: PhysicalSequence, mask: FixedMask | None = None) -> PendingBatch:
    while (batch := program.prefill_chunk(sequence, mask)) is None:
        pass
    return batch


def generate(program: Program, sampling: SamplingParameters, num_tokens: int) -> list[int]:
    sequence = program.start(PROMPT, num_tokens, sampling)
    program.commit(prefill(program, sequence), [GO_ON])
    for _ in range(num_tokens - 1):
        program.commit(program.decode_batch([sequence], None), [GO_ON])
    return sequence.ledger[len(PROMPT) :]


@pytest.mark.parametrize(("chunk", "units"), [(512, [5]), (5, [5]), (4, [4, 1]), (2, [2, 2, 1]), (1, [1] * 5)])
def test_a_prompt_runs_in_chunks_and_only_the_last_one_samples(chunk: int, units: list[int]) -> None:
    model = ScriptedModel(saying([7], 5, NUM_LOGITS), NUM_LOGITS)
    program = program_for(model, chunk)
    sequence = program.start(PROMPT, 3, GREEDY)
    mask = FixedMask([7, 8])
    for _ in units[:-1]:
        assert program.prefill_chunk(sequence, mask) is None
        assert mask.num_fills == 0
    batch = program.prefill_chunk(sequence, mask)
    assert batch is not None
    assert batch.rows[0].tokens == (7,)
    assert (model.units, mask.num_fills) == (units, 1)


@pytest.mark.parametrize("chunk", [1, 2, 512])
def test_the_output_does_not_depend_on_the_chunks(chunk: int) -> None:
    sampled = SamplingParameters(seed=11)
    expected = generate(program_for(ScriptedModel(spread, NUM_LOGITS)), sampled, 12)
    assert generate(program_for(ScriptedModel(spread, NUM_LOGITS), chunk), sampled, 12) == expected
    assert len(set(expected)) > 3


def test_a_prompt_can_be_processed_without_sampling() -> None:
    model = ScriptedModel(saying([7], 5, NUM_LOGITS), NUM_LOGITS)
    program = program_for(model, 3)
    sequence = program.start(PROMPT, 0, GREEDY)
    mask = FixedMask([7])
    assert program.prefill_chunk(sequence, mask, sample=False) is None
    assert program.prefill_chunk(sequence, mask, sample=False) is None
    assert sequence.num_unprocessed_prompt_tokens == 0
    assert (model.units, mask.num_fills) == ([3, 2], 0)
    with pytest.raises(ValueError, match="processed"):
        program.prefill_chunk(sequence, mask)


def test_decode_runs_the_anchor_only() -> None:
    model = ScriptedModel(saying([7, 8, 9], 5, NUM_LOGITS), NUM_LOGITS)
    program = program_for(model)
    sequence = program.start(PROMPT, 3, GREEDY)
    program.commit(prefill(program, sequence), [GO_ON])
    assert (sequence.anchor, sequence.execution_frontier) == (7, 5)
    program.commit(program.decode_batch([sequence], None), [GO_ON])
    assert (sequence.anchor, sequence.execution_frontier) == (8, 6)
    assert model.units == [5, 1]
    assert sequence.cache.num_tokens == 6


def test_the_cache_is_as_large_as_what_will_be_run() -> None:
    model = ScriptedModel(saying([7], 5, NUM_LOGITS), NUM_LOGITS)
    generate(program_for(model), GREEDY, 4)
    assert model.caches[0].max_tokens == 8
    assert model.caches[0].num_tokens == 8


def test_nothing_counts_before_the_commit() -> None:
    program = program_for(ScriptedModel(spread, NUM_LOGITS))
    sequence = program.start(PROMPT, 3, GREEDY)
    batch = prefill(program, sequence)
    assert sequence.ledger == PROMPT
    assert sequence.counts.ids.size == 0
    program.commit(batch, [GO_ON])
    assert sequence.ledger == [*PROMPT, *batch.rows[0].tokens]
    assert sequence.counts.ids.tolist() == list(batch.rows[0].tokens)


def test_an_aborted_unit_runs_again_with_the_same_outcome() -> None:
    sampled = SamplingParameters(seed=4, presence_penalty=1.0)
    expected = generate(program_for(ScriptedModel(spread, NUM_LOGITS)), sampled, 6)
    program = program_for(ScriptedModel(spread, NUM_LOGITS))
    sequence = program.start(PROMPT, 6, sampled)
    for _ in range(3):
        program.abort_pending(prefill(program, sequence))
        assert sequence.cache.num_tokens == 0
    program.commit(prefill(program, sequence), [GO_ON])
    for _ in range(5):
        program.abort_pending(program.decode_batch([sequence], None))
        program.commit(program.decode_batch([sequence], None), [GO_ON])
    assert sequence.ledger[5:] == expected


def test_a_batch_is_used_once_and_blocks_the_next_unit() -> None:
    program = program_for(ScriptedModel(spread, NUM_LOGITS))
    sequence = program.start(PROMPT, 3, GREEDY)
    batch = prefill(program, sequence)
    with pytest.raises(ValueError, match="neither committed nor aborted"):
        program.prefill_chunk(sequence, None)
    program.commit(batch, [GO_ON])
    with pytest.raises(ValueError, match="before"):
        program.commit(batch, [GO_ON])
    with pytest.raises(ValueError, match="before"):
        program.abort_pending(batch)


def test_decoding_needs_a_first_token() -> None:
    program = program_for(ScriptedModel(spread, NUM_LOGITS))
    with pytest.raises(ValueError, match="prefill"):
        program.decode_batch([program.start(PROMPT, 3, GREEDY)], None)


@pytest.mark.parametrize(
    "decision", [RowDecision(0, is_terminal=False), RowDecision(2, is_terminal=True), RowDecision(2, is_terminal=False)]
)
def test_a_decision_that_does_not_suit_changes_nothing(decision: RowDecision) -> None:
    program = program_for(ScriptedModel(spread, NUM_LOGITS))
    sequence = program.start(PROMPT, 3, GREEDY)
    batch = prefill(program, sequence)
    with pytest.raises(ValueError, match="suit"):
        program.commit(batch, [decision])
    assert sequence.ledger == PROMPT
    program.commit(batch, [GO_ON])


def test_a_terminal_row_gives_its_memory_back() -> None:
    program = program_for(ScriptedModel(spread, NUM_LOGITS))
    sequence = program.start(PROMPT, 3, GREEDY)
    program.commit(prefill(program, sequence), [RowDecision(1, is_terminal=True)])
    assert sequence.is_released
    assert sequence.num_generated_tokens == 1
    with pytest.raises(ValueError, match="released"):
        program.decode_batch([sequence], None)


def test_a_dead_end_costs_no_forward_pass_and_commits_nothing() -> None:
    model = ScriptedModel(saying([7], 5, NUM_LOGITS), NUM_LOGITS)
    program = program_for(model)
    sequence = program.start(PROMPT, 3, GREEDY)
    program.commit(prefill(program, sequence), [GO_ON])
    batch = program.decode_batch([sequence], FixedMask([]))
    assert (batch.rows[0].tokens, batch.rows[0].failure) == ((), RowFailure.DEAD_END)
    assert model.units == [5]
    with pytest.raises(ValueError, match="suit"):
        program.commit(batch, [GO_ON])
    program.commit(batch, [RowDecision(0, is_terminal=True)])
    assert sequence.is_released
    assert sequence.ledger == [*PROMPT, 7]


@pytest.mark.parametrize("sampling", [GREEDY, SamplingParameters()])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_broken_logits_are_a_failure_of_their_own(bad: float, sampling: SamplingParameters) -> None:
    program = program_for(ScriptedModel(lambda _: np.full(NUM_LOGITS, bad), NUM_LOGITS))
    for mask in (None, FixedMask([3, 4])):
        batch = prefill(program, program.start(PROMPT, 3, sampling), mask)
        assert (batch.rows[0].tokens, batch.rows[0].failure) == ((), RowFailure.NON_FINITE_LOGITS)


def test_free_output_has_text_control_and_end_tokens_but_no_padding() -> None:
    wanted = preferring(NUM_LOGITS, {PADDING: 90.0, 60: 80.0, EOS_IDS[1]: 70.0})
    program = program_for(ScriptedModel(lambda _: wanted, NUM_LOGITS))
    batch = prefill(program, program.start(PROMPT, 3, GREEDY))
    assert batch.rows[0].tokens == (EOS_IDS[1],)


def test_the_mask_decides_for_a_constrained_row() -> None:
    program = program_for(ScriptedModel(saying([7], 5, NUM_LOGITS), NUM_LOGITS))
    batch = prefill(program, program.start(PROMPT, 3, GREEDY), FixedMask([30, 40]))
    assert batch.rows[0].tokens == (30,)


def test_penalties_see_committed_tokens_and_not_the_prompt() -> None:
    wanted = preferring(NUM_LOGITS, {1: 3.0, 2: 2.5, 3: 1.0})
    program = program_for(ScriptedModel(lambda _: wanted, NUM_LOGITS))
    # Token 1 is in the prompt and yet the best. A token that came n times has 1 + n less. The third token is a tie
    # of 1 and 3 (both 1.0), the fourth is 3 because 1 has 0.0 left.
    sampling = SamplingParameters(temperature=0.0, presence_penalty=1.0, frequency_penalty=1.0)
    assert generate(program, sampling, 5) == [1, 2, 1, 3, 2]


def test_one_seed_gives_one_answer_and_another_seed_another() -> None:
    def run(seed: int) -> list[int]:
        return generate(program_for(ScriptedModel(spread, NUM_LOGITS)), SamplingParameters(seed=seed), 20)

    assert run(5) == run(5)
    assert run(5) != run(6)


def test_each_draw_is_made_for_its_place_in_the_whole_sequence() -> None:
    """Positions count from the first prompt token; only the first new token is drawn at the end of a prefill."""
    domain = VOCABULARY.classes != TokenClass.NEVER
    sampling = SamplingParameters(seed=77)
    tokens = generate(program_for(ScriptedModel(spread, NUM_LOGITS)), sampling, 15)
    for place, token in enumerate(tokens):
        so_far = (*PROMPT, *tokens[:place])
        logits = np.asarray(spread(so_far), dtype=np.float32)
        purpose = Purpose.PREFILL if place == 0 else Purpose.DECODE
        number = uniform(77, len(so_far), purpose)
        assert target_distribution(logits, domain, sampling, {}).draw(number) == token


def test_interleaved_sequences_do_not_disturb_each_other() -> None:
    alone = [
        generate(program_for(ScriptedModel(spread, NUM_LOGITS)), SamplingParameters(seed=seed), 8) for seed in (1, 2)
    ]
    program = program_for(ScriptedModel(spread, NUM_LOGITS))
    sequences = [program.start(PROMPT, 8, SamplingParameters(seed=seed)) for seed in (1, 2)]
    for sequence in sequences:
        program.commit(prefill(program, sequence), [GO_ON])
    for _ in range(7):
        for sequence in sequences:
            program.commit(program.decode_batch([sequence], None), [GO_ON])
    assert [sequence.ledger[5:] for sequence in sequences] == alone


def test_a_vocabulary_wider_than_the_logits_is_refused() -> None:
    with pytest.raises(ValueError, match="50 tokens but only 49 logits"):
        Program(ScriptedModel(spread, 49), VOCABULARY, num_cache_positions=10)
    with pytest.raises(ValueError, match="chunk"):
        Program(ScriptedModel(spread, 64), VOCABULARY, num_cache_positions=10, prefill_chunk_tokens=0)
