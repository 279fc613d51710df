"""Choosing where the logits are: the same tokens as on the host, and what travels counted. The device is a CPU here."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from infernix.errors import InternalError
from infernix.ops.acceptance import RowFailure
from infernix.options import SamplingParameters
from infernix.program.pending import PendingBatch
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from support.scripted_model import ScriptedModel
from support.scripted_program import GO_ON, NUM_LOGITS, STOP, VOCABULARY, RowMaskTable, spread

SAMPLINGS = [
    SamplingParameters(temperature=0.0),
    SamplingParameters(seed=1),
    SamplingParameters(temperature=0.0),
    SamplingParameters(temperature=0.0, presence_penalty=1.0),
    SamplingParameters(seed=2),
    SamplingParameters(temperature=0.0),
]
ROW_BYTES = 4 * VOCABULARY.num_mask_words


def script(so_far: tuple[int, ...]) -> ArrayLike:
    return np.round(np.asarray(spread(so_far)))  # ties


def started(on_device: bool) -> tuple[Program, list[PhysicalSequence]]:
    program = Program(
        ScriptedModel(script, NUM_LOGITS), VOCABULARY, num_cache_positions=1000, samples_on_device=on_device
    )
    sequences = []
    for number, sampling in enumerate(SAMPLINGS):
        sequence = program.start([number + 1] * 3, 30, sampling)
        batch = program.prefill_chunk(sequence, RowMaskTable({0: range(1, 30)}) if number % 2 else None)
        assert batch is not None
        program.commit(batch, [GO_ON])
        sequences.append(sequence)
    return program, sequences


def outcome(batch: PendingBatch) -> list[tuple[tuple[int, ...], RowFailure | None]]:
    return [(row.tokens, row.failure) for row in batch.rows]


def test_rows_get_the_tokens_that_the_host_chooses() -> None:
    (host, on_host), (device, on_device) = started(False), started(True)
    for step in range(8):
        legal = {row: [(7 * step + 5 * row + index) % 40 + 1 for index in range(9)] for row in (0, 1, 3)}
        batches = [
            program.decode_batch(sequences, RowMaskTable(legal) if step % 3 else None)
            for program, sequences in ((host, on_host), (device, on_device))
        ]
        assert outcome(batches[0]) == outcome(batches[1])
        host.commit(batches[0], [GO_ON] * 6)
        device.commit(batches[1], [GO_ON] * 6)
    assert [row.ledger for row in on_host] == [row.ledger for row in on_device]


def test_only_the_masks_of_rows_that_are_chosen_there_are_sent() -> None:
    for is_there in (False, True):
        program, sequences = started(is_there)
        masks = RowMaskTable({row: range(1, 30) for row in (0, 1, 3, 5)})
        program.decode_batch(sequences, masks)
        assert masks.uploads == ([(0, ROW_BYTES), (5, ROW_BYTES)] if is_there else [])


@pytest.mark.parametrize("row", [0, 1])
def test_a_row_without_a_legal_token_is_a_dead_end_there_too(row: int) -> None:
    program, sequences = started(True)
    batch = program.decode_batch(sequences, RowMaskTable({row: []}))
    assert [number for number, (_, failure) in enumerate(outcome(batch)) if failure] == [row]
    assert batch.rows[row].failure is RowFailure.DEAD_END
    program.commit(batch, [STOP if number == row else GO_ON for number in range(6)])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_broken_logits_fail_their_row_there_too(bad: float) -> None:
    program, sequences = started(True)
    model = program._executor._model
    assert isinstance(model, ScriptedModel)
    model.script = lambda so_far: np.full(NUM_LOGITS, bad) if so_far[0] in (1, 2) else script(so_far)
    batch = program.decode_batch(sequences, RowMaskTable({1: [3, 4]}))
    assert [row.failure for row in batch.rows] == [RowFailure.NON_FINITE_LOGITS] * 2 + [None] * 4


def test_an_exception_while_masks_are_sent_leaves_everything_as_it_was() -> None:
    program, sequences = started(True)

    class Failing(RowMaskTable):
        def uploaded(self, row: int, num_bytes: int) -> None:
            raise InternalError("fault")

    before = [(list(row.ledger), row.cache.num_tokens) for row in sequences]
    with pytest.raises(InternalError, match="fault"):
        program.decode_batch(sequences, Failing({0: [3]}))
    assert [(list(row.ledger), row.cache.num_tokens) for row in sequences] == before
    program.commit(program.decode_batch(sequences, RowMaskTable({0: [3]})), [GO_ON] * 6)
