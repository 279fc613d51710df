"""One pass over the rows of a batch, their masks, and the choice of their tokens.

On a CPU masks come first, so that a row without a legal token costs no pass. On a device that works beside the CPU the
pass is launched first and masks are worked out while it runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.models.model import LanguageModel, ModelRow
from infernix.ops.acceptance import ChainMasks, DraftedRow, RowFailure, RowOutput, verify
from infernix.ops.device_greedy import best_tokens, greedy_output
from infernix.ops.random import Purpose, uniform
from infernix.ops.sampling import TokenDomain, sample_token
from infernix.program.masks import MaskBuffers, TokenMaskProvider
from infernix.program.pending import PendingBatch, PendingRow
from infernix.program.sequence import PhysicalSequence


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A sequence, the tokens of its ledger that have not been run, and guesses at those that follow.

    Without tokens to run, the sequence's own `frontier_logits` are what the model says.
    """

    sequence: PhysicalSequence
    chunk: Sequence[int]
    drafts: tuple[int, ...] = ()


class Executor:
    """Runs batches on one model; the buffers for their masks are allocated here."""

    def __init__(
        self, model: LanguageModel, vocabulary: Vocabulary, *, max_rows: int, num_draft_tokens: int, on_device: bool
    ) -> None:
        self._model = model
        self._domain = TokenDomain.without(vocabulary.classes == TokenClass.NEVER)
        self._eos_ids = vocabulary.eos_ids
        self._on_device = on_device
        device = model.device if on_device else None
        self._buffers = MaskBuffers(max_rows, num_draft_tokens + 1, vocabulary.num_mask_words, device=device)
        self._never = torch.from_numpy(vocabulary.classes == TokenClass.NEVER).to(model.device)

    def append(self, sequence: PhysicalSequence, chunk: Sequence[int]) -> None:
        """Runs tokens after which nothing is asked."""
        with _taken_back([sequence]):
            self._model.forward(chunk, sequence.cache, 0)

    def run(self, rows: Sequence[BatchRow], masks: TokenMaskProvider | None, purpose: Purpose) -> PendingBatch:
        """A pass over all rows and the tokens that they come to; after an exception everything is as it was before."""
        clock = _Clock()
        with _taken_back([row.sequence for row in rows]):
            chains = [row.drafts for row in rows]
            if self._on_device:
                logits: list[torch.Tensor | None] = self._forward(rows, [True] * len(rows))
                clock.stop("forward")
                row_masks = self._buffers.collect(masks, chains)
                best = self._best_on_device(rows, logits, row_masks, masks)
                clock.stop("mask")
                if self._model.device.type == "cuda":
                    torch.cuda.current_stream(self._model.device).synchronize()
                clock.stop("forward")
            else:
                row_masks = self._buffers.collect(masks, chains)
                best = {}
                clock.stop("mask")
                logits = self._forward(rows, [not _is_dead(mask) for mask in row_masks])
                clock.stop("forward")
            outputs = {row: self._greedy(rows[row], found, row_masks[row]) for row, found in best.items()}
            pending = [
                self._pending(row, row_logits, outputs.get(number) or self._choose(row, row_logits, mask, purpose))
                for number, (row, row_logits, mask) in enumerate(zip(rows, logits, row_masks, strict=True))
            ]
            clock.stop("sampling")
        for row in rows:
            row.sequence.is_pending = True
        return PendingBatch(tuple(pending), clock.seconds["forward"], clock.seconds["mask"], clock.seconds["sampling"])

    def _forward(self, rows: Sequence[BatchRow], are_live: Sequence[bool]) -> list[torch.Tensor | None]:
        """The logits [1 + drafts, num_logits] of each live row."""
        to_run = [row for row, is_live in zip(rows, are_live, strict=True) if is_live and row.chunk]
        parts: Iterator[torch.Tensor] = iter(())
        if to_run:
            logits = self._model.forward_rows(
                [ModelRow([*row.chunk, *row.drafts], row.sequence.cache, 1 + len(row.drafts)) for row in to_run]
            )
            parts = iter(torch.split(logits, [1 + len(row.drafts) for row in to_run]))
        found: list[torch.Tensor | None] = []
        for row, is_live in zip(rows, are_live, strict=True):
            if not is_live:
                found.append(None)
            elif row.chunk:
                found.append(next(parts))
            else:
                known = row.sequence.frontier_logits
                assert known is not None, "a sequence with nothing to run comes with its logits"
                found.append(known.unsqueeze(0))
        return found

    def _best_on_device(
        self,
        rows: Sequence[BatchRow],
        logits: Sequence[torch.Tensor | None],
        row_masks: Sequence[ChainMasks | None],
        masks: TokenMaskProvider | None,
    ) -> dict[int, torch.Tensor]:
        """By row number the best tokens of its places, still on the device, of all rows for which they decide."""
        found = {}
        for is_constrained in (False, True):
            group = [
                number
                for number, row in enumerate(rows)
                if _is_plainly_greedy(row.sequence) and (row_masks[number] is not None) == is_constrained
            ]
            if not group:
                continue
            sizes = [1 + len(rows[number].drafts) for number in group]
            words = None
            if is_constrained and masks is not None:
                for number, size in zip(group, sizes, strict=True):
                    self._buffers.upload(masks, number, size)
                parts = [self._buffers.on_device(number)[:size] for number, size in zip(group, sizes, strict=True)]
                words = torch.cat(parts)
            together = torch.cat([part for number in group if (part := logits[number]) is not None])
            best = best_tokens(together, self._domain.num_tokens, words, self._never)
            found |= dict(zip(group, torch.split(best, sizes), strict=True))
        return found

    def _greedy(self, row: BatchRow, best: torch.Tensor, masks: ChainMasks | None) -> RowOutput:
        return greedy_output(best.tolist(), row.drafts, masks, self._eos_ids)

    @staticmethod
    def _pending(row: BatchRow, logits: torch.Tensor | None, output: RowOutput) -> PendingRow:
        return PendingRow(row.sequence, output.tokens, output.failure, output.num_accepted, logits)

    def _choose(
        self, row: BatchRow, logits: torch.Tensor | None, masks: ChainMasks | None, purpose: Purpose
    ) -> RowOutput:
        if logits is None or _is_dead(masks):
            return RowOutput((), 0, RowFailure.DEAD_END)
        if not row.drafts:
            return self._sample(row.sequence, logits, masks, purpose)
        [output] = verify([self._drafted(row, logits, masks)], self._domain)
        return output

    def _drafted(self, row: BatchRow, logits: torch.Tensor, masks: ChainMasks | None) -> DraftedRow:
        return DraftedRow(
            logits=logits.numpy(force=True),
            drafts=row.drafts,
            parameters=row.sequence.sampling,
            counts=row.sequence.counts,
            position=len(row.sequence.ledger),
            masks=masks,
            end_ids=self._eos_ids,
        )

    def _sample(
        self, sequence: PhysicalSequence, logits: torch.Tensor, masks: ChainMasks | None, purpose: Purpose
    ) -> RowOutput:
        number = uniform(sequence.sampling.seed, len(sequence.ledger), purpose)
        words = None if masks is None else masks.words[0]
        try:
            token = sample_token(
                logits[0].numpy(force=True), self._domain, words, sequence.sampling, sequence.counts, number
            )
        except ConstraintDeadEnd:
            return RowOutput((), 0, RowFailure.DEAD_END)
        except NonFiniteLogits:
            return RowOutput((), 0, RowFailure.NON_FINITE_LOGITS)
        return RowOutput((token,), 0)


class _Clock:
    """Wall seconds between the stops, by name."""

    def __init__(self) -> None:
        self.seconds = {"forward": 0.0, "mask": 0.0, "sampling": 0.0}
        self._last = time.perf_counter()

    def stop(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] += now - self._last
        self._last = now


def _is_plainly_greedy(sequence: PhysicalSequence) -> bool:
    """Whether the best legal logit alone decides."""
    sampling = sequence.sampling
    has_penalties = sampling.presence_penalty != 0.0 or sampling.frequency_penalty != 0.0
    return sampling.temperature == 0.0 and not (has_penalties and sequence.counts.ids.size)


def _is_dead(masks: ChainMasks | None) -> bool:
    """Whether nothing is legal at the row's very next position."""
    return masks is not None and bool(masks.dead_positions & 1)


@contextmanager
def _taken_back(sequences: Sequence[PhysicalSequence]) -> Iterator[None]:
    """After an exception inside, what the model ran past the frontiers is forgotten."""
    try:
        yield
    except BaseException:
        for sequence in sequences:
            sequence.take_back()
        raise
