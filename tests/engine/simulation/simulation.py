"""A whole life of an engine by seed, without a thread: what callers do falls between cycles and into their middle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from infernix.engine.core import CoreLimits, EngineCore
from infernix.engine.drafting import Drafting, NgramOptions
from infernix.engine.handle import GenerationHandle
from infernix.engine.prompt import Prompt, prepare_prompt
from infernix.engine.request import PreparedRequest, Request
from infernix.errors import CacheCapacityExceeded, EngineClosed, Overloaded, QueueTimeout, RequestError
from infernix.models import cache
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from support.chat_output import XML
from tests.engine.simulation.alone import Alone, Transcript, run_alone
from tests.engine.simulation.clients import Client
from tests.engine.simulation.features import FeatureMemoryModel
from tests.engine.simulation.followed_program import MIN_MATCH, FollowedProgram
from tests.engine.simulation.guesses import Guesses
from tests.engine.simulation.invariants import (
    check_contexts,
    check_memory,
    check_places,
    check_sequences,
    check_slots,
)
from tests.engine.simulation.requests import random_request
from tests.engine.simulation.toy_drafter import Kind, ToyDrafter
from tests.engine.simulation.world import NUM_TOKENS, VOCABULARY, loaded_model, matcher_of, preparation, script

MAX_CYCLES = 4000


class Drafts(Enum):
    """Where drafts come from: whether some are copied, and whether a network makes them."""

    NONE = (False, False, 0)
    GUESSES = (False, False, 1)
    COPIES = (True, False, 0)
    NETWORK = (False, True, 0)
    BOTH = (True, True, 0)

    @property
    def copies(self) -> bool:
        return self.value[0]

    @property
    def is_neural(self) -> bool:
        return self.value[1]


class DraftingError(Exception):
    """What a drafter raises."""


def run_schedule(seed: int) -> Counter[str]:
    """One life of an engine; what it met with, by name. AssertionError where anything is not as it should be."""
    with patch.object(cache, "BLOCK_TOKENS", Random(seed).choice((1, 4, 32))):
        simulation = Simulation(seed)
        simulation.run()
        return simulation.happened


class Simulation:
    """`happened` counts what the schedule met with, by name."""

    def __init__(self, seed: int) -> None:
        rng = self._rng = Random(seed)
        self.happened: Counter[str] = Counter()
        self._now = 0.0
        self._is_in_moment = True  # nothing happens until everything is there
        self._num_to_come = rng.randint(3, 10)
        self._clients: list[Client] = []
        self._texts: list[tuple[int, ...]] = []
        self._prompts: list[Prompt] = []
        self._seen: set[tuple[str, int]] = set()
        self._followed: dict[int, Alone] = {}
        self._bypasses: Counter[int] = Counter()
        self._is_stopping = False
        self._never_stops = rng.random() < 0.85
        self._eventfulness = rng.choice((0.0, 0.01, 0.05))
        self._failure_rate = rng.choice((0.0, 0.0, 0.02, 0.1))
        self._is_growing = rng.random() < 0.5
        self._drafting = rng.choice((*Drafts, Drafts.NETWORK, Drafts.BOTH))
        # A text is copied where it is long, and where the model repeats itself.
        self._is_copying = self._drafting.copies
        self._is_growing |= self._is_copying and rng.random() < 0.7
        num_positions = rng.choice((64, 96, 120) if self._is_growing else (90, 120, 160, 300, 1000))
        num_positions = max(num_positions, rng.choice((100, 120, 180))) if self._is_copying else num_positions
        # Where a request may be larger than the memory, it may come to fail alone.
        self._may_be_too_large = rng.random() < 0.1
        self._max_context = 200 if self._may_be_too_large else min(200, num_positions)
        self._num_drafts = 0 if self._drafting is Drafts.NONE else rng.choice((1, 3, 4, 7))
        limits = CoreLimits(
            max_concurrency=rng.randint(3, 6) if self._is_growing else rng.randint(1, 4),
            max_pending_requests=rng.randint(0, 8),
            pending_timeout_seconds=rng.choice((2.0, 20.0, 1e6)),
            snapshot_bytes=rng.choice((0, 0, 600, 1500, 100_000)),
            max_cached_prefixes=rng.choice((0, 1, 4, 8)),
        )
        model = FeatureMemoryModel(script, NUM_TOKENS, self._max_context, is_recurrent=rng.random() < 0.3)
        self._drafter: ToyDrafter | None = None
        if self._drafting.is_neural:
            self._drafter = ToyDrafter(
                model,
                rng.choice((*Kind, Kind.DRAWN_BLOCK)),
                rng.randint(1, self._num_drafts),
                num_positions=rng.choice((None, None, None, num_positions, num_positions // 2, 32)),
                strike=self._strike,
            )
        program = Program(
            model,
            VOCABULARY,
            prefill_chunk_tokens=rng.choice((1, 5, 16, 64)),
            max_rows=limits.max_concurrency,
            num_cache_positions=num_positions,
            num_sequences=limits.max_concurrency + limits.max_cached_prefixes + 1,
            num_draft_tokens=self._num_drafts,
            samples_on_device=rng.random() < 0.2,
            drafter=self._drafter,
        )
        self._pool: Any = program.pool
        watched: Any = FollowedProgram(program, self._told, self._alone_of, self.happened, self._drafter)
        self._loaded = loaded_model(XML, model)
        self._preparation = preparation(XML, self._max_context)
        self._records: list[Mapping[str, Any]] = []
        self._guesses = Guesses(program, rng, self._num_drafts, self._transcript_of)
        drafting: Any = self._guesses if self._drafting is Drafts.GUESSES else None
        if self._is_copying or self._drafter is not None:
            drafting = Drafting(
                watched,
                VOCABULARY,
                NgramOptions(self._num_drafts if self._is_copying else 0, min_match=MIN_MATCH),
                num_neural_drafts=0 if self._drafter is None else self._drafter.num_drafts,
            )
        self.core = EngineCore(watched, limits, clock=self._clock, log=self, drafting=drafting)
        self._is_in_moment = False

    def run(self) -> None:
        """To the end of all requests, and of the engine. AssertionError where anything is not as it should be."""
        for _ in range(MAX_CYCLES):
            self._act()
            self._cycle()
            if not self._num_to_come and all(
                client.is_released and client.request.is_finished for client in self._clients
            ):
                break
        else:
            states = [(client.request.number, client.request.state.value) for client in self._clients]
            raise AssertionError(f"not done after {MAX_CYCLES} cycles: {states}")
        self._check_end()

    def write(self, record: Mapping[str, Any]) -> None:
        """The request log of the engine."""
        self._records.append(record)
        self.happened[record.get("change", record["event"])] += 1
        if record.get("reused_prompt_tokens") and record["event"] == "request_done":
            is_exact = record["reused_prompt_tokens"] == record["prompt_tokens"]
            self.happened["reused exactly" if is_exact else "reused in part"] += 1
        if record.get("change") == "admitted":
            self._count_bypasses(record["request"])
        if record.get("change") == "paused":
            others = [request for request in self.core._residency.residents if not request.is_protected]
            assert all(other.number < record["request"] for other in others), "it was not the youngest that paused"
        self._moment()

    def _count_bypasses(self, number: int) -> None:
        """Whoever stands before a request that gets a place is bypassed, and no more often than is allowed."""
        line = [request.number for request in self.core._waiting]
        before = [*line[: line.index(number)], *(request.number for request in self.core._residency.paused[:1])]
        self._bypasses.update(before)
        assert all(self._bypasses[other] <= self.core.limits.max_concurrency for other in before)
        self.happened["bypassed"] += len(before)

    def _cycle(self) -> None:
        before = {
            client: (client.request.is_cancelled, client.session.num_tokens, client.is_untouchable, self._calls(client))
            for client in self._clients
        }
        has_run = self.core.cycle()
        self._is_in_moment = True
        for client in self._clients:
            was_cancelled, num_tokens, was_untouchable, num_calls = before.get(client, (False, 0, False, 0))
            if was_cancelled and client.session.num_tokens == num_tokens:
                assert client.request.is_finished, "a cancelled request goes on"
            assert not was_cancelled or client.session.num_tokens == num_tokens, "a cancelled request got a token"
            if was_untouchable and client.is_untouchable:
                assert self._calls(client) == num_calls, "a replay has asked the matcher"
            client.check(looks_at_masks=self._rng.random() < 0.3)
            if client.request.is_finished:
                client.check_end()
        check_places(self.core, self._clients, self.core.limits.snapshot_bytes)
        check_slots(self.core, self._clients)
        check_sequences(self._clients)
        check_memory(self.core, self._pool)
        prefixes = [entry.prefix for entry in self.core._prefixes._entries.values()]
        check_contexts(self._clients, prefixes, self._drafter)
        self._count_contexts()
        statistics = self.core.statistics()
        assert statistics.num_free_positions == self._pool.num_free_positions
        if not has_run and self.core.is_idle and self.core.intake._messages.empty():
            assert all(client.request.is_finished for client in self._clients), "the worker would sleep for ever"
        self._is_in_moment = False

    def _count_contexts(self) -> None:
        """What became of the drafter's memory, by the number of requests that it happened to."""
        if self._drafter is None:
            return
        for request in (client.request for client in self._clients):
            if request.sequence is None:
                continue
            counts = request.counts
            has_context = request.sequence.drafting is not None
            self._seen |= {
                (name, request.number)
                for name, is_so in (
                    ("contexts lost", not has_context),
                    ("contexts after a snapshot", has_context and counts.num_snapshot_restores > 0),
                    ("contexts after a replay", has_context and counts.num_replay_restores > 0),
                    ("contexts behind a prefix", has_context and counts.num_reused_prompt_tokens > 0),
                    ("contexts behind forced tokens", has_context and counts.num_control_units > 0),
                )
                if is_so
            }

    def _check_end(self) -> None:
        core = self.core
        assert core.intake.num_outstanding == 0
        counters = core.statistics().counters
        assert sum(counters.requests.values()) == len(self._clients)
        # What cannot be read is told by the next round that asks for drafts, if one does.
        num_strikes, num_unread = self.happened["strikes"], self.happened["unread"]
        assert num_strikes <= counters.num_failed_drafts <= num_strikes + num_unread
        assert counters.num_failed_prefixes <= num_unread
        self.happened["guessed drafts"] += self._guesses.num_drafts
        self.happened["accepted drafts"] += counters.num_accepted_drafts
        self.happened.update(name for name, _ in self._seen)
        self.happened["decode rows"] += counters.num_decode_rows
        if self._is_copying:
            self.happened["rows that may be copied to"] += counters.num_decode_rows
        if self._drafter is not None:
            self.happened["rows that a network may draft for"] += counters.num_decode_rows
        assert counters.num_failed_units == counters.num_failed_observations == 0
        for event in ("request_start", "request_done", "request_error"):
            for number, times in Counter(r["request"] for r in self._records if r["event"] == event).items():
                assert times == 1, f"{event} {times} times for request {number}"
        num_ends = sum(record["event"] in ("request_done", "request_error") for record in self._records)
        assert num_ends == len(self._clients)
        core.stop()
        core.cycle()
        assert core.is_stopped
        self._pool.check_held_by([])
        check_contexts((), (), self._drafter)
        for client in self._clients:
            error = client.request.delivery._error
            if isinstance(error, EngineClosed):
                assert self._is_stopping
            if isinstance(error, CacheCapacityExceeded):
                assert self._may_be_too_large
                budget = client.request.prepared.budget.num_tokens
                assert len(client.transcript.prompt) + budget - 1 + self._num_drafts > self._pool.num_positions
                self.happened["too_large"] += 1
            self.happened["dead_end" if client.transcript.error and error else "ended"] += 1

    # What callers do

    def _act(self) -> None:
        rng = self._rng
        while self._num_to_come and rng.random() < (0.8 if self._is_growing else 0.3):
            self._submit()
        for client in self._clients:
            if client.is_released:
                continue
            if client.request.is_finished and rng.random() < 0.5:
                client.check(looks_at_masks=True)
                client.check_end()
                client.collect()
            elif rng.random() < 0.3:
                client.take()
        if rng.random() < 3 * self._eventfulness:
            self._event()

    def _moment(self) -> None:
        """Something may happen here, in the middle of the worker's work."""
        if not self._is_in_moment and self._rng.random() < self._eventfulness / 4:
            self._is_in_moment = True
            try:
                self._event()
            finally:
                self._is_in_moment = False

    def _event(self) -> None:
        rng = self._rng
        going_on = [client for client in self._clients if not client.is_released]
        client = rng.choice(going_on) if going_on else None
        match rng.randrange(8):
            case 0 | 1:
                if self._num_to_come:
                    self._submit()
            case 2 | 3 if client is not None:
                client.handle.cancel()
                self.happened["cancel"] += 1
            case 4 if client is not None:
                client.close()
                self.happened["close"] += 1
            case 5 if client is not None:
                client.take()
            case 6:
                self._now += rng.choice((0.5, 5.0))
            case 7 if not self._never_stops and rng.random() < 0.3:
                self.core.stop()
                self._is_stopping = True
                self.happened["stop"] += 1

    def _submit(self) -> None:
        rng = self._rng
        self._num_to_come -= 1
        wanted = random_request(rng, self._texts, is_growing=self._is_growing, is_copied=self._is_copying)
        if self._prompts and rng.random() < 0.25:
            wanted = replace(wanted, prompt=rng.choice(self._prompts))
        self._prompts.append(wanted.prompt)
        prompt = prepare_prompt(wanted.prompt, self._loaded)

        def prepare() -> PreparedRequest:
            return replace(self._preparation.request(prompt, wanted.options), prompt_seconds=0.0, prepare_seconds=0.0)

        was_in_moment, self._is_in_moment = self._is_in_moment, True
        deadline = rng.choice((None, None, self._now + rng.choice((-1.0, 0.02, 1.0, 50.0))))
        try:
            transcript = run_alone(prepare)
        except RequestError as error:
            self._submit_in_vain(prepare, error)
            return
        finally:
            self._is_in_moment = was_in_moment
        num_outstanding = self.core.intake.num_outstanding
        try:
            request = self.core.submit(prepare, deadline=deadline)
        except (Overloaded, QueueTimeout, EngineClosed) as error:
            self.happened[type(error).__name__] += 1
            if isinstance(error, Overloaded) and not self._eventfulness:
                assert num_outstanding == self.core.intake._slots.max_outstanding
            if isinstance(error, EngineClosed):
                assert self._is_stopping
            return
        finally:
            self._is_in_moment = was_in_moment
        self._texts.append((*transcript.prompt, *transcript.tokens))
        seed = request.prepared.sampling.seed
        if self._drafter is not None:
            self._drafter.learn(self._texts[-1], len(transcript.prompt), seed)
            if self._drafter.kind.is_drawn and request.prepared.sampling.temperature > 0.0:
                # Its answer depends on how many drafts its rounds have.
                self._followed[request.number] = Alone(prepare)
                transcript = self._followed[request.number].transcript
                self.happened["followed"] += 1
        handle = GenerationHandle(self.core.intake, request, self)
        client = Client(prepare, transcript, handle, request, matcher_of(prepare().session), self._num_drafts)
        self._clients.append(client)
        match rng.randrange(8):
            case 0:
                client.subscribe(rng.randint(2, 8))
            case 1:
                client.subscribe(None)

    def _submit_in_vain(self, prepare: Any, wanted: RequestError) -> None:
        num_outstanding = self.core.intake.num_outstanding
        with pytest.raises((RequestError, Overloaded, EngineClosed)) as refusal:
            self.core.submit(prepare)
        assert not isinstance(refusal.value, RequestError) or str(refusal.value) == str(wanted)
        assert self.core.intake.num_outstanding == num_outstanding
        self.happened["refused"] += 1

    # What the engine asks for

    def _clock(self) -> float:
        self._now += 0.001
        self._moment()
        return self._now

    def _told(self, name: str, is_done: bool) -> None:
        self.happened[name] += is_done
        self._moment()

    def _transcript_of(self, request: Request) -> Transcript:
        return next(client.transcript for client in self._clients if client.request is request)

    def _alone_of(self, sequence: PhysicalSequence) -> Alone | None:
        return next(
            (self._followed.get(c.request.number) for c in self._clients if c.request.sequence is sequence), None
        )

    def _strike(self, place: str) -> None:
        """Drafting fails now and then, at any of its places."""
        if self._rng.random() < self._failure_rate:
            self.happened["unread" if place == "read" else "strikes"] += 1
            raise DraftingError(place)

    @staticmethod
    def _calls(client: Client) -> int:
        matcher = matcher_of(client.session)
        return 0 if matcher is None else matcher.num_calls
