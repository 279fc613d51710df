"""The units of work: a round of one new token a request, a chunk of a prompt or of a replay, forced tokens.

A unit is a transaction: every row's output is previewed, the Program commits once, the previews are confirmed, and only
then is anything published. Whatever is raised before the Program's commit leaves everything as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from infernix.engine.drafting import Drafting
from infernix.engine.prefix_cache import PrefixCache
from infernix.engine.recorder import Recorder
from infernix.engine.request import Request
from infernix.engine.session_masks import masks_of
from infernix.engine.settlement import row_error
from infernix.program.drafters.chain import NO_DRAFTS, DraftChain
from infernix.program.pending import PendingBatch, RowDecision
from infernix.program.prefix import CachedPrefix
from infernix.program.program import Program
from infernix.results import FinishReason, PublishedDelta


class UnitOutcomes(Protocol):
    """Who hears what a unit came to, request by request, after its commit."""

    def advanced(self, request: Request, deltas: Sequence[PublishedDelta]) -> None:
        """Something new is committed, and the request goes on."""
        ...

    def ended(self, request: Request, reason: FinishReason, deltas: Sequence[PublishedDelta]) -> None:
        """The request's output has ended."""
        ...

    def failed(self, request: Request, error: BaseException) -> None:
        """The request cannot go on; nothing of the unit is committed for it."""
        ...


class UnitRunner:
    """Runs units. After an exception, `culprit` is the one request that it is about, None: the unit as a whole."""

    def __init__(
        self,
        program: Program,
        prefixes: PrefixCache,
        recorder: Recorder,
        clock: Callable[[], float],
        drafting: Drafting | None = None,
    ) -> None:
        self._program = program
        self._drafting = drafting
        self._prefixes = prefixes
        self._recorder = recorder
        self._clock = clock
        self.culprit: Request | None = None

    def decode(self, requests: Sequence[Request], outcomes: UnitOutcomes, start: float) -> None:
        """A new token for each of the requests, and its right drafts; `start` is when their choice began."""
        self.culprit = None
        chains, draft_wait = self._chains(requests)
        masks = masks_of(requests)
        try:
            batch = self._program.decode_batch([request.physical for request in requests], masks, chains)
        except BaseException:
            self.culprit = None if masks is None else masks.culprit
            raise
        decisions, remembered = self._preview(requests, batch)
        self._commit(requests, batch, decisions, remembered)
        seconds = self._clock() - start
        share = seconds / len(requests)
        for request in requests:
            request.times.decode += seconds
            request.times.decode_share += share
            request.counts.num_decode_rounds += 1
        if self._drafting is not None:
            self._count_drafts(requests, chains, batch, decisions, draft_wait, has_masks=masks is not None)
        self._publish(requests, batch, outcomes)
        self._recorder.round(batch, decisions, self._clock() - start)

    def prefill(self, request: Request, outcomes: UnitOutcomes) -> None:
        """The next chunk of a prompt; the last one brings the first token, if there may be one."""
        self.culprit = request
        start = self._clock()
        session, sequence = request.session, request.physical
        has_budget = request.prepared.budget.num_tokens > 0
        # A thinking budget of nothing is used up before the model has said a word.
        can_sample = has_budget and not session.pending_control_tokens
        batch: PendingBatch | None = None
        if can_sample or sequence.num_unprocessed_prompt_tokens:
            batch = self._program.prefill_chunk(sequence, masks_of([request]), sample=can_sample)
        if batch is not None:
            decisions, remembered = self._preview([request], batch)
            self.culprit = request
            self._commit([request], batch, decisions, remembered)
        request.times.prefill += self._clock() - start
        request.counts.num_prefill_units += 1
        self._recorder.unit()
        if batch is not None:
            if not sequence.is_released:
                self._remember(request)
            self._publish([request], batch, outcomes)
        elif sequence.num_unprocessed_prompt_tokens:
            outcomes.advanced(request, ())
        else:
            self._remember(request)
            if has_budget:
                outcomes.advanced(request, ())
            else:
                session.preview_terminal(request.prepared.budget.limit_reason)
                deltas = session.commit_preview()
                outcomes.ended(request, request.prepared.budget.limit_reason, deltas)

    def replay(self, request: Request) -> None:
        """The next part of a history that is run again. The output has no part in it."""
        self.culprit = request
        start = self._clock()
        self._program.replay_chunk(request.physical)
        request.times.replay += self._clock() - start
        self._recorder.unit()

    def control(self, requests: Sequence[Request], outcomes: UnitOutcomes) -> None:
        """Puts in the end of each request's reasoning: no forward pass, no draw."""
        for request in requests:
            self.culprit = request
            tokens = request.session.pending_control_tokens
            request.session.preview_control(tokens)
            try:
                self._program.append_forced_tokens(request.physical, tokens)
            except BaseException:
                request.session.discard_preview()
                raise
            deltas = request.session.commit_preview()
            request.counts.num_control_units += 1
            self._note_tokens(request)
            self._conclude(request, deltas, outcomes)
        self._recorder.unit()

    def _preview(
        self, requests: Sequence[Request], batch: PendingBatch
    ) -> tuple[list[RowDecision], list[CachedPrefix]]:
        """What each row comes to, and what is worth remembering of those that end. Undone after an exception."""
        decisions: list[RowDecision] = []
        remembered: list[CachedPrefix] = []
        try:
            for request, row in zip(requests, batch.rows, strict=True):
                if row.failure is not None:
                    decisions.append(RowDecision(0, is_terminal=True))
                    continue
                self.culprit = request
                preview = request.session.preview_model(row.tokens)
                decisions.append(RowDecision(preview.num_accepted, preview.is_terminal))
                if preview.is_terminal:
                    remembered += self._prefix_of(request)
            self.culprit = None
        except BaseException:
            self._take_back(requests, batch, remembered)
            raise
        return decisions, remembered

    def _commit(
        self,
        requests: Sequence[Request],
        batch: PendingBatch,
        decisions: Sequence[RowDecision],
        remembered: Sequence[CachedPrefix],
    ) -> None:
        try:
            self._program.commit(batch, decisions)
        except BaseException:
            self._take_back(requests, batch, remembered)
            raise
        for prefix in remembered:
            self._prefixes.add(prefix)

    def _take_back(self, requests: Sequence[Request], batch: PendingBatch, remembered: Sequence[CachedPrefix]) -> None:
        for prefix in remembered:
            prefix.release()
        for request in requests:
            request.session.discard_preview()
            request.pending_upload_bytes = 0
        # A commit that was broken off in its middle has left rows that are not pending: they fail with their unit.
        if all(row.sequence.is_pending for row in batch.rows):
            self._program.abort_pending(batch)

    def _publish(self, requests: Sequence[Request], batch: PendingBatch, outcomes: UnitOutcomes) -> None:
        """Confirms and publishes row by row; one request's failure here is no other's."""
        for request, row in zip(requests, batch.rows, strict=True):
            if row.failure is not None:
                request.pending_upload_bytes = 0
                outcomes.failed(request, row_error(request, row.failure))
                continue
            try:
                deltas = request.session.commit_preview()
            except Exception as error:
                outcomes.failed(request, error)
                continue
            request.counts.mask_upload_bytes += request.pending_upload_bytes
            request.pending_upload_bytes = 0
            self._note_tokens(request)
            self._conclude(request, deltas, outcomes)

    def _conclude(self, request: Request, deltas: Sequence[PublishedDelta], outcomes: UnitOutcomes) -> None:
        reason = request.session.finish_reason
        if reason is None:
            outcomes.advanced(request, deltas)
        else:
            outcomes.ended(request, reason, deltas)

    def _note_tokens(self, request: Request) -> None:
        now = self._clock()
        if request.times.first_token is None:
            request.times.first_token = now
        request.times.last_token = now

    def _chains(self, requests: Sequence[Request]) -> tuple[list[DraftChain] | None, float]:
        """The drafts of a round, if there are any, and the seconds that it waited for them."""
        if self._drafting is None:
            return None, 0.0
        start, chains = self._clock(), None
        try:
            chains = self._drafting.chains(requests)
        except Exception:  # no request fails because it could not be sped up
            self._recorder.not_drafted()
        return chains, self._clock() - start

    def _count_drafts(
        self,
        requests: Sequence[Request],
        chains: Sequence[DraftChain] | None,
        batch: PendingBatch,
        decisions: Sequence[RowDecision],
        wait_seconds: float,
        *,
        has_masks: bool,
    ) -> None:
        """Before anything is published, so that whoever has a result finds it counted."""
        chains = chains or [NO_DRAFTS] * len(requests)
        # An output may end in the middle of its right drafts, as at a stop string.
        nums_accepted = [
            min(row.num_accepted, decision.num_accepted) for row, decision in zip(batch.rows, decisions, strict=True)
        ]
        for request, chain, num_accepted in zip(requests, chains, nums_accepted, strict=True):
            request.counts.drafts.add(chain, num_accepted)
            request.counts.drafts.wait_seconds += wait_seconds
        self._recorder.drafts(chains, nums_accepted, wait_seconds, has_masks=has_masks)

    def _remember(self, request: Request) -> None:
        """Keeps a prompt that has been run for those that begin like it."""
        for prefix in self._prefix_of(request):
            self._prefixes.add(prefix)

    def _prefix_of(self, request: Request) -> list[CachedPrefix]:
        """What the model has run of a request, if it is to be remembered and can be."""
        if not self._prefixes.would_keep(len(request.physical.ledger)):
            return []
        try:
            return [self._program.prefix(request.physical)]
        except Exception:  # no request fails because a later one cannot be spared work
            self._recorder.not_remembered()
            return []
