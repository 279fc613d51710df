"""Sequences whose memory is taken away for a while go on as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from models.tiny import load, tiny_model
from models.tiny_qwen3_5 import load_qwen3_5, tiny_qwen3_5

from infernix.models.model import LanguageModel
from infernix.options import SamplingParameters
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from support.scripted_model import ScriptedCache, ScriptedModel
from support.scripted_program import GO_ON, NUM_LOGITS, VOCABULARY, spread

PROMPT = [1, 2, 3, 4, 5, 6, 7]
SAMPLED = SamplingParameters(seed=3, presence_penalty=0.3, frequency_penalty=0.2)
PAUSES = {"snapshot": Program.pause_snapshot, "replay": Program.pause_replay}


def scripted(num_positions: int = 100, chunk: int = 3) -> tuple[Program, ScriptedModel]:
    model = ScriptedModel(spread, NUM_LOGITS)
    return Program(model, VOCABULARY, num_cache_positions=num_positions, prefill_chunk_tokens=chunk), model


def advance(program: Program, sequence: PhysicalSequence) -> None:
    """One unit, committed."""
    if sequence.num_generated_tokens == 0:
        batch = program.prefill_chunk(sequence, None)
    else:
        batch = program.decode_batch([sequence], None)
    if batch is not None:
        program.commit(batch, [GO_ON])


def resume(program: Program, sequence: PhysicalSequence) -> None:
    assert program.resume(sequence)
    while sequence.num_tokens_to_replay:
        program.replay_chunk(sequence)


@pytest.mark.parametrize("pause", PAUSES.values(), ids=PAUSES)
@pytest.mark.parametrize("sampling", [SAMPLED, SamplingParameters(temperature=0.0)])
def test_a_pause_at_any_unit_changes_no_token(pause: Callable[..., None], sampling: SamplingParameters) -> None:
    program, _ = scripted()
    expected = program.start(PROMPT, 12, sampling)
    for _ in range(10):
        advance(program, expected)
    for first in range(10):
        sequence = program.start(PROMPT, 12, sampling)
        for unit in range(10):
            if unit >= first:
                pause(program, sequence)
                resume(program, sequence)
            advance(program, sequence)
        assert sequence.ledger == expected.ledger
        assert sequence.counts.counts.tolist() == expected.counts.counts.tolist()
        sequence.release()


def test_a_paused_sequence_holds_no_memory_and_counts_nothing() -> None:
    program, model = scripted()
    sequence = program.start(PROMPT, 12, SAMPLED)
    for _ in range(6):
        advance(program, sequence)
    ledger, counts = list(sequence.ledger), sequence.counts.counts.tolist()
    for pause in PAUSES.values():
        pause(program, sequence)
        assert program.pool.num_free_positions == program.pool.num_positions
        assert sequence.execution_frontier == len(ledger) - 1
        with pytest.raises(ValueError, match="paused"):
            program.decode_batch([sequence], None)
        with pytest.raises(ValueError, match="paused"):
            program.decode_batch([sequence], None)
        passes = len(model.units)
        assert program.resume(sequence)
        assert (sequence.num_tokens_to_replay == 0) == (pause is Program.pause_snapshot)
        while sequence.num_tokens_to_replay:
            with pytest.raises(ValueError, match="replayed"):
                program.decode_batch([sequence], None)
            program.replay_chunk(sequence)
        assert model.units[passes:] == ([] if pause is Program.pause_snapshot else [3, 3, 3, 1])
        assert (sequence.ledger, sequence.counts.counts.tolist()) == (ledger, counts)
    with pytest.raises(ValueError, match="nothing to replay"):
        program.replay_chunk(sequence)


def test_resuming_waits_for_room_for_the_next_unit_too() -> None:
    program, _ = scripted(num_positions=20)
    sequence = program.start(PROMPT, 12, SAMPLED)
    for _ in range(6):
        advance(program, sequence)
    program.pause_snapshot(sequence)
    other = program.start(PROMPT, 12, SAMPLED)
    assert program.reserve(other, 20 - sequence.execution_frontier)
    assert not program.resume(sequence)
    assert sequence.is_paused
    other.release()
    assert program.resume(sequence)
    assert program.pool.num_free_positions == 20 - len(sequence.ledger)
    advance(program, sequence)


def test_a_snapshot_that_finds_no_room_leaves_the_sequence_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache may lack something else than positions."""
    program, _ = scripted()
    sequence, expected = (program.start(PROMPT, 12, SAMPLED) for _ in range(2))
    for _ in range(6):
        advance(program, sequence)
        advance(program, expected)
    program.pause_snapshot(sequence)
    num_free = program.pool.num_free_positions
    with monkeypatch.context() as patch:
        patch.setattr(ScriptedCache, "restore", lambda *_: False)
        assert not program.resume(sequence)
    assert sequence.is_paused
    assert program.pool.num_free_positions == num_free
    assert program.resume(sequence)
    for each in (sequence, expected):
        advance(program, each)
    assert sequence.ledger == expected.ledger


def test_a_revoked_snapshot_is_replayed() -> None:
    program, _ = scripted()
    expected, sequence = (program.start(PROMPT, 12, SAMPLED) for _ in range(2))
    for _ in range(8):
        advance(program, expected)
    for _ in range(6):
        advance(program, sequence)
    program.pause_snapshot(sequence)
    program.revoke_snapshot(sequence)
    assert program.resume(sequence)
    assert sequence.num_tokens_to_replay == sequence.execution_frontier
    program.replay_chunk(sequence)
    # Memory may be taken again in the middle of the replay.
    program.pause_replay(sequence)
    resume(program, sequence)
    for _ in range(2):
        advance(program, sequence)
    assert sequence.ledger == expected.ledger


def test_pauses_are_between_units() -> None:
    program, _ = scripted(chunk=10)
    sequence = program.start(PROMPT, 12, SAMPLED)
    batch = program.prefill_chunk(sequence, None)
    assert batch is not None
    for pause in PAUSES.values():
        with pytest.raises(ValueError, match="neither committed nor aborted"):
            pause(program, sequence)
    program.commit(batch, [GO_ON])
    with pytest.raises(ValueError, match="not paused"):
        program.resume(sequence)
    with pytest.raises(ValueError, match="not paused"):
        program.revoke_snapshot(sequence)
    program.pause_replay(sequence)
    with pytest.raises(ValueError, match="paused"):
        program.pause_snapshot(sequence)
    sequence.release()
    assert sequence.is_released


def test_an_exact_prefix_hit_keeps_its_logits_over_a_pause() -> None:
    program, _ = scripted()
    first = program.start(PROMPT, 12, SAMPLED)
    for _ in range(3):
        advance(program, first)
    for pause in PAUSES.values():
        sequence = program.start(PROMPT, 12, SAMPLED, prefix=program.prefix(first))
        pause(program, sequence)
        resume(program, sequence)
        advance(program, sequence)
        assert sequence.ledger == first.ledger


def test_reserve_says_whether_the_next_unit_has_room() -> None:
    program, _ = scripted(num_positions=9)
    sequence = program.start(PROMPT, 12, SAMPLED)
    assert program.num_prefill_tokens(sequence) == 3
    assert program.reserve(sequence, 3)
    for _ in range(3):
        advance(program, sequence)
    assert program.num_prefill_tokens(sequence) == 0
    assert program.reserve(sequence, 2)
    assert not program.reserve(sequence, 3)
    advance(program, sequence)
    advance(program, sequence)
    frontier = sequence.execution_frontier
    with pytest.raises(ValueError, match="no room"):
        program.decode_batch([sequence], None)
    assert (sequence.execution_frontier, sequence.cache.num_tokens) == (frontier, frontier)
    program.pause_replay(sequence)
    assert not program.resume(sequence)


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LanguageModel]:
    llama, qwen3_5 = tmp_path_factory.mktemp("llama"), tmp_path_factory.mktemp("qwen3_5")
    tiny_model("llama").save_pretrained(llama)
    tiny_qwen3_5().save_pretrained(qwen3_5)
    return {"llama": load(llama), "qwen3_5": load_qwen3_5(qwen3_5)}


@pytest.mark.parametrize("kind", ["llama", "qwen3_5"])
@pytest.mark.parametrize("pause", PAUSES.values(), ids=PAUSES)
def test_a_real_network_goes_on(kind: str, networks: dict[str, LanguageModel], pause: Callable[..., None]) -> None:
    program = Program(networks[kind], VOCABULARY, num_cache_positions=1000, prefill_chunk_tokens=32)
    prompt = [(11 * place) % 50 for place in range(75)]
    expected, sequence = (program.start(prompt, 60, SAMPLED) for _ in range(2))
    for unit in range(45):
        advance(program, expected)
        if unit in (2, 20, 43):
            pause(program, sequence)
            resume(program, sequence)
        advance(program, sequence)
    assert sequence.ledger == expected.ledger
    assert sequence.frontier_logits is not None
    assert expected.frontier_logits is not None
    if pause is Program.pause_snapshot:
        assert torch.equal(sequence.frontier_logits, expected.frontier_logits)
    else:  # the same sums in another order
        torch.testing.assert_close(sequence.frontier_logits, expected.frontier_logits, atol=1e-4, rtol=1e-4)
    sequence.release()
    expected.release()
    assert program.pool.num_free_positions == program.pool.num_positions


@pytest.mark.parametrize("kind", ["llama", "qwen3_5"])
def test_a_prompt_paused_half_way_goes_on(kind: str, networks: dict[str, LanguageModel]) -> None:
    program = Program(networks[kind], VOCABULARY, num_cache_positions=1000, prefill_chunk_tokens=16)
    prompt = [(11 * place) % 50 for place in range(40)]
    expected, sequence = (program.start(prompt, 10, SAMPLED) for _ in range(2))
    for unit in range(5):
        advance(program, expected)
        if unit < 3:
            program.pause_replay(sequence)
            resume(program, sequence)
        advance(program, sequence)
    assert sequence.ledger == expected.ledger
