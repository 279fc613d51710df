"""A Qwen3.5 directory through the front door, and its sequences through the Program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from frontend.tokenizer_files import byte_level

from infernix.models import LoadedModel, open_model
from infernix.models.model import LanguageModel
from infernix.options import SamplingParameters
from infernix.program.pending import RowDecision
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from models.tiny import reference_logits
from models.tiny_qwen3_5 import tiny_qwen3_5

VOCAB_SIZE = 3 + 256 + 6
GREEDY = SamplingParameters(temperature=0.0)
PROMPTS = [[(5 * place + 7 * number) % VOCAB_SIZE for place in range(9 + 20 * number)] for number in range(3)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("opened") / "tiny-qwen3_5"
    tiny_qwen3_5(vocab_size=VOCAB_SIZE + 7).save_pretrained(path)
    (path / "tokenizer.json").write_text(byte_level())
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": 0}))
    return path


@pytest.fixture(scope="module")
def loaded(directory: Path) -> LoadedModel:
    return open_model(directory)


def test_opens_a_directory(directory: Path, loaded: LoadedModel) -> None:
    assert (loaded.name, loaded.model.num_logits, loaded.model.max_context) == ("tiny-qwen3_5", VOCAB_SIZE + 7, 512)
    logits = loaded.model.forward(PROMPTS[1], loaded.model.new_cache(50), 5)
    expected = reference_logits(tiny_qwen3_5(vocab_size=VOCAB_SIZE + 7), PROMPTS[1])[-5:]
    torch.testing.assert_close(logits, expected, atol=2e-4, rtol=2e-4)


def greedy(model: LanguageModel, prompt: list[int], count: int) -> list[int]:
    """The likeliest tokens one after another, each over the whole sequence anew."""
    tokens = list(prompt)
    for _ in range(count):
        logits = model.forward(tokens, model.new_cache(len(tokens)))
        tokens.append(int(logits[0, :VOCAB_SIZE].argmax()))
    return tokens


def commit(program: Program, sequences: list[PhysicalSequence], drafts: list[list[int]] | None = None) -> None:
    batch = program.decode_batch(sequences, None, drafts)
    program.commit(batch, [RowDecision(len(row.tokens), is_terminal=False) for row in batch.rows])


def started(program: Program, prompt: list[int]) -> PhysicalSequence:
    sequence = program.start(prompt, 40, GREEDY)
    batch = None
    while batch is None:
        assert program.reserve(sequence, program.num_prefill_tokens(sequence))
        batch = program.prefill_chunk(sequence, None)
    program.commit(batch, [RowDecision(1, is_terminal=False)])
    return sequence


def test_a_programs_sequences_go_through_everything(loaded: LoadedModel) -> None:
    """Batches, drafts right and wrong, units taken back, pauses of both kinds, a prefix: always the same tokens."""
    model = loaded.model
    program = Program(
        model,
        loaded.tokenizer.vocabulary(),
        prefill_chunk_tokens=16,
        num_cache_positions=512,
        num_sequences=5,
        num_draft_tokens=4,
    )
    expected = [greedy(model, prompt, 24) for prompt in PROMPTS]
    sequences = [started(program, prompt) for prompt in PROMPTS]
    prefix = program.prefix(sequences[1])
    for turn in range(6):
        drafts = []
        for number, sequence in enumerate(sequences):
            following = expected[number][len(sequence.ledger) :][:4]
            num_right = (turn + number) % 5
            wrong = [(token + 1) % VOCAB_SIZE for token in following[num_right:]]
            drafts.append(following[:num_right] + wrong)
        program.abort_pending(program.decode_batch(sequences, None, drafts))
        commit(program, sequences, drafts)
        paused = sequences[turn % 3]
        if turn % 2:
            program.pause_snapshot(paused)
        else:
            program.pause_replay(paused)
        assert program.resume(paused)
        while paused.num_tokens_to_replay:
            program.replay_chunk(paused)
    for sequence, whole in zip(sequences, expected, strict=True):
        assert len(sequence.ledger) > sequence.num_prompt_tokens + 10
        assert sequence.ledger == whole[: len(sequence.ledger)]
        program.release(sequence)

    num_known = len(prefix.tokens)
    assert num_known >= len(PROMPTS[1])
    again = program.start([*prefix.tokens, 5, 6], 5, GREEDY, prefix=prefix)
    assert again.execution_frontier == num_known
    batch = program.prefill_chunk(again, None)
    assert batch is not None
    assert batch.rows[0].tokens == (greedy(model, [*prefix.tokens, 5, 6], 1)[-1],)
    program.abort_pending(batch)
    program.release(again)
    prefix.release()
    assert program.pool is not None
    assert program.pool.num_free_positions == program.pool.num_positions
