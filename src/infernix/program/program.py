"""Execution: prompts in chunks, one new token a unit, and the transaction that makes a token count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintDeadEnd, InvalidOptions, NonFiniteLogits
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.models.model import LanguageModel
from infernix.ops.random import Purpose, uniform
from infernix.ops.sampling import TokenDomain, sample_token
from infernix.options import SamplingParameters
from infernix.program.pending import PendingBatch, PendingRow, PendingRowFailure, RowDecision
from infernix.program.sequence import PhysicalSequence

DEFAULT_PREFILL_CHUNK_TOKENS = 512


class TokenMaskProvider(Protocol):
    """The legal next tokens of a constrained row, asked for once a unit on the thread that runs the unit."""

    def fill_mask(self, words: NDArray[np.int32]) -> bool:
        """Writes the packed row of the committed frontier; False is a dead end: no token is legal."""
        ...


class Program:
    """Runs physical sequences on one model. One unit at a time: the caller keeps units apart.

    The vocabulary's size is the token domain; the model's output may be wider (padding) but not narrower.
    """

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: Vocabulary,
        *,
        prefill_chunk_tokens: int = DEFAULT_PREFILL_CHUNK_TOKENS,
    ) -> None:
        if vocabulary.num_tokens > model.num_logits:
            raise ValueError(f"{vocabulary.num_tokens} tokens but only {model.num_logits} logits")
        if prefill_chunk_tokens < 1:
            raise ValueError(f"a prefill chunk has at least one token, not {prefill_chunk_tokens}")
        self._model = model
        self._prefill_chunk_tokens = prefill_chunk_tokens
        self._domain = TokenDomain.without(vocabulary.classes == TokenClass.NEVER)
        self._mask_words = np.zeros(vocabulary.num_mask_words, dtype=np.int32)

    def start(self, prompt: Sequence[int], max_new_tokens: int, sampling: SamplingParameters) -> PhysicalSequence:
        """A sequence with room for the prompt and `max_new_tokens` more, of which the last is never run.

        Raises InvalidOptions where there is no memory for so many.
        """
        num_positions = len(prompt) + max(0, max_new_tokens - 1)
        try:
            cache = self._model.new_cache(num_positions)
        except (RuntimeError, MemoryError) as error:  # PyTorch raises its own kinds of RuntimeError
            raise InvalidOptions(
                f"there is no memory for the keys and values of {num_positions} tokens, prompt and new ones: "
                f"{str(error).splitlines()[0] if str(error) else type(error).__name__}",
                field="max_new_tokens",
            ) from error
        return PhysicalSequence(prompt, cache, sampling)

    def prefill_chunk(
        self, sequence: PhysicalSequence, masks: TokenMaskProvider | None, *, sample: bool = True
    ) -> PendingBatch | None:
        """Runs the next chunk of the prompt. The last chunk also draws the first token, unless `sample` is False.

        Chunks before the last ask for no mask and return None; so does every chunk without sampling.
        """
        if sequence.num_unprocessed_prompt_tokens == 0:
            raise ValueError("the prompt is processed")
        start = sequence.execution_frontier
        chunk = sequence.ledger[start : start + self._prefill_chunk_tokens]
        if not sample or len(chunk) < sequence.num_unprocessed_prompt_tokens:
            self._forward(sequence, chunk, num_logits_rows=0)
            sequence.execution_frontier += len(chunk)
            return None
        return self._run_and_sample(sequence, chunk, masks, Purpose.PREFILL)

    def decode(self, sequence: PhysicalSequence, masks: TokenMaskProvider | None) -> PendingBatch:
        """Runs what has not been run (the anchor, and forced tokens before it) and draws the next token."""
        if sequence.num_generated_tokens == 0:
            raise ValueError("the first token comes from prefill")
        return self._run_and_sample(sequence, sequence.ledger[sequence.execution_frontier :], masks, Purpose.DECODE)

    def append_forced_tokens(self, sequence: PhysicalSequence, tokens: Sequence[int]) -> None:
        """Makes given tokens count as if the model had produced them; the next decode unit runs over them.

        Neither model nor sampler nor random numbers have a part in it. Raises ValueError, with nothing changed, before
        the prompt is processed and while a unit is pending.
        """
        if sequence.is_pending or sequence.num_unprocessed_prompt_tokens:
            raise ValueError("tokens can be forced between two units after the prompt")
        sequence.ledger += tokens
        for token in tokens:
            sequence.counts.add(token)

    def commit(self, batch: PendingBatch, decisions: Sequence[RowDecision]) -> None:
        """Makes the accepted tokens count: ledger, execution frontier, cache and penalty counts move together.

        Raises ValueError, with nothing changed, if a decision does not suit its row.
        """
        self._check_pending(batch)
        for row, decision in zip(batch.rows, decisions, strict=True):
            if not decision.suits(row):
                raise ValueError(f"{decision} does not suit {row.tokens} (failure: {row.failure})")
        for row, decision in zip(batch.rows, decisions, strict=True):
            sequence = row.sequence
            sequence.is_pending = False
            accepted = row.tokens[: decision.num_accepted]
            if accepted:
                sequence.execution_frontier = len(sequence.ledger) + len(accepted) - 1
                sequence.ledger += accepted
                for token in accepted:
                    sequence.counts.add(token)
            if decision.is_terminal:
                sequence.release()

    def abort_pending(self, batch: PendingBatch) -> None:
        """Takes the unit back as if it had not run; the same unit may run again, with the same outcome."""
        self._check_pending(batch)
        for row in batch.rows:
            row.sequence.cache.truncate(row.sequence.execution_frontier)
            row.sequence.is_pending = False

    @staticmethod
    def _check_pending(batch: PendingBatch) -> None:
        if not all(row.sequence.is_pending for row in batch.rows):
            raise ValueError("the batch was committed or aborted before")

    def _run_and_sample(
        self, sequence: PhysicalSequence, tokens: Sequence[int], masks: TokenMaskProvider | None, purpose: Purpose
    ) -> PendingBatch:
        if sequence.is_pending:
            raise ValueError("the sequence's last unit is neither committed nor aborted")
        # The mask comes first: a dead end then costs no forward pass.
        if masks is not None and not masks.fill_mask(self._mask_words):
            row = PendingRow(sequence, (), PendingRowFailure.DEAD_END)
        else:
            logits = self._forward(sequence, tokens, num_logits_rows=1)[0]
            row = self._sample(sequence, logits, None if masks is None else self._mask_words, purpose)
        sequence.is_pending = True
        return PendingBatch((row,))

    def _forward(
        self, sequence: PhysicalSequence, tokens: Sequence[int], *, num_logits_rows: int
    ) -> NDArray[np.float32]:
        logits: NDArray[np.float32] = self._model.forward(tokens, sequence.cache, num_logits_rows).numpy(force=True)
        return logits

    def _sample(
        self,
        sequence: PhysicalSequence,
        logits: NDArray[np.float32],
        mask: NDArray[np.int32] | None,
        purpose: Purpose,
    ) -> PendingRow:
        number = uniform(sequence.sampling.seed, len(sequence.ledger), purpose)
        try:
            token = sample_token(logits, self._domain, mask, sequence.sampling, sequence.counts, number)
        except ConstraintDeadEnd:
            return PendingRow(sequence, (), PendingRowFailure.DEAD_END)
        except NonFiniteLogits:
            return PendingRow(sequence, (), PendingRowFailure.NON_FINITE_LOGITS)
        return PendingRow(sequence, (token,))
