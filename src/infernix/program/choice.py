"""Which tokens the rows of a batch come to, given what the model said and what is legal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.ops.acceptance import ChainMasks, DraftedRow, RowFailure, RowOutput, verify
from infernix.ops.device_greedy import best_tokens, greedy_output
from infernix.ops.random import Purpose, uniform
from infernix.ops.sampling import TokenDomain, sample_token
from infernix.program.drafters.chain import NO_DRAFTS, DraftChain
from infernix.program.masks import MaskBuffers, TokenMaskProvider
from infernix.program.sequence import PhysicalSequence


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A sequence, the tokens of its ledger that have not been run, and guesses at those that follow.

    Without tokens to run, the sequence's own `frontier_logits` are what the model says.
    """

    sequence: PhysicalSequence
    chunk: Sequence[int]
    chain: DraftChain = NO_DRAFTS

    @property
    def drafts(self) -> tuple[int, ...]:
        """The guesses."""
        return self.chain.tokens


class TokenChooser:
    """Chooses on the host, and before that, where asked to, on the device whatever can be chosen there.

    A row's tokens are a function of its own logits, masks, parameters, counts, seed and position.
    """

    def __init__(self, vocabulary: Vocabulary, device: torch.device) -> None:
        never = vocabulary.classes == TokenClass.NEVER
        self._domain = TokenDomain.without(never)
        self._eos_ids = vocabulary.eos_ids
        self._never = torch.from_numpy(never).to(device)

    def best_on_device(
        self,
        rows: Sequence[BatchRow],
        logits: Sequence[torch.Tensor | None],
        row_masks: Sequence[ChainMasks | None],
        masks: TokenMaskProvider | None,
        buffers: MaskBuffers,
    ) -> dict[int, torch.Tensor]:
        """By row number the best tokens of its places, of all rows for which those decide.

        The device is given the work and not waited for; only masks that it needs are sent to it.
        """
        found: dict[int, torch.Tensor] = {}
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
                words = torch.cat(
                    [buffers.upload(masks, number, size) for number, size in zip(group, sizes, strict=True)]
                )
            together = torch.cat([part for number in group if (part := logits[number]) is not None])
            best = best_tokens(together, self._domain.num_tokens, words, self._never)
            found |= dict(zip(group, torch.split(best, sizes), strict=True))
        return found

    def choose(
        self,
        rows: Sequence[BatchRow],
        logits: Sequence[torch.Tensor | None],
        row_masks: Sequence[ChainMasks | None],
        best: Mapping[int, torch.Tensor],
        purpose: Purpose,
    ) -> list[RowOutput]:
        """The output of each row; a row without logits is one that had no legal token before the pass."""
        return [
            greedy_output(best[number].tolist(), row.drafts, mask, self._eos_ids)
            if number in best
            else self._choose_on_host(row, row_logits, mask, purpose)
            for number, (row, row_logits, mask) in enumerate(zip(rows, logits, row_masks, strict=True))
        ]

    def _choose_on_host(
        self, row: BatchRow, logits: torch.Tensor | None, masks: ChainMasks | None, purpose: Purpose
    ) -> RowOutput:
        if logits is None:
            return RowOutput((), 0, RowFailure.DEAD_END)
        if not row.drafts:
            return self._sample(row.sequence, logits, masks, purpose)
        drafted = DraftedRow(
            logits=logits.numpy(force=True),
            drafts=row.drafts,
            parameters=row.sequence.sampling,
            counts=row.sequence.counts,
            position=len(row.sequence.ledger),
            masks=masks,
            proposals=row.chain.proposals,
            end_ids=self._eos_ids,
        )
        [output] = verify([drafted], self._domain)
        return output

    def _sample(
        self, sequence: PhysicalSequence, logits: torch.Tensor, masks: ChainMasks | None, purpose: Purpose
    ) -> RowOutput:
        if masks is not None and masks.is_dead:
            return RowOutput((), 0, RowFailure.DEAD_END)
        number = uniform(sequence.sampling.seed, len(sequence.ledger), purpose)
        words = None if masks is None else masks.words[0]
        scores = logits[0].numpy(force=True)
        try:
            token = sample_token(scores, self._domain, words, sequence.sampling, sequence.counts, number)
        except ConstraintDeadEnd:
            return RowOutput((), 0, RowFailure.DEAD_END)
        except NonFiniteLogits:
            return RowOutput((), 0, RowFailure.NON_FINITE_LOGITS)
        return RowOutput((token,), 0)


def _is_plainly_greedy(sequence: PhysicalSequence) -> bool:
    """Whether the best legal logit alone decides."""
    sampling = sequence.sampling
    has_penalties = sampling.presence_penalty != 0.0 or sampling.frequency_penalty != 0.0
    return sampling.temperature == 0.0 and not has_penalties
