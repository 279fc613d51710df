"""Every option of a request with every way of drafting: none is dropped on the way (omlx#2399).

Each round of each request is held against the definition of a round under the request's own options, whatever its
drafts are and whether they were drawn; and an option that is asked for makes another answer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from infernix.engine.core import CoreLimits, EngineCore
from infernix.engine.drafting import Drafting, NgramOptions
from infernix.engine.prompt import prepare_prompt
from infernix.engine.request import PreparedRequest, Request
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from infernix.results import GenerationResult
from infernix.tools import ToolChoice, ToolMode
from support.chat_engine import strict_tool
from support.chat_output import XML
from tests.engine.simulation.alone import Alone, run_alone
from tests.engine.simulation.features import FeatureMemoryModel
from tests.engine.simulation.followed_program import MIN_MATCH, FollowedProgram
from tests.engine.simulation.requests import Wanted
from tests.engine.simulation.toy_drafter import Kind, ToyDrafter
from tests.engine.simulation.world import COPYING, NUM_TOKENS, VOCABULARY, loaded_model, preparation, script

NUM_DRAFTS = 4
MAX_CONTEXT = 240
SUB = strict_tool("sub", ("a", "b"), a={"type": "integer"}, b={"type": "integer"})
PREPARATION = preparation(XML, MAX_CONTEXT)


@dataclass(frozen=True)
class Backend:
    """`kind` of the network that drafts, if one does."""

    kind: Kind | None = None
    copies: bool = False


BACKENDS = {
    "none": Backend(),
    "copies": Backend(copies=True),
    "predictor": Backend(Kind.PREDICTOR),
    "block": Backend(Kind.BLOCK),
    "drawn block": Backend(Kind.DRAWN_BLOCK),
    "drawn block and copies": Backend(Kind.DRAWN_BLOCK, copies=True),
}


def wanted(
    sampling: SamplingOptions | None = None, thinking: bool = False, limit: int = 40, seed: int = 3, **options: Any
) -> Wanted:
    """The request that all others differ from in one option."""
    tools = (SUB,) if "tool_choice" in options else ()
    prompt = ChatPrompt([{"role": "user", "content": f"{chr(COPYING)}abba, cab; abba, cab."}], tools, thinking)
    return Wanted(prompt, RequestOptions(limit, sampling=sampling or SamplingOptions(1.0, seed=seed), **options))


# The answer of this seed ends by itself.
_ENDING = 22
# What the answer with an option is compared with, where that is not the first.
OTHERS = {"ignore eos": wanted(seed=_ENDING), "thinking budget": wanted(thinking=True)}
PLAIN = wanted()
OPTIONS = {
    "constraint": wanted(constraint=OutputConstraint.regex("[a-c]+((, |; )[a-c]+)*")),
    "schema": wanted(constraint=OutputConstraint.json_schema({"type": "object", "additionalProperties": False})),
    "tool choice": wanted(tool_choice=ToolChoice(ToolMode.REQUIRED)),
    "output limit": wanted(limit=5),
    "stop": wanted(stop=("n", "\n\n")),
    "ignore eos": wanted(seed=_ENDING, ignore_eos=True),
    "temperature": wanted(SamplingOptions(temperature=2.0, seed=3)),
    "greedy": wanted(SamplingOptions.greedy()),
    "seed": wanted(seed=4),
    "top k": wanted(SamplingOptions(1.0, seed=3, top_k=1)),
    "top p": wanted(SamplingOptions(1.0, seed=3, top_p=0.1)),
    "min p": wanted(SamplingOptions(1.0, seed=3, min_p=0.9)),
    "presence penalty": wanted(SamplingOptions(1.0, seed=3, presence_penalty=2.0)),
    "frequency penalty": wanted(SamplingOptions(1.0, seed=3, frequency_penalty=2.0)),
    "thinking": wanted(thinking=True),
    "thinking budget": wanted(thinking=True, thinking_budget=4),
}


def prepared(each: Wanted) -> PreparedRequest:
    return PREPARATION.request(prepare_prompt(each.prompt, loaded_model(XML)), each.options)


def followed_answers(backend: Backend, all_wanted: list[Wanted]) -> tuple[list[GenerationResult], Counter[str]]:
    """The results of all together, every round of them checked; what happened, by name."""
    model = FeatureMemoryModel(script, NUM_TOKENS, MAX_CONTEXT, is_recurrent=False)
    drafter = None if backend.kind is None else ToyDrafter(model, backend.kind, NUM_DRAFTS)
    program = Program(
        model, VOCABULARY, max_rows=4, num_cache_positions=4000, num_draft_tokens=NUM_DRAFTS, drafter=drafter
    )
    followed: dict[Request, Alone] = {}
    happened: Counter[str] = Counter()

    def alone_of(sequence: PhysicalSequence) -> Alone:
        return next(alone for request, alone in followed.items() if request.sequence is sequence)

    watched: Any = FollowedProgram(program, lambda name, is_done: None, alone_of, happened, drafter)
    drafting = None
    if backend.copies or drafter is not None:
        ngram = NgramOptions(NUM_DRAFTS if backend.copies else 0, MIN_MATCH)
        drafting = Drafting(watched, VOCABULARY, ngram, num_neural_drafts=0 if drafter is None else NUM_DRAFTS)
    core = EngineCore(watched, CoreLimits(4, 100, 1e9), clock=lambda: 0.0, drafting=drafting)
    for each in all_wanted:
        prepare = partial(prepared, each)
        followed[core.submit(prepare)] = Alone(prepare)
        if drafter is not None:
            text = run_alone(prepare)
            drafter.learn((*text.prompt, *text.tokens), len(text.prompt), prepare().sampling.seed)
    while core.cycle() or not core.is_idle:
        pass
    results = [request.delivery.result() for request in followed]
    for result, alone in zip(results, followed.values(), strict=True):
        session = alone.transcript.session
        assert (result.token_ids, result.text, result.reasoning) == (session.token_ids, session.text, session.reasoning)
        assert (result.tool_calls, result.finish_reason) == (session.tool_calls, session.finish_reason)
        assert (result.thinking, result.matched_stop_string) == (
            session.thinking_statistics,
            session.matched_stop_string,
        )
    return results, happened


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_option_counts_whatever_drafts(backend: str) -> None:
    chosen = BACKENDS[backend]
    results, happened = followed_answers(chosen, [PLAIN, *OTHERS.values(), *OPTIONS.values()])
    others = dict(zip(OTHERS, results[1:], strict=False))
    for name, each, result in zip(OPTIONS, OPTIONS.values(), results[1 + len(others) :], strict=True):
        other = others.get(name, results[0])
        if chosen.kind is not Kind.DRAWN_BLOCK:  # the text of a seed depends on drafts that are drawn
            assert (result.token_ids, result.finish_reason) != (other.token_ids, other.finish_reason), name
            assert result.token_ids == run_alone(partial(prepared, each)).tokens, name
    assert (happened["rows with accepted copy drafts"] > 0) == chosen.copies
    assert (happened["rows with accepted network drafts"] > 0) == (chosen.kind is not None)
    assert (happened["rows with drawn drafts"] > 0) == (chosen.kind is Kind.DRAWN_BLOCK)
