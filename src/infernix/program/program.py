"""Execution: prompts in chunks, rounds over many sequences, and the transaction that makes a token count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from infernix.matching.vocabulary import Vocabulary
from infernix.models.model import CachePool, LanguageModel
from infernix.ops.random import Purpose
from infernix.options import SamplingParameters
from infernix.program import pausing
from infernix.program.choice import BatchRow
from infernix.program.drafters.chain import NO_DRAFTS, DraftChain
from infernix.program.drafters.neural import NeuralDrafter
from infernix.program.execution import Executor
from infernix.program.masks import TokenMaskProvider
from infernix.program.pending import PendingBatch, RowDecision
from infernix.program.prefix import CachedPrefix
from infernix.program.sequence import PhysicalSequence
from infernix.program.speculation import Speculation

DEFAULT_PREFILL_CHUNK_TOKENS = 512
DEFAULT_MAX_ROWS = 8


class Program:
    """Runs physical sequences on one model. One unit at a time, on one thread: the caller keeps units apart.

    The vocabulary's size is the token domain; the model's output may be wider (padding) but not narrower. Whatever is
    large is allocated here. All sequences take their room from one pool of `num_cache_positions` tokens, in blocks as
    they grow: `reserve` says beforehand whether the next unit has room. `num_sequences` bounds the sequences and
    prefixes that hold recurrent state at a time, for models that have any; None: two for each row. A batch has at most
    `max_rows` rows of at most `num_draft_tokens` drafts.
    """

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: Vocabulary,
        *,
        prefill_chunk_tokens: int = DEFAULT_PREFILL_CHUNK_TOKENS,
        max_rows: int = DEFAULT_MAX_ROWS,
        num_cache_positions: int,
        num_sequences: int | None = None,
        num_draft_tokens: int = 0,
        samples_on_device: bool | None = None,
        drafter: NeuralDrafter | None = None,
    ) -> None:
        """`drafter`, on `model`, is what `propose` asks; it has at most `num_draft_tokens` drafts a round.

        `samples_on_device`: masks are applied and best tokens chosen where the logits are, so that ids travel and
        logits do not; None: where that is a GPU.
        """
        if vocabulary.num_tokens > model.num_logits:
            raise ValueError(f"{vocabulary.num_tokens} tokens but only {model.num_logits} logits")
        if prefill_chunk_tokens < 1:
            raise ValueError(f"a prefill chunk has at least one token, not {prefill_chunk_tokens}")
        if max_rows < 1:
            raise ValueError(f"a batch has at least one row, not {max_rows}")
        if num_draft_tokens < 0:
            raise ValueError(f"a row has at least no draft, not {num_draft_tokens}")
        if drafter is not None and (drafter.model is not model or drafter.num_drafts > num_draft_tokens):
            raise ValueError("the drafter is for another model, or has more drafts than there is room for")
        num_sequences = num_sequences or 2 * max_rows
        self._speculation = (
            None
            if drafter is None
            else Speculation(drafter, num_positions=num_cache_positions, num_sequences=num_sequences)
        )
        self._prefill_chunk_tokens = prefill_chunk_tokens
        self._max_rows = max_rows
        self._num_draft_tokens = num_draft_tokens
        self._executor = Executor(
            model,
            vocabulary,
            max_rows=max_rows,
            num_draft_tokens=num_draft_tokens,
            on_device=model.device.type != "cpu" if samples_on_device is None else samples_on_device,
            speculation=self._speculation,
        )
        self._pool = model.new_pool(num_cache_positions, num_sequences)

    @property
    def pool(self) -> CachePool:
        """The memory that sequences share."""
        return self._pool

    def start(
        self,
        prompt: Sequence[int],
        max_new_tokens: int,
        sampling: SamplingParameters,
        *,
        prefix: CachedPrefix | None = None,
    ) -> PhysicalSequence:
        """A sequence for the prompt and at most `max_new_tokens` more, of which the last is never run.

        What `prompt` and `prefix` have in common is not run again. No room is taken yet, but for what a fork needs.
        """
        num_positions = len(prompt) + max(0, max_new_tokens - 1)
        num_reused = 0 if prefix is None else prefix.num_reusable(prompt)
        if prefix is not None and num_reused:
            sequence = PhysicalSequence(prompt, prefix.cache.fork(num_reused, num_positions), sampling)
            if num_reused == len(prompt):
                sequence.frontier_logits = prefix.logits
        else:
            sequence = PhysicalSequence(prompt, self._pool.new_cache(num_positions), sampling)
        if self._speculation is not None:
            try:
                self._speculation.begin(sequence, prefix)
            except BaseException:
                sequence.release()
                raise
        return sequence

    def reserve(self, sequence: PhysicalSequence, num_tokens: int) -> bool:
        """Takes room for `num_tokens` tokens behind the frontier; False, and nothing changes, where there is none."""
        return sequence.cache.reserve(sequence.execution_frontier + num_tokens)

    def num_prefill_tokens(self, sequence: PhysicalSequence) -> int:
        """Tokens that the next `prefill_chunk` runs."""
        return min(self._prefill_chunk_tokens, sequence.num_unprocessed_prompt_tokens)

    def prefill_chunk(
        self, sequence: PhysicalSequence, masks: TokenMaskProvider | None, *, sample: bool = True
    ) -> PendingBatch | None:
        """Runs the next chunk of the prompt. The last chunk also draws the first token, unless `sample` is False.

        Chunks before the last ask for no mask and return None; so does every chunk without sampling. Where a prefix
        left nothing of the prompt to run, the first token is drawn from what the model said at its end. `masks` and
        errors as in `decode_batch`.
        """
        sequence.require_ready()
        self._catch_up([sequence], 0)
        start = sequence.execution_frontier
        chunk = sequence.ledger[start : start + self._prefill_chunk_tokens]
        is_last = len(chunk) == sequence.num_unprocessed_prompt_tokens
        if sequence.num_generated_tokens or not (chunk or (sample and sequence.frontier_logits is not None)):
            raise ValueError("the prompt is processed")
        if not sample or not is_last:
            self._executor.append(sequence, chunk)
            sequence.execution_frontier += len(chunk)
            return None
        return self._executor.run([BatchRow(sequence, chunk)], masks, Purpose.PREFILL)

    def propose(self, sequences: Sequence[PhysicalSequence], extents: Sequence[int]) -> list[DraftChain]:
        """The drafter's guesses at each sequence's next tokens, at most `extents[i]` of them, for `decode_batch`.

        They may be used, shortened or left alone. A sequence has none without a drafter, with forced tokens that have
        not been run, and where there is no room for the drafter's memory of it. Its first token comes from prefill.
        Raises ValueError for a sequence that is not ready for a unit.
        """
        for sequence in sequences:
            sequence.require_ready()
        if self._speculation is None:
            return [NO_DRAFTS] * len(sequences)
        return self._speculation.propose(sequences, extents)

    def decode_batch(
        self,
        sequences: Sequence[PhysicalSequence],
        masks: TokenMaskProvider | None,
        drafts: Sequence[DraftChain | Sequence[int]] | None = None,
    ) -> PendingBatch:
        """Runs what each of 1..max_rows different sequences has not run (the anchor, and forced tokens before it), all
        in one pass, and draws the next token of each.

        `masks` is borrowed for this call and asked once for each constrained row; None where no row is constrained.
        `drafts` are guesses at each row's next tokens, 0..num_draft_tokens of them: the model runs over them too, and a
        row's tokens are a beginning of them and one more, as `ops.acceptance` says; None: no row has any.
        Plain tokens are drafts that no chance was involved in.

        A row fails alone, and one that has no legal token at once costs no pass where masks come before it (on a CPU).
        After an exception (also ValueError: a row without room) everything is as it was before.
        """
        if not 1 <= len(set(map(id, sequences))) == len(sequences) <= self._max_rows:
            raise ValueError(f"a batch has 1..{self._max_rows} different sequences")
        rows = []
        for sequence, guess in zip(sequences, drafts or [NO_DRAFTS] * len(sequences), strict=True):
            chain = guess if isinstance(guess, DraftChain) else DraftChain(tuple(guess))
            sequence.require_ready()
            if sequence.num_generated_tokens == 0:
                raise ValueError("the first token comes from prefill")
            if len(chain) > self._num_draft_tokens:
                raise ValueError(f"{len(chain)} drafts, but there is room for {self._num_draft_tokens}")
            rows.append(BatchRow(sequence, sequence.ledger[sequence.execution_frontier :], chain))
        self._catch_up(sequences)
        return self._executor.run(rows, masks, Purpose.DECODE)

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
            sequence.is_pending, sequence.pending_logits = False, None
            accepted = row.tokens[: decision.num_accepted]
            if accepted:
                frontier = len(sequence.ledger) + len(accepted) - 1
                if sequence.drafting is not None:
                    sequence.drafting.accept(frontier - sequence.execution_frontier)
                sequence.execution_frontier = frontier
                sequence.frontier_logits = None if row.logits is None else row.logits[len(accepted) - 1]
                sequence.ledger += accepted
                for token in accepted:
                    sequence.counts.add(token)
            if decision.is_terminal:
                sequence.release()
            else:
                sequence.take_back()  # drafts that were not accepted

    def abort_pending(self, batch: PendingBatch) -> None:
        """Takes the unit back as if it had not run; the same unit may run again, with the same outcome."""
        self._check_pending(batch)
        for row in batch.rows:
            row.sequence.take_back()
            row.sequence.is_pending, row.sequence.pending_logits = False, None

    def prefix(self, sequence: PhysicalSequence) -> CachedPrefix:
        """What the model has run of the sequence's ledger, for later ones to begin with; ask before it is released."""
        prefix = CachedPrefix.of(sequence)
        if self._speculation is None:
            return prefix
        try:
            return replace(prefix, drafting=self._speculation.remember(sequence, len(prefix.tokens)))
        except BaseException:
            prefix.release()
            raise

    def pause_snapshot(self, sequence: PhysicalSequence) -> None:
        """Moves the sequence's memory to the host, between units; `sequence.snapshot.num_bytes` is what it takes."""
        pausing.pause_by_snapshot(sequence)

    def pause_replay(self, sequence: PhysicalSequence) -> None:
        """Drops the sequence's memory, between units; it will be computed again."""
        pausing.pause_by_replay(sequence)

    def revoke_snapshot(self, sequence: PhysicalSequence) -> None:
        """Drops the host's copy of a paused sequence: it will be computed again."""
        pausing.revoke_snapshot(sequence)

    def resume(self, sequence: PhysicalSequence, num_tokens: int = 1) -> bool:
        """Takes room for what the sequence had and for `num_tokens` more; False, and it stays paused, where there is
        none. Afterwards `replay_chunk` has to run while `sequence.num_tokens_to_replay` is not 0.
        """
        if not pausing.resume(sequence, num_tokens):
            return False
        if self._speculation is not None and sequence.num_tokens_to_replay:
            self._speculation.begin_again(sequence)
        return True

    def replay_chunk(self, sequence: PhysicalSequence) -> None:
        """Runs the next part of a resumed sequence's history: no mask, no draw, nothing counted."""
        self._catch_up([sequence], 0)
        pausing.replay_chunk(sequence, self._executor.append, self._prefill_chunk_tokens)

    def release(self, sequence: PhysicalSequence) -> None:
        """Gives the sequence's memory back, at any time; once is enough and more do no harm."""
        sequence.release()

    def _catch_up(self, sequences: Sequence[PhysicalSequence], num_allowed: int | None = None) -> None:
        if self._speculation is not None:
            self._speculation.catch_up(sequences, num_allowed)

    @staticmethod
    def _check_pending(batch: PendingBatch) -> None:
        if not all(row.sequence.is_pending for row in batch.rows):
            raise ValueError("the batch was committed or aborted before")
