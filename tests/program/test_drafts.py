"""Rounds with drafts: the text of a seed is the same with them and without, and nothing of a refused one remains."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from models.tiny import load, tiny_model
from models.tiny_qwen3_5 import load_qwen3_5, tiny_qwen3_5
from numpy.typing import NDArray

from infernix.matching.matcher import LookAhead
from infernix.models.model import LanguageModel
from infernix.ops.acceptance import RowFailure
from infernix.options import SamplingParameters
from infernix.program.pending import RowDecision
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from support.mask_words import mask_words
from support.scripted_model import ScriptedModel
from support.scripted_program import GO_ON, NUM_LOGITS, STOP, VOCABULARY, RowMaskTable, spread
from support.vocabularies import EOS_IDS

PROMPTS = [[1, 2, 3], [4, 5, 6, 7, 8], [9], [10, 11, 12, 13]]
LENGTH = 14
SAMPLINGS = [
    SamplingParameters(temperature=0.0),
    SamplingParameters(seed=3),
    SamplingParameters(temperature=0.0, presence_penalty=0.4),
    SamplingParameters(seed=4, frequency_penalty=0.3, top_k=8),
]


class TextMasks:
    """Rows with an even number: legal is what a function of the whole text so far says. Others are free."""

    def __init__(self, sequences: Sequence[PhysicalSequence]) -> None:
        self._sequences = sequences
        self.num_bytes = 0

    def constrained(self, row: int) -> bool:
        return row % 2 == 0

    @staticmethod
    def legal(text: Sequence[int]) -> list[int]:
        return sorted({(7 * len(text) + 5 * index + text[-1]) % 40 + 1 for index in range(9)})

    def fill(self, row: int, drafts: Sequence[int], words: NDArray[np.int32]) -> LookAhead:
        text = list(self._sequences[row].ledger)
        words[:] = -1
        for place in range(len(drafts) + 1):
            words[place] = mask_words(self.legal(text), VOCABULARY.num_tokens)
            if place == len(drafts) or drafts[place] not in self.legal(text) or drafts[place] in EOS_IDS:
                return LookAhead(place + 1, 0)
            text.append(drafts[place])
        raise AssertionError("the loop ends at the last place")

    def uploaded(self, row: int, num_bytes: int) -> None:
        assert self.constrained(row)
        self.num_bytes += num_bytes


def first_tokens(program: Program) -> list[PhysicalSequence]:
    sequences = [program.start(prompt, 100, sampling) for prompt, sampling in zip(PROMPTS, SAMPLINGS, strict=True)]
    for sequence in sequences:
        batch = program.prefill_chunk(sequence, None)
        assert batch is not None
        program.commit(batch, [GO_ON])
    return sequences


def ordinary_texts(program: Program) -> list[list[int]]:
    sequences = first_tokens(program)
    for _ in range(LENGTH):
        program.commit(program.decode_batch(sequences, TextMasks(sequences)), [GO_ON] * len(sequences))
    return [sequence.ledger for sequence in sequences]


def guesses(rng: random.Random, text: Sequence[int], ledger: Sequence[int]) -> list[int]:
    """Mostly what will come, sometimes something else, also what is illegal or ends the output; often none at all."""
    true = text[len(ledger) : len(ledger) + rng.choice([0, 1, 2, 4])]
    return [token if rng.random() < 0.75 else rng.choice([*range(1, 45), EOS_IDS[0]]) for token in true]


def scripted(is_recurrent: bool) -> LanguageModel:
    return ScriptedModel(spread, NUM_LOGITS, max_context=200, is_recurrent=is_recurrent)


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LanguageModel]:
    llama, qwen3_5 = tmp_path_factory.mktemp("llama"), tmp_path_factory.mktemp("qwen3_5")
    tiny_model("llama").save_pretrained(llama)
    tiny_qwen3_5().save_pretrained(qwen3_5)
    return {"llama": load(llama), "qwen3_5": load_qwen3_5(qwen3_5)}


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("kind", ["scripted", "recurrent", "llama", "qwen3_5"])
@pytest.mark.parametrize("seed", range(4))
def test_texts_are_those_without_drafts(
    kind: str, on_device: bool, seed: int, networks: dict[str, LanguageModel]
) -> None:
    model = networks.get(kind) or scripted(kind == "recurrent")
    program = Program(model, VOCABULARY, num_cache_positions=2000, num_draft_tokens=4, samples_on_device=on_device)
    expected = ordinary_texts(program)
    sequences = first_tokens(program)
    rng = random.Random(seed)
    num_kept = 0
    while any(len(sequence.ledger) < len(text) for sequence, text in zip(sequences, expected, strict=True)):
        active = [row for row, sequence in enumerate(sequences) if len(sequence.ledger) < len(expected[row])]
        # Masks go by the number in the batch, so all rows stay in it; those that are done have no drafts.
        drafts = [
            guesses(rng, text, sequence.ledger) if row in active else []
            for row, (sequence, text) in enumerate(zip(sequences, expected, strict=True))
        ]
        batch = program.decode_batch(sequences, TextMasks(sequences), drafts)
        if rng.random() < 0.2:
            program.abort_pending(batch)
            assert all(sequence.cache.num_tokens == sequence.execution_frontier for sequence in sequences)
            again = program.decode_batch(sequences, TextMasks(sequences), drafts)
            assert [row.tokens for row in again.rows] == [row.tokens for row in batch.rows]
            batch = again
        for row, given in zip(batch.rows, drafts, strict=True):
            assert row.failure is None
            assert list(row.tokens[: row.num_accepted]) == given[: row.num_accepted]
            num_kept += row.num_accepted
        program.commit(batch, [RowDecision(len(row.tokens), is_terminal=False) for row in batch.rows])
        for sequence in sequences:
            assert sequence.cache.num_tokens == sequence.execution_frontier == len(sequence.ledger) - 1
    assert num_kept > 15
    for sequence, text in zip(sequences, expected, strict=True):
        assert sequence.ledger[: len(text)] == text


def test_rows_may_have_any_number_of_drafts_and_forced_tokens_before_them() -> None:
    model = scripted(is_recurrent=True)
    assert isinstance(model, ScriptedModel)
    program = Program(model, VOCABULARY, num_cache_positions=1000, num_draft_tokens=4)
    sequences = first_tokens(program)
    program.append_forced_tokens(sequences[1], [20, 21])
    batch = program.decode_batch(sequences, None, [[1, 2, 3, 4], [5], [], (6, 7)])
    assert model.batches[-1] == [5, 4, 1, 3]
    program.abort_pending(batch)
    for wrong in ([[1] * 5, [], [], []], [[1], [2]]):
        with pytest.raises(ValueError, match=r"5 drafts, but there is room for 4|zip"):
            program.decode_batch(sequences, None, wrong)
    program.commit(program.decode_batch(sequences, None), [GO_ON] * 4)
    with pytest.raises(ValueError, match="at least no draft"):
        Program(model, VOCABULARY, num_cache_positions=10, num_draft_tokens=-1)


def sure(tokens: Sequence[int]) -> Callable[[tuple[int, ...]], NDArray[np.float32]]:
    """After the prompt of three tokens these, for sure."""

    def script(so_far: tuple[int, ...]) -> NDArray[np.float32]:
        logits = np.zeros(NUM_LOGITS, dtype=np.float32)
        logits[tokens[min(len(so_far) - 3, len(tokens) - 1)]] = 90.0
        return logits

    return script


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_dead_place_matters_only_if_the_output_reaches_it(on_device: bool, temperature: float) -> None:
    class DeadAfter(RowMaskTable):
        def fill(self, row: int, drafts: Sequence[int], words: NDArray[np.int32]) -> LookAhead:
            words[:] = mask_words(range(1, 30), VOCABULARY.num_tokens)
            return LookAhead(2, 0b100)

    for right, failure in ([5, 6, 7], RowFailure.DEAD_END), ([5, 8, 9], None):
        program = Program(
            ScriptedModel(sure([4, *right]), NUM_LOGITS),
            VOCABULARY,
            num_cache_positions=100,
            num_draft_tokens=3,
            samples_on_device=on_device,
        )
        sequence = program.start([1, 2, 3], 10, SamplingParameters(temperature=temperature))
        batch = program.prefill_chunk(sequence, None)
        assert batch is not None
        program.commit(batch, [GO_ON])
        batch = program.decode_batch([sequence], DeadAfter({0: [1]}), [[5, 6, 7]])
        assert batch.rows[0].failure is failure
        assert batch.rows[0].tokens == (() if failure else (5, 8))
        program.commit(batch, [STOP] if failure else [RowDecision(2, is_terminal=False)])


def test_an_accepted_end_is_the_last_token_and_a_terminal_row_may_keep_less() -> None:
    end = EOS_IDS[0]
    program = Program(
        ScriptedModel(sure([4, 5, end, 7]), NUM_LOGITS), VOCABULARY, num_cache_positions=100, num_draft_tokens=3
    )
    sequences = [program.start([1, 2, 3], 10, SamplingParameters(temperature=0.0)) for _ in range(2)]
    for sequence in sequences:
        batch = program.prefill_chunk(sequence, None)
        assert batch is not None
        program.commit(batch, [GO_ON])
    batch = program.decode_batch(sequences, None, [[5, end, 7], [5, end, 7]])
    assert [(row.tokens, row.num_accepted) for row in batch.rows] == [((5, end), 2)] * 2
    prefix = program.prefix(sequences[0])
    assert prefix.tokens == (1, 2, 3, 4)
    assert prefix.logits is not None
    program.commit(batch, [RowDecision(2, is_terminal=True), RowDecision(1, is_terminal=True)])
    assert [sequence.ledger for sequence in sequences] == [[1, 2, 3, 4, 5, end], [1, 2, 3, 4, 5]]


def test_a_network_says_the_same_after_refused_drafts_as_if_they_had_not_been(tmp_path: Path) -> None:
    tiny_model("llama").save_pretrained(tmp_path)
    program = Program(load(tmp_path), VOCABULARY, num_cache_positions=1000, num_draft_tokens=4)
    greedy = SamplingParameters(temperature=0.0)
    found = []
    for drafts in ([], [49, 48, 47, 46]):
        sequence = program.start([1, 2, 3, 4], 30, greedy)
        batch = program.prefill_chunk(sequence, None)
        assert batch is not None
        program.commit(batch, [GO_ON])
        batch = program.decode_batch([sequence], None, [drafts])
        assert len(batch.rows[0].tokens) == 1
        program.commit(batch, [GO_ON])
        program.commit(program.decode_batch([sequence], None), [GO_ON])
        assert sequence.frontier_logits is not None
        found.append((list(sequence.ledger), sequence.frontier_logits))
    assert found[0][0] == found[1][0]
    torch.testing.assert_close(found[0][1], found[1][1], atol=1e-5, rtol=1e-5)
