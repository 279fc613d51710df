"""Many sequences in one unit: masks, failures and commits row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from infernix.errors import InternalError
from infernix.matching.matcher import LookAhead
from infernix.ops.acceptance import RowFailure
from infernix.options import SamplingParameters
from infernix.program.masks import MaskBuffers
from infernix.program.pending import PendingBatch, RowDecision
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from support.scripted_model import ScriptedModel
from support.scripted_program import GO_ON, NUM_LOGITS, STOP, VOCABULARY, RowMaskTable, spread


def started(program: Program, count: int, **sampling: float) -> list[PhysicalSequence]:
    """Sequences with different prompts and seeds, and one token each."""
    sequences = []
    for number in range(count):
        parameters = SamplingParameters(seed=number, **sampling)  # type: ignore[arg-type]
        sequence = program.start(list(range(1, 3 + number)), 20, parameters)
        batch = program.prefill_chunk(sequence, None)
        assert batch is not None
        program.commit(batch, [GO_ON])
        sequences.append(sequence)
    return sequences


def state(sequence: PhysicalSequence) -> tuple[object, ...]:
    """Everything that a unit may change before it is committed."""
    return (
        tuple(sequence.ledger),
        sequence.execution_frontier,
        sequence.cache.num_tokens,
        sequence.counts.ids.tolist(),
        sequence.counts.counts.tolist(),
        sequence.is_pending,
    )


def scripted_program() -> tuple[Program, ScriptedModel]:
    model = ScriptedModel(spread, NUM_LOGITS)
    return Program(model, VOCABULARY, num_cache_positions=1000), model


def tokens(batch: PendingBatch) -> list[tuple[int, ...]]:
    return [row.tokens for row in batch.rows]


def test_rows_get_together_what_they_get_alone() -> None:
    alone, _ = scripted_program()
    expected = started(alone, 5, presence_penalty=0.5)
    for sequence in expected:
        for _ in range(10):
            alone.commit(alone.decode_batch([sequence], None), [GO_ON])
    program, model = scripted_program()
    sequences = started(program, 5, presence_penalty=0.5)
    for _ in range(10):
        program.commit(program.decode_batch(sequences, None), [GO_ON] * 5)
    assert [sequence.ledger for sequence in sequences] == [sequence.ledger for sequence in expected]
    assert model.batches[5:] == [[1] * 5] * 10


def test_membership_may_change_from_round_to_round() -> None:
    program, _ = scripted_program()
    expected = started(program, 4)
    program.commit(program.decode_batch(expected, None), [GO_ON] * 4)
    program.commit(program.decode_batch(expected, None), [GO_ON] * 4)
    sequences = started(program, 4)
    for group in ([3, 1], [0, 2, 3], [1, 2, 0]):
        program.commit(program.decode_batch([sequences[place] for place in group], None), [GO_ON] * len(group))
    assert [sequence.ledger for sequence in sequences] == [sequence.ledger for sequence in expected]


def test_constraints_bind_their_rows_and_no_others() -> None:
    free, _ = scripted_program()
    expected = tokens(free.decode_batch(started(free, 4), None))
    program, _ = scripted_program()
    masks = RowMaskTable({1: [30, 40], 3: [7]})
    batch = program.decode_batch(started(program, 4), masks)
    assert masks.calls == [(1, ()), (3, ())]
    assert batch.rows[1].tokens[0] in (30, 40)
    assert batch.rows[3].tokens == (7,)
    assert [batch.rows[row].tokens for row in (0, 2)] == [expected[row] for row in (0, 2)]


@pytest.mark.parametrize("on_device", [False, True])
def test_masks_come_first_on_a_cpu_and_during_the_pass_on_a_device(on_device: bool) -> None:
    model = ScriptedModel(spread, NUM_LOGITS)
    program = Program(model, VOCABULARY, num_cache_positions=1000, samples_on_device=on_device)
    sequences = started(program, 2)
    num_passes = len(model.batches)
    seen = []

    class Watching(RowMaskTable):
        def fill(self, row: int, drafts: Sequence[int], words: NDArray[np.int32]) -> LookAhead:
            seen.append(len(model.batches) - num_passes)
            return super().fill(row, drafts, words)

    program.decode_batch(sequences, Watching({0: [3], 1: [4]}))
    assert seen == [on_device, on_device]


def test_a_row_without_a_legal_token_costs_no_pass() -> None:
    program, model = scripted_program()
    sequences = started(program, 3)
    batch = program.decode_batch(sequences, RowMaskTable({1: []}))
    assert model.batches[-1] == [1, 1]
    assert [row.failure for row in batch.rows] == [None, RowFailure.DEAD_END, None]
    program.commit(batch, [GO_ON, STOP, GO_ON])
    num_passes = len(model.batches)
    batch = program.decode_batch([sequences[0], sequences[2]], RowMaskTable({0: [], 1: []}))
    assert len(model.batches) == num_passes
    program.commit(batch, [STOP, STOP])


def test_a_unit_tells_where_its_time_went() -> None:
    program, _ = scripted_program()
    sequences = started(program, 2)
    free = program.decode_batch(sequences, None)
    assert free.forward_seconds > 0.0
    assert free.sampling_seconds > 0.0
    assert free.mask_seconds < free.forward_seconds
    program.abort_pending(free)
    constrained = program.decode_batch(sequences, RowMaskTable({0: [3], 1: [4]}))
    assert constrained.mask_seconds > 0.0


def test_rows_fail_alone() -> None:
    program, model = scripted_program()
    sequences = started(program, 4)
    model.script = lambda so_far: np.full(NUM_LOGITS, np.nan) if len(so_far) == 5 else spread(so_far)
    assert [len(sequence.ledger) for sequence in sequences] == [3, 4, 5, 6]
    before = [list(sequence.ledger) for sequence in sequences]
    batch = program.decode_batch(sequences, RowMaskTable({0: [], 1: [9]}))
    assert [row.failure for row in batch.rows] == [
        RowFailure.DEAD_END,
        None,
        RowFailure.NON_FINITE_LOGITS,
        None,
    ]
    assert [len(row.tokens) for row in batch.rows] == [0, 1, 0, 1]
    program.commit(batch, [STOP, GO_ON, STOP, GO_ON])
    assert [sequence.is_released for sequence in sequences] == [True, False, True, False]
    assert sequences[0].ledger == before[0]
    assert sequences[1].ledger == [*before[1], 9]
    model.script = spread
    program.commit(program.decode_batch([sequences[1], sequences[3]], None), [GO_ON] * 2)


def test_forced_tokens_run_with_the_others_of_a_round() -> None:
    program, model = scripted_program()
    sequences = started(program, 3)
    program.append_forced_tokens(sequences[1], [5, 6])
    batch = program.decode_batch(sequences, None)
    assert model.batches[-1] == [1, 3, 1]
    program.commit(batch, [GO_ON] * 3)
    assert [sequence.cache.num_tokens for sequence in sequences] == [3, 6, 5]
    assert all(sequence.cache.num_tokens == sequence.execution_frontier for sequence in sequences)


@pytest.mark.parametrize("place", ["forward", "constrained", "fill", "sample", "contradiction", "unready"])
def test_an_exception_anywhere_leaves_everything_as_it_was(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, model = scripted_program()
    sequences = started(program, 3)
    before = [state(sequence) for sequence in sequences]
    expected, _ = scripted_program()
    wanted = tokens(expected.decode_batch(started(expected, 3), RowMaskTable({1: [3, 4]})))

    class Failing(RowMaskTable):
        def constrained(self, row: int) -> bool:
            if place == "constrained" and row == 2:
                raise OSError("fault")
            return super().constrained(row)

        def fill(self, row: int, drafts: Sequence[int], words: NDArray[np.int32]) -> LookAhead:
            if place == "fill":
                raise OSError("fault")
            found = super().fill(row, drafts, words)
            return {"contradiction": LookAhead(1, 1), "unready": LookAhead(0, 0)}.get(place, found)

    with monkeypatch.context() as patch:
        if place == "forward":
            patch.setattr(
                model, "script", lambda so_far: spread(so_far) if so_far[-1] != 99 and len(so_far) < 5 else 1 / 0
            )
        if place == "sample":
            patch.setattr("infernix.program.choice.sample_token", lambda *_: 1 / 0)
        with pytest.raises((OSError, ZeroDivisionError, InternalError)):
            program.decode_batch(sequences, Failing({1: [3, 4]}))
    assert [state(sequence) for sequence in sequences] == before
    assert tokens(program.decode_batch(sequences, RowMaskTable({1: [3, 4]}))) == wanted


@pytest.mark.parametrize(
    "decisions",
    [
        [GO_ON, GO_ON],
        [GO_ON, GO_ON, GO_ON, GO_ON],
        [GO_ON, GO_ON, RowDecision(2, is_terminal=True)],
        [RowDecision(0, is_terminal=False), GO_ON, GO_ON],
    ],
)
def test_a_commit_that_cannot_be_made_changes_nothing(decisions: list[RowDecision]) -> None:
    program, _ = scripted_program()
    sequences = started(program, 3)
    batch = program.decode_batch(sequences, None)
    before = [state(sequence) for sequence in sequences]
    with pytest.raises(ValueError, match=r"suit|zip"):
        program.commit(batch, decisions)
    assert [state(sequence) for sequence in sequences] == before
    program.commit(batch, [GO_ON] * 3)


def test_an_aborted_batch_runs_again_with_the_same_outcome() -> None:
    program, _ = scripted_program()
    sequences = started(program, 3)
    before = [state(sequence) for sequence in sequences]
    first = program.decode_batch(sequences, None)
    with pytest.raises(ValueError, match="neither committed nor aborted"):
        program.decode_batch(sequences[1:], None)
    program.abort_pending(first)
    assert [state(sequence) for sequence in sequences] == before
    second = program.decode_batch(sequences, None)
    assert tokens(second) == tokens(first)
    program.commit(second, [GO_ON, STOP, RowDecision(1, is_terminal=True)])
    assert [sequence.is_released for sequence in sequences] == [False, True, True]
    with pytest.raises(ValueError, match="before"):
        program.abort_pending(second)


def test_a_batch_has_different_sequences_and_a_bounded_number() -> None:
    program = Program(ScriptedModel(spread, NUM_LOGITS), VOCABULARY, max_rows=2, num_cache_positions=1000)
    sequences = started(program, 3)
    for wrong in ([], [sequences[0], sequences[0]], sequences):
        with pytest.raises(ValueError, match=r"1\.\.2 different sequences"):
            program.decode_batch(wrong, None)
    with pytest.raises(ValueError, match="prefill"):
        program.decode_batch([sequences[0], program.start([1], 3, SamplingParameters())], None)
    with pytest.raises(ValueError, match="at least one row"):
        Program(ScriptedModel(spread, NUM_LOGITS), VOCABULARY, num_cache_positions=10, max_rows=0)
    program.commit(program.decode_batch(sequences[1:], None), [GO_ON] * 2)


def test_mask_positions_lie_row_by_row_and_free_rows_stay_untouched() -> None:
    buffers = MaskBuffers(3, 4, 2)
    seen: dict[int, NDArray[np.int32]] = {}

    class Numbering:
        def constrained(self, row: int) -> bool:
            return row != 1

        def fill(self, row: int, drafts: Sequence[int], words: NDArray[np.int32]) -> LookAhead:
            seen[row] = words
            words[:] = row + 1
            return LookAhead(1, 0b10) if row else LookAhead(len(drafts) + 1, 0)

    first, free, last = buffers.collect(Numbering(), [[5, 6], [], [7]])
    assert free is None
    assert first is not None
    assert last is not None
    assert (first.num_ready, first.dead_positions) == (3, 0)
    assert (last.num_ready, last.dead_positions) == (1, 0b10)
    assert (first.words.shape, last.words.shape) == ((3, 2), (2, 2))
    memory = seen[0].base
    assert memory is not None
    # The dead position of the last row holds a filler, whatever the provider left there.
    assert memory.reshape(3, 4, 2).tolist() == [
        [[1, 1], [1, 1], [1, 1], [0, 0]],
        [[0, 0]] * 4,
        [[3, 3], [1, 0], [0, 0], [0, 0]],
    ]
    assert buffers.collect(None, [[], []]) == [None, None]
