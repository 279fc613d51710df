"""A fixed set of small requests with their answers, for engines that get thousands of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from random import Random

from infernix.engine.preparation import Preparation
from infernix.engine.prompt import prepare_prompt
from infernix.engine.request import PreparedRequest
from infernix.errors import ConstraintDeadEnd, InfernixError, NonFiniteLogits, RequestError
from infernix.frontend.prompt import PreparedPrompt
from infernix.results import FinishReason, GenerationResult
from support.chat_output import XML
from tests.engine.simulation.alone import Transcript, run_alone
from tests.engine.simulation.requests import Wanted, random_request
from tests.engine.simulation.world import loaded_model, preparation

MAX_CONTEXT = 200
_NUM_REQUESTS = 32


@dataclass(frozen=True)
class Entry:
    """A request, and its answer when it runs alone."""

    wanted: Wanted
    prompt: PreparedPrompt
    transcript: Transcript

    def prepare(self) -> PreparedRequest:
        """The request anew."""
        return preparation_for_all().request(self.prompt, self.wanted.options)

    def check(self, result: GenerationResult) -> None:
        """A result is the answer, or, where it was cancelled, a beginning of it."""
        alone = self.transcript.session
        if result.finish_reason is FinishReason.CANCELLED:
            assert result.token_ids == alone.token_ids[: len(result.token_ids)]
            return
        assert self.transcript.error is None
        assert (result.token_ids, result.text, result.reasoning) == (alone.token_ids, alone.text, alone.reasoning)
        assert (result.finish_reason, result.tool_calls) == (alone.finish_reason, alone.tool_calls)

    def check_error(self, error: InfernixError) -> None:
        """An error is the one that the request has alone."""
        assert isinstance(error, ConstraintDeadEnd | NonFiniteLogits)
        assert type(error) is self.transcript.error


@cache
def preparation_for_all() -> Preparation:
    """Prepares the requests."""
    return preparation(XML, MAX_CONTEXT)


@cache
def catalogue() -> tuple[Entry, ...]:
    """The requests; every kind is among them."""
    rng = Random(37)
    entries: list[Entry] = []
    texts: list[tuple[int, ...]] = []
    while len(entries) < _NUM_REQUESTS:
        wanted = random_request(rng, texts, is_growing=len(entries) % 4 == 0)
        prompt = prepare_prompt(wanted.prompt, loaded_model(XML))
        try:
            transcript = run_alone(partial(preparation_for_all().request, prompt, wanted.options))
        except RequestError:
            continue
        entries.append(Entry(wanted, prompt, transcript))
        texts.append((*transcript.prompt, *transcript.tokens))
    return tuple(entries)
