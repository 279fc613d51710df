"""Requests of every kind, answered with drafts that are made up and without any: the answers are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from random import Random
from typing import Any

from infernix.engine.core import CoreLimits, EngineCore
from infernix.engine.preparation import Preparation
from infernix.engine.prompt import prepare_prompt
from infernix.engine.request import PreparedRequest, Request
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.program.program import Program
from infernix.results import GenerationResult
from infernix.tools import ToolChoice, ToolDefinition, ToolMode
from support.chat_engine import strict_tool
from support.chat_output import FORCED_END, XML
from tests.engine.simulation.memory_model import MemoryModel
from tests.engine.simulation.requests import Wanted
from tests.engine.simulation.scripted_drafts import ScriptedDrafts
from tests.engine.simulation.world import COPYING, HOLE, NUM_TOKENS, VOCABULARY, loaded_model, preparation, script

MAX_DRAFTS = 8
_MAX_CONTEXT = 240
_NUM_LANES = 4

_SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "n": {"type": "array", "items": {"type": "integer"}}},
    "required": ["ok"],
    "additionalProperties": False,
}
_TOOLS = (
    strict_tool("sub", ("a", "b"), a={"type": "integer"}, b={"type": "integer"}),
    ToolDefinition.of("now", {"type": "object", "properties": {}}),
)


@dataclass(frozen=True)
class Kind:
    """What is asked for but the sampling."""

    name: str
    constraint: OutputConstraint | None = None
    tool_choice: ToolChoice | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False


KINDS = (
    Kind("grammar", OutputConstraint.grammar('root ::= item ("," item)*\nitem ::= [ab]+ | "(" item ")"')),
    Kind("json object", OutputConstraint.json_object()),
    Kind("json schema", OutputConstraint.json_schema(_SCHEMA)),
    Kind("regex", OutputConstraint.regex("[a-c]+(,[a-c]+){0,6}")),
    Kind("choice", OutputConstraint.choice(["yes", "no", "yes, but", "abc", ""])),
    # Some of its words cannot be said to their end.
    Kind("dead ends", OutputConstraint.choice(["ab" + HOLE, "ax", "b", "ye" + HOLE, "yes"])),
    Kind("tools", tool_choice=ToolChoice(ToolMode.AUTO)),
    Kind("required tools", tool_choice=ToolChoice(ToolMode.REQUIRED, parallel=False)),
    Kind("named tool", tool_choice=ToolChoice.named("sub")),
    Kind("tools or schema", OutputConstraint.json_schema(_SCHEMA), ToolChoice(ToolMode.AUTO)),
    Kind("free"),
    Kind("stop strings", stop=("ok", "a", "\n\n")),
    Kind("without end", ignore_eos=True),
)
SAMPLINGS = {
    "greedy": SamplingOptions.greedy(),
    "greedy with penalties": SamplingOptions(temperature=0.0, presence_penalty=1.5, frequency_penalty=0.5),
    "drawn": SamplingOptions(temperature=1.0, seed=11),
    "drawn with cuts and penalties": SamplingOptions(
        temperature=0.7, seed=12, top_k=20, top_p=0.9, min_p=0.01, presence_penalty=0.7, frequency_penalty=0.2
    ),
}


def wanted_of(kind: Kind, sampling: SamplingOptions, rng: Random) -> Wanted:
    """A request of this kind; thinking, budgets and what is said before are by chance."""
    thinking = rng.random() < 0.5
    thinking_budget = rng.choice((None, 0, 1, 3, 6)) if thinking else None
    max_new_tokens = rng.choice((1, 2, 7, 20, 40))
    if thinking_budget is not None:
        max_new_tokens = thinking_budget + len(FORCED_END) + rng.choice((1, 4, 20))
    text = rng.choice(("Hi", f'{chr(COPYING)}{{"ok": true, "n": [1, 22]}}', "abba,abba", "What is 12 - 3?"))
    tools = () if kind.tool_choice is None else _TOOLS
    options = RequestOptions(
        max_new_tokens,
        kind.constraint,
        sampling if sampling.seed is None else replace(sampling, seed=rng.randrange(2**64)),
        thinking_budget=thinking_budget,
        stop=kind.stop,
        ignore_eos=kind.ignore_eos,
        **({} if kind.tool_choice is None else {"tool_choice": kind.tool_choice}),
    )
    return Wanted(ChatPrompt([{"role": "user", "content": text}], tools, thinking), options)


Answer = GenerationResult | BaseException


class Bench:
    """An engine with four lanes and memory for all; `drafts` are its scripted ones, if it has any, and `requests` those
    that it answered.
    """

    def __init__(
        self,
        drafts_of: Callable[[Request], Sequence[int]] | None = None,
        *,
        seed: int = 0,
        is_recurrent: bool = False,
        on_device: bool = False,
    ) -> None:
        model = MemoryModel(script, NUM_TOKENS, _MAX_CONTEXT, is_recurrent=is_recurrent)
        program = Program(
            model,
            VOCABULARY,
            max_rows=_NUM_LANES,
            num_cache_positions=10_000,
            num_sequences=64,
            num_draft_tokens=MAX_DRAFTS,
            samples_on_device=on_device,
        )
        self.requests: list[Request] = []
        self.drafts: Any = None
        if drafts_of is not None:
            self.drafts = ScriptedDrafts(program, Random(seed), MAX_DRAFTS, drafts_of)
        limits = CoreLimits(_NUM_LANES, 1000, 1e9, max_cached_prefixes=32)
        self.core = EngineCore(program, limits, clock=lambda: 0.0, drafting=self.drafts)

    def answers(self, wanted: Sequence[Wanted]) -> list[Answer]:
        """What each request ends with, in their order."""
        self.requests = [self.core.submit(partial(_prepared, each)) for each in wanted]
        while self.core.cycle() or not self.core.is_idle:
            pass
        answers: list[Answer] = []
        for request in self.requests:
            self.core.release(request)
            try:
                answers.append(request.delivery.result())
            except Exception as error:
                answers.append(error)
        return answers


def check_identity(sampling: str, seed: int, num_each: int, **options: bool) -> ScriptedDrafts:
    """`num_each` requests of each kind are answered with scripted drafts as without them; the drafts there were."""
    rng = Random(f"{sampling} {seed}")
    wanted = [wanted_of(kind, SAMPLINGS[sampling], rng) for kind in KINDS for _ in range(num_each)]
    rng.shuffle(wanted)
    undrafted = Bench(**options)
    plain = undrafted.answers(wanted)
    said = [request.session.token_ids for request in undrafted.requests]
    bench = Bench(lambda request: said[bench.requests.index(request)], seed=seed, **options)
    drafted = bench.answers(wanted)
    for each, without, with_drafts in zip(wanted, plain, drafted, strict=True):
        check_same(each, without, with_drafts)
    statistics = bench.core.statistics()
    assert statistics.counters.num_failed_units == statistics.counters.num_failed_drafts == 0
    assert statistics.num_running == statistics.num_outstanding == 0
    drafts: ScriptedDrafts = bench.drafts
    return drafts


def check_same(wanted: Wanted, without: Answer, with_drafts: Answer) -> None:
    """The answers are the same but for what they cost."""
    if not isinstance(without, GenerationResult):
        assert type(with_drafts) is type(without), wanted
        return
    assert isinstance(with_drafts, GenerationResult), (wanted, with_drafts)
    for name in (
        *("token_ids", "text", "reasoning", "tool_calls", "tool_diagnostics", "finish_reason"),
        *("matched_stop_string", "thinking", "num_prompt_tokens", "num_generated_tokens"),
    ):
        assert getattr(with_drafts, name) == getattr(without, name), (name, wanted)
    records = [answer.constraint for answer in (with_drafts, without)]
    assert (records[0] is None) == (records[1] is None)
    ends = [None if record is None else (record.branch, record.terminated, record.complete) for record in records]
    assert ends[0] == ends[1], wanted
    check_counts(with_drafts)


def check_counts(result: GenerationResult) -> None:
    """A round brings one token and the drafts that are committed with it. The last one may end within its drafts, and
    so does one whose draft would end the output if that was not ignored.
    """
    counts = result.speculation
    assert counts is not None
    assert counts.num_rounds + counts.num_fallback_rounds == result.scheduling.num_decode_rounds
    assert sum(counts.accepted_per_position) == counts.num_accepted <= counts.num_drafted
    thinking = result.thinking
    num_forced = 0 if thinking is None else thinking.num_injected_tokens
    # The first token comes with the prompt, unless the thinking is over before it has begun.
    num_first = int(thinking is None or not thinking.was_forced or thinking.num_model_tokens > 0)
    num_in_rounds = result.num_generated_tokens - num_forced - num_first
    ends_within = counts.num_accepted + result.scheduling.num_decode_rounds - num_in_rounds
    num_ends = sum(token in VOCABULARY.eos_ids for token in result.token_ids)
    assert 0 <= ends_within <= 1 + num_ends, "drafts that were not committed were counted"


@cache
def _preparation() -> Preparation:
    return preparation(XML, _MAX_CONTEXT)


def _prepared(wanted: Wanted) -> PreparedRequest:
    return _preparation().request(prepare_prompt(wanted.prompt, loaded_model(XML)), wanted.options)
