"""One caller of the simulation: what it asked for, what it has been told, and whether that is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from infernix.engine.handle import GenerationHandle
from infernix.engine.request import PreparedRequest, Request
from infernix.engine.states import RequestState
from infernix.errors import (
    CacheCapacityExceeded,
    ConstraintDeadEnd,
    EngineClosed,
    InfernixError,
    NonFiniteLogits,
    QueueTimeout,
)
from infernix.frontend.session import OutputSession
from infernix.results import FinishReason, GenerationEvent, GenerationResult, GenerationStarted
from tests.engine.simulation.alone import Published, Transcript, cancelled_after
from tests.engine.simulation.world import VOCABULARY, CountedMatcher, matcher_of


class ConsumerError(Exception):
    """What a consumer's callback raises."""


@dataclass(eq=False)
class Client:
    """`shadow` is a matcher of the same grammar that is fed the committed tokens and nothing else.

    num_drafts    at most in a round
    is_closed     the handle was closed: nobody looks at what is published
    is_released   closed, or the end was collected
    """

    prepare: Callable[[], PreparedRequest]
    transcript: Transcript
    handle: GenerationHandle
    request: Request
    shadow: CountedMatcher | None
    num_drafts: int
    published: Published = field(default_factory=Published)
    num_started: int = 0
    num_shadowed: int = 0
    is_released: bool = False
    is_closed: bool = False
    consumer_error: ConsumerError | None = None
    num_callbacks: int = 0
    answer: object = None
    cancelled_at: int | None = None

    @property
    def session(self) -> OutputSession:
        return self.request.session

    def take(self) -> None:
        """Takes what was published."""
        if not self.is_closed:
            for event in self.handle.take():
                self.published = self._after(event, self.published)
                self.num_started += isinstance(event, GenerationStarted)

    def subscribe(self, fails_at: int | None) -> None:
        """Is called back; at the time of `fails_at` it raises."""

        def callback() -> None:
            self.num_callbacks += 1
            if self.num_callbacks == fails_at:
                self.consumer_error = ConsumerError(f"at call {fails_at}")
                raise self.consumer_error
            self.take()

        self.handle.subscribe(callback)

    def collect(self) -> None:
        """Takes all, and the end; the slot is free then."""
        self.take()
        outcome: object = None
        try:
            outcome = self.handle.result()
        except Exception as error:
            outcome = error
        assert outcome is self.answer
        self.is_released = True

    def close(self) -> None:
        """Lets go of the request, whatever it is doing."""
        self.is_closed = True
        self.handle.close()
        self.is_released = True

    def check(self, *, looks_at_masks: bool) -> None:
        """Committed tokens, published text, budget and matcher say the same."""
        session, transcript = self.session, self.transcript
        num_tokens = session.num_tokens
        assert session._provisional is None, "a preview was left behind"
        assert session.token_ids == transcript.tokens[:num_tokens], "not the tokens of the run alone"
        assert num_tokens <= self.request.prepared.budget.num_tokens
        assert session.num_tokens_left == self.request.prepared.budget.num_tokens - num_tokens
        if num_tokens == len(transcript.tokens) and num_tokens and transcript.session.finish_reason is not None:
            assert session.finish_reason is not None, "the output should have ended"
        thinking = session.thinking_statistics
        if thinking is not None and thinking.was_forced:
            assert thinking.num_model_tokens == thinking.budget, "the reasoning was cut at another place"
        self._check_published()
        if not self.has_broken:
            self._check_matcher(looks_at_masks)

    def check_end(self) -> None:
        """The end is the one that the run alone has, or another that there was a reason for."""
        delivery = self.request.delivery
        answer: object = delivery._error if delivery._error is not None else delivery._result
        if self.answer is None:
            self.answer = answer
        elif self.answer is not answer:
            assert answer is self.consumer_error, "a request was answered twice"
            self.answer = answer
        if isinstance(answer, GenerationResult):
            self._check_result(answer)
        else:
            self._check_error(answer)

    def _check_published(self) -> None:
        published, num_started = self.published, self.num_started
        for event in list(self.request.delivery._events):
            published = self._after(event, published)
            num_started += isinstance(event, GenerationStarted)
        if self.is_closed:
            return
        num_tokens, is_finished = self.session.num_tokens, self.request.is_finished
        was_admitted = self.request.times.admitted is not None
        assert num_started == was_admitted, "GenerationStarted comes once, at the first place"
        reason = self.session.finish_reason
        if reason is FinishReason.CANCELLED:
            return  # looked at with the result
        if num_tokens or (is_finished and reason is not None):
            assert published == self.transcript.published[num_tokens], "not what the committed tokens say"
        else:
            assert published == Published()

    def _after(self, event: GenerationEvent, published: Published) -> Published:
        if isinstance(event, GenerationStarted):
            assert published == Published(), "something was published before the start"
            assert event.num_prompt_tokens == len(self.transcript.prompt)
            return published
        return published.and_then([event])

    def _check_matcher(self, looks_at_masks: bool) -> None:
        matcher = matcher_of(self.session)
        if matcher is None or self.shadow is None:
            assert matcher is None
            assert self.shadow is None
            return
        real, shadow = matcher.plain, self.shadow.plain
        new = self.session.token_ids[self.num_shadowed :]
        if new:
            assert shadow.preview(new) == len(new)
            shadow.confirm()
            self.num_shadowed += len(new)
        assert (real.may_end, real.is_terminated) == (shadow.may_end, shadow.is_terminated)
        if looks_at_masks and not real.is_terminated:
            words = np.zeros((2, VOCABULARY.num_mask_words), dtype=np.int32)
            are_alive = real.fill(words[0]), shadow.fill(words[1])
            assert are_alive[0] == are_alive[1]
            assert not are_alive[0] or (words[0] == words[1]).all(), "the matcher is not where its text is"

    def _check_result(self, result: GenerationResult) -> None:
        session = self.session
        if result.finish_reason is FinishReason.CANCELLED:
            assert self.request.is_cancelled
            wanted = cancelled_after(self.prepare, self.transcript, session.num_tokens)
        else:
            assert self.transcript.error is None
            assert self.consumer_error is None
            wanted = self.transcript.session
        assert result.token_ids == wanted.token_ids == session.token_ids
        assert (result.text, result.reasoning) == (wanted.text, wanted.reasoning)
        assert (result.tool_calls, result.tool_diagnostics) == (wanted.tool_calls, wanted.tool_diagnostics)
        assert result.finish_reason is wanted.finish_reason
        assert result.matched_stop_string == wanted.matched_stop_string
        assert result.thinking == wanted.thinking_statistics
        assert result.num_prompt_tokens == len(self.transcript.prompt)
        assert (result.constraint is None) == (self.shadow is None)
        if result.constraint is not None:
            observed = wanted.observe_constraint()
            assert observed is not None
            seen = result.constraint
            assert (seen.branch, seen.terminated) == (observed.branch, observed.terminated)
            assert seen.complete == observed.complete
            if not result.token_ids:
                assert not seen.terminated, "nothing was said, and it is no finished answer"
        if not self.is_closed:
            self.take()
            assert (self.published.content, self.published.reasoning) == (result.text, result.reasoning)
        counts = result.scheduling
        assert counts.num_snapshot_restores + counts.num_replay_restores <= counts.num_pauses

    def _check_error(self, error: object) -> None:
        num_tokens = self.session.num_tokens
        if error is self.consumer_error:
            return
        match error:
            case QueueTimeout():
                assert num_tokens == 0
                assert self.request.times.admitted is None
            case EngineClosed() | CacheCapacityExceeded():
                pass  # whether it was due is for the simulation to say
            case ConstraintDeadEnd() | NonFiniteLogits():
                # The whole round of the failure is lost, and with it the drafts before it, even one that would have
                # completed a stop string.
                if self.transcript.error is None:
                    assert self.transcript.session.finish_reason is FinishReason.STOP_STRING
                else:
                    assert self.transcript.error is type(error)
                assert 0 <= len(self.transcript.tokens) - num_tokens <= self.num_drafts
            case _:
                raise AssertionError(f"nobody asked for {error!r}")

    @property
    def has_broken(self) -> bool:
        """Whether the request ended with an error that nobody raises on purpose; its matcher is not asked again."""
        error = self.request.delivery._error
        return error is not None and not isinstance(error, InfernixError | ConsumerError)

    @property
    def is_untouchable(self) -> bool:
        """Whether nothing may ask its matcher: it is paused, or its history is run again."""
        return self.request.state in (RequestState.PAUSED, RequestState.REPLAY)
