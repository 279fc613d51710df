"""A few fixed requests on an engine without a thread, to be disturbed at one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from infernix.engine.core import CoreLimits, EngineCore
from infernix.engine.drafting import Drafting, NgramOptions
from infernix.engine.handle import GenerationHandle
from infernix.engine.prompt import prepare_prompt
from infernix.engine.request import PreparedRequest
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from support.chat_output import FORCED_END, XML
from tests.engine.simulation.alone import Transcript, run_alone
from tests.engine.simulation.clients import Client
from tests.engine.simulation.features import FeatureMemoryModel
from tests.engine.simulation.followed_program import MIN_MATCH
from tests.engine.simulation.invariants import (
    check_contexts,
    check_memory,
    check_places,
    check_sequences,
    check_slots,
)
from tests.engine.simulation.requests import Wanted
from tests.engine.simulation.toy_drafter import Kind, ToyDrafter
from tests.engine.simulation.watching import WatchedProgram
from tests.engine.simulation.world import NUM_TOKENS, VOCABULARY, loaded_model, matcher_of, preparation, script

MAX_CONTEXT = 160
NUM_DRAFTS = 3
_MAX_CYCLES = 1000
_GREEDY = SamplingOptions.greedy()


def chat(text: str, thinking: bool | None = False) -> ChatPrompt:
    """A question."""
    return ChatPrompt([{"role": "user", "content": text}], (), thinking)


# Two constrained, one free, one whose thinking is cut.
WANTED = (
    Wanted(chat("Hi"), RequestOptions(9, OutputConstraint.regex("[a-c]{6}(,[a-c]+)*"), _GREEDY)),
    Wanted(chat("Hi there"), RequestOptions(8, sampling=SamplingOptions(temperature=1.0, seed=5), ignore_eos=True)),
    Wanted(chat("Hi there", True), RequestOptions(3 + len(FORCED_END) + 4, None, _GREEDY, thinking_budget=3)),
    Wanted(chat("And you?"), RequestOptions(12, OutputConstraint.json_object(), SamplingOptions(1.0, seed=7))),
)


@cache
def _preparation() -> Any:
    return preparation(XML, MAX_CONTEXT)


@cache
def _transcript(index: int) -> Transcript:
    return run_alone(partial(_prepared, WANTED[index]))


def _prepared(wanted: Wanted) -> PreparedRequest:
    prompt = prepare_prompt(wanted.prompt, loaded_model(XML))
    request: PreparedRequest = _preparation().request(prompt, wanted.options)
    return request


@dataclass(frozen=True)
class Memory:
    """How much of it there is: `tight` makes requests pause."""

    num_positions: int = 640
    snapshot_bytes: int = 0
    max_cached_prefixes: int = 4


@dataclass(frozen=True)
class DraftSetup:
    """A drafter whose drafts are not drawn; `num_positions` is its memory, None: as much as it is asked for."""

    kind: Kind
    copies: bool = False
    num_positions: int | None = None


TIGHT_SNAPSHOT = Memory(num_positions=96, snapshot_bytes=1 << 20)
TIGHT_REPLAY = Memory(num_positions=96)


class Scenario:
    """`hook` hears every call of the Program; `records` is the request log."""

    def __init__(
        self,
        memory: Memory | None = None,
        hook: Callable[[str, bool], None] = lambda name, is_done: None,
        *,
        chunk_tokens: int = 16,
        on_device: bool = False,
        drafting: Any = None,
        drafts: DraftSetup | None = None,
    ) -> None:
        memory = memory or Memory()
        self.model = FeatureMemoryModel(script, NUM_TOKENS, MAX_CONTEXT, is_recurrent=False)
        self.strike: Callable[[str], None] = lambda place: None
        self.drafter: ToyDrafter | None = None
        self.num_drafts = 0 if drafts is None else NUM_DRAFTS
        if drafts is not None:
            self.drafter = ToyDrafter(
                self.model,
                drafts.kind,
                NUM_DRAFTS,
                num_positions=drafts.num_positions,
                strike=lambda place: self.strike(place),
            )
        program = Program(
            self.model,
            VOCABULARY,
            prefill_chunk_tokens=chunk_tokens,
            max_rows=len(WANTED),
            num_cache_positions=memory.num_positions,
            num_sequences=16,
            samples_on_device=on_device,
            num_draft_tokens=self.num_drafts,
            drafter=self.drafter,
        )
        self.pool: Any = program.pool
        self.hook = hook
        self.unit: set[int] = set()
        watched: Any = _RememberingProgram(program, lambda name, is_done: self.hook(name, is_done), self)
        if drafts is not None:
            ngram = NgramOptions(NUM_DRAFTS if drafts.copies else 0, MIN_MATCH)
            drafting = Drafting(watched, VOCABULARY, ngram, num_neural_drafts=NUM_DRAFTS)
        self.records: list[Mapping[str, Any]] = []
        limits = CoreLimits(
            max_concurrency=len(WANTED),
            max_pending_requests=4,
            pending_timeout_seconds=1e9,
            snapshot_bytes=memory.snapshot_bytes,
            max_cached_prefixes=memory.max_cached_prefixes,
        )
        self._now = 0.0
        self.core = EngineCore(watched, limits, clock=self._clock, log=self, drafting=drafting)
        self.clients: list[Client] = []

    def write(self, record: Mapping[str, Any]) -> None:
        """The request log."""
        self.records.append(record)

    def submit(self, index: int) -> Client:
        """One of the requests."""
        prepare = partial(_prepared, WANTED[index])
        request = self.core.submit(prepare)
        handle = GenerationHandle(self.core.intake, request, self)
        transcript = _transcript(index)
        if self.drafter is not None:
            text = (*transcript.prompt, *transcript.tokens)
            self.drafter.learn(text, len(transcript.prompt), request.prepared.sampling.seed)
        client = Client(prepare, transcript, handle, request, matcher_of(prepare().session), self.num_drafts)
        self.clients.append(client)
        return client

    def submit_all(self) -> None:
        """All of them, in their order."""
        for index in range(len(WANTED)):
            self.submit(index)

    def run(self, *, checks: bool = True) -> None:
        """Cycles until nothing is left to do."""
        for _ in range(_MAX_CYCLES):
            has_run = self.core.cycle()
            if checks:
                self.check()
            if self.core.is_stopped or (not has_run and self.core.is_idle):
                return
        raise AssertionError(f"not done: {[client.request.state for client in self.clients]}")

    def check(self) -> None:
        """All that holds between two cycles."""
        for client in self.clients:
            client.check(looks_at_masks=True)
        check_places(self.core, self.clients, self.core.limits.snapshot_bytes)
        check_slots(self.core, self.clients)
        check_sequences(self.clients)
        check_memory(self.core, self.pool)
        prefixes = [entry.prefix for entry in self.core._prefixes._entries.values()]
        check_contexts(self.clients, prefixes, self.drafter)

    def _clock(self) -> float:
        self._now += 0.001
        return self._now


class _RememberingProgram(WatchedProgram):
    """Notes whose unit it is that begins."""

    def __init__(self, program: Program, hook: Callable[[str, bool], None], scenario: Scenario) -> None:
        super().__init__(program, hook)
        self._scenario = scenario

    def decode_batch(self, sequences: Any, masks: Any, drafts: Any = None) -> Any:
        self._note(sequences)
        return super().__getattr__("decode_batch")(sequences, masks, drafts)

    def prefill_chunk(self, sequence: PhysicalSequence, masks: Any, *, sample: bool = True) -> Any:
        self._note([sequence])
        return super().__getattr__("prefill_chunk")(sequence, masks, sample=sample)

    def replay_chunk(self, sequence: PhysicalSequence) -> Any:
        self._note([sequence])
        return super().__getattr__("replay_chunk")(sequence)

    def append_forced_tokens(self, sequence: PhysicalSequence, tokens: Any) -> Any:
        self._note([sequence])
        return super().__getattr__("append_forced_tokens")(sequence, tokens)

    def _note(self, sequences: Any) -> None:
        self._scenario.unit = {
            client.request.number for client in self._scenario.clients if client.request.sequence in sequences
        }
