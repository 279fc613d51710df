"""An engine core on a scripted model, turned by hand, with a clock that moves by hand: no threads, no waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from infernix.engine.core import EngineCore
from infernix.engine.limits import CoreLimits
from infernix.engine.request import PreparedRequest, Request
from infernix.engine.states import RequestState
from infernix.frontend.budget import OutputBudget
from infernix.frontend.constraint import ConstraintState
from infernix.frontend.framing import Framing
from infernix.frontend.opening import OutputModel, open_session
from infernix.frontend.phases import StartingPhase
from infernix.options import OutputConstraint, RequestOptions, SamplingParameters
from infernix.program.program import Program
from infernix.results import CacheAccess, GenerationEvent, GenerationResult, OutputDelta
from support.scripted_matcher import ScriptedMatcher
from support.scripted_model import Script, ScriptedModel
from support.vocabularies import nasty_vocabulary

VOCABULARY = nasty_vocabulary()
GREEDY = SamplingParameters(temperature=0.0)


class DrivenCore:
    """`core` with its `program`, `model` and `clock`; `limits` are those of CoreLimits."""

    def __init__(
        self,
        script: Script,
        *,
        cache_tokens: int = 1000,
        prefill_chunk_tokens: int = 4,
        max_context: int = 1000,
        is_recurrent: bool = False,
        log: Any = None,
        program_class: type[Program] = Program,
        **limits: Any,
    ) -> None:
        self.model = ScriptedModel(script, VOCABULARY.num_tokens, max_context, is_recurrent=is_recurrent)
        chosen = CoreLimits(**{"max_concurrency": 2, **limits})
        self.program = program_class(
            self.model,
            VOCABULARY,
            prefill_chunk_tokens=prefill_chunk_tokens,
            max_rows=chosen.max_concurrency,
            num_cache_positions=cache_tokens,
        )
        self.now = 100.0
        self.core = EngineCore(self.program, chosen, clock=lambda: self.now, log=log)

    @property
    def num_held_positions(self) -> int:
        """Positions of the pool that anybody holds."""
        return self.model.pools[0].num_held

    def submit(
        self,
        prompt: Sequence[int],
        max_new_tokens: int = 10,
        *,
        language: Sequence[bytes] | None = None,
        sampling: SamplingParameters = GREEDY,
        deadline: float | None = None,
        during: Callable[[], None] = lambda: None,
        **options: Any,
    ) -> Request:
        """A request; `language` is all that a constrained one may say. `during` is done while it is prepared."""

        def prepare() -> PreparedRequest:
            during()
            return prepared(prompt, max_new_tokens, self.model.max_context, language, sampling, **options)

        return self.core.submit(prepare, deadline=deadline)

    def turn(self, num_cycles: int = 1) -> None:
        """Some cycles."""
        for _ in range(num_cycles):
            self.core.cycle()

    def run(self, *requests: Request, max_cycles: int = 2000) -> None:
        """Cycles until the requests are done."""
        for _ in range(max_cycles):
            if all(request.delivery.is_done for request in requests):
                return
            self.core.cycle()
        raise AssertionError(f"not done: {[request.state for request in requests]}")

    def finish(self, request: Request) -> GenerationResult:
        """Runs a request to its end and collects it."""
        self.run(request)
        return self.collect(request)

    def collect(self, request: Request) -> GenerationResult:
        """The result of a request that is done; raises its error."""
        self.core.release(request)
        return request.delivery.result()

    def states(self, *requests: Request) -> list[RequestState]:
        """Where the requests are."""
        return [request.state for request in requests]


def prepared(
    prompt: Sequence[int],
    max_new_tokens: int,
    max_context: int,
    language: Sequence[bytes] | None = None,
    sampling: SamplingParameters = GREEDY,
    **options: Any,
) -> PreparedRequest:
    """A prepared request over the vocabulary."""
    budget = OutputBudget.of(max_new_tokens, len(prompt), max_context)
    constraint = None
    if language is not None:
        constraint = ConstraintState(ScriptedMatcher(VOCABULARY, language), CacheAccess.HIT, prepare_seconds=0.0)
        options["constraint"] = OutputConstraint.choice([text.decode() for text in language])
    session = open_session(
        OutputModel(VOCABULARY, Framing()),
        StartingPhase.RAW,
        budget,
        RequestOptions(max_new_tokens, **options),
        constraint=constraint,
    )
    return PreparedRequest(tuple(prompt), budget, sampling, session)


def text_of(events: Sequence[GenerationEvent]) -> str:
    """The published content."""
    return "".join(event.text for event in events if isinstance(event, OutputDelta))
