"""One pass over the rows of a batch, their masks, and the choice of their tokens.

On a CPU masks come first, so that a row without a legal token costs no pass. On a device that works beside the CPU the
pass is launched first and masks are worked out while it runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from infernix.matching.vocabulary import Vocabulary
from infernix.models.model import LanguageModel, ModelRow
from infernix.ops.random import Purpose
from infernix.program.choice import BatchRow, TokenChooser
from infernix.program.masks import MaskBuffers, TokenMaskProvider
from infernix.program.pending import PendingBatch, PendingRow
from infernix.program.sequence import PhysicalSequence
from infernix.program.speculation import Speculation


class Executor:
    """Runs batches on one model; the buffers for their masks are allocated here."""

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: Vocabulary,
        *,
        max_rows: int,
        num_draft_tokens: int,
        on_device: bool,
        speculation: Speculation | None = None,
    ) -> None:
        self._model = model
        self._speculation = speculation
        self._on_device = on_device
        self._buffers = MaskBuffers(
            max_rows, num_draft_tokens + 1, vocabulary.num_mask_words, device=model.device if on_device else None
        )
        self._chooser = TokenChooser(vocabulary, model.device)

    def append(self, sequence: PhysicalSequence, chunk: Sequence[int]) -> None:
        """Runs tokens after which nothing is asked."""
        with self._taken_back([sequence]):
            self._run_model([sequence], [ModelRow(chunk, sequence.cache, 0)])
        if sequence.drafting is not None:
            sequence.drafting.accept(len(chunk))

    def run(self, rows: Sequence[BatchRow], masks: TokenMaskProvider | None, purpose: Purpose) -> PendingBatch:
        """A pass over all rows and the tokens that they come to; after an exception everything is as it was before."""
        clock, chains = _Clock(), [row.drafts for row in rows]
        with self._taken_back([row.sequence for row in rows]):
            if self._on_device:
                logits = self._forward(rows, [True] * len(rows))
                clock.stop("forward")
                row_masks = self._buffers.collect(masks, chains)
                best = self._chooser.best_on_device(rows, logits, row_masks, masks, self._buffers)
                clock.stop("mask")
                self._wait()
            else:
                row_masks, best = self._buffers.collect(masks, chains), {}
                clock.stop("mask")
                logits = self._forward(rows, [mask is None or not mask.is_dead for mask in row_masks])
            clock.stop("forward")
            outputs = self._chooser.choose(rows, logits, row_masks, best, purpose)
            clock.stop("sampling")
        for row, row_logits in zip(rows, logits, strict=True):
            row.sequence.is_pending = True
            row.sequence.pending_logits = None if row_logits is None else row_logits[0]
        pending = tuple(
            PendingRow(row.sequence, output.tokens, output.failure, output.num_accepted, row_logits)
            for row, output, row_logits in zip(rows, outputs, logits, strict=True)
        )
        return PendingBatch(pending, clock.seconds["forward"], clock.seconds["mask"], clock.seconds["sampling"])

    def _forward(self, rows: Sequence[BatchRow], are_live: Sequence[bool]) -> list[torch.Tensor | None]:
        """The logits [1 + drafts, num_logits] of each live row."""
        to_run = [row for row, is_live in zip(rows, are_live, strict=True) if is_live and row.chunk]
        parts: Iterator[torch.Tensor] = iter(())
        if to_run:
            logits = self._run_model(
                [row.sequence for row in to_run],
                [ModelRow([*row.chunk, *row.drafts], row.sequence.cache, 1 + len(row.drafts)) for row in to_run],
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

    def _run_model(self, sequences: Sequence[PhysicalSequence], rows: Sequence[ModelRow]) -> torch.Tensor:
        if self._speculation is None:
            return self._model.forward_rows(rows)
        return self._speculation.forward(sequences, rows)

    @contextmanager
    def _taken_back(self, sequences: Sequence[PhysicalSequence]) -> Iterator[None]:
        """After an exception inside, what the model ran past the frontiers is forgotten."""
        try:
            yield
        except BaseException:
            self._wait()  # masks that are still being sent must not change
            for sequence in sequences:
                sequence.take_back()
            raise

    def _wait(self) -> None:
        """Until a GPU has done all that it was given."""
        if self._model.device.type == "cuda":
            torch.cuda.current_stream(self._model.device).synchronize()


class _Clock:
    """Wall seconds between the stops, by name."""

    def __init__(self) -> None:
        self.seconds = {"forward": 0.0, "mask": 0.0, "sampling": 0.0}
        self._last = time.perf_counter()

    def stop(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] += now - self._last
        self._last = now
