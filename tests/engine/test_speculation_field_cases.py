"""Cases from the field with drafts: each has a model that wants what went wrong elsewhere, drafts that propose it, or
both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from infernix.errors import ConstraintDeadEnd
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import FinishReason, GenerationResult
from infernix.tools import ToolChoice, ToolDefinition, ToolMode
from support.chat_engine import strict_tool
from support.chat_output import (
    EOS,
    FORCED_END,
    THINK_CLOSE,
    THINK_OPEN,
    TOOL_CLOSE,
    answer_tokens,
    text_tokens,
    xml_call,
)
from tests.engine.simulation.scenario import TIGHT_REPLAY, TIGHT_SNAPSHOT, DraftSetup, Memory, Scenario
from tests.engine.simulation.toy_drafter import Kind
from tests.engine.simulation.wishing import MAX_DRAFTS, Wish, WishingCore, continuing
from tests.engine.simulation.world import HOLE, VOCABULARY

GREEDY = SamplingOptions.greedy()
OK = OutputConstraint.grammar('root ::= "ok"')
SUB = strict_tool("sub", ("a", "b"), a={"type": "integer"}, b={"type": "integer"})
REQUIRED = ToolChoice(ToolMode.REQUIRED)
CALL = xml_call("sub", {"a": "1", "b": "2"})


def ask(
    wants: str | Sequence[int],
    constraint: OutputConstraint | None = None,
    *,
    text: str = "Hi",
    thinking: bool = False,
    tools: tuple[ToolDefinition, ...] = (),
    max_new_tokens: int = 120,
    **options: Any,
) -> Wish:
    prompt = ChatPrompt([{"role": "user", "content": text}], tools, thinking)
    return Wish(prompt, wants, RequestOptions(max_new_tokens, constraint, GREEDY, **options))


def tokens(text: str) -> list[int]:
    return answer_tokens(text)


def answer(wish: Wish, drafts: Sequence[int], **options: bool) -> tuple[GenerationResult, WishingCore]:
    """The result with these drafts, the answer from its beginning on; it is the one without any."""
    core = WishingCore(continuing(drafts), **options)
    [result] = core.answers([wish])
    [plain] = WishingCore(None).answers([wish])
    assert (result.token_ids, result.text, result.finish_reason) == (plain.token_ids, plain.text, plain.finish_reason)
    assert result.constraint is None or plain.constraint is not None
    return result, core


@pytest.fixture(params=[False, True], ids=["host", "device"])
def on_device(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


# Thinking


@pytest.mark.parametrize("is_agreed", [True, False])
def test_thinking_ends_inside_the_draft_window(is_agreed: bool, on_device: bool) -> None:
    """vllm#36138: drafts behind the end of thinking were not checked in the same round, and a fence came through."""
    fenced = [THINK_CLOSE, *text_tokens(b"\n\n```json\n[]")]
    constraint = OutputConstraint.json_schema({"type": "array", "items": {"type": "object"}})
    wish = ask(fenced if is_agreed else [THINK_CLOSE, *text_tokens(b"\n\n[{}]")], constraint, thinking=True)
    first, *_ = text_tokens(b"h")
    wish = Wish(wish.prompt, [first, *wish.tokens[:-1]], wish.options)
    result, core = answer(wish, [first, *fenced], on_device=on_device)
    # The round that begins with the end of thinking holds the fence too.
    assert core.rounds[0][0][:3] == (*fenced[:2], ord("`"))
    assert result.reasoning == "h"
    assert result.text.startswith("[")
    assert "`" not in result.text


@pytest.mark.parametrize("budget", [0, 1, 3, 5, 9])
@pytest.mark.parametrize("thinking", [True, False])
def test_no_round_goes_past_the_budget_of_thinking(thinking: bool, budget: int, on_device: bool) -> None:
    """omlx#2399: with drafts the thinking budget was ignored. Also where the model opens its thinking itself."""
    opening = [] if thinking else [THINK_OPEN]
    wants = [*opening, *text_tokens(b"mmmmmm hm hm hm hm"), THINK_CLOSE, *text_tokens(b"\n\nyes")]
    wish = ask(wants, thinking=thinking, thinking_budget=budget)
    result, core = answer(wish, wants, on_device=on_device)
    assert result.thinking is not None
    assert (result.thinking.num_model_tokens, result.thinking.was_forced) == (budget, True)
    assert result.token_ids[len(opening) + budget :][: len(FORCED_END)] == FORCED_END
    num_left = budget - 2 + len(opening)  # for drafts, after the first token and the one that is the model's own
    if num_left >= 0:
        assert len(core.rounds[0][0]) == min(num_left, MAX_DRAFTS)


# Speculative decoding


@pytest.mark.parametrize("behind", ["\nx", "</tool_call>", "ok", "}"])
def test_drafts_past_the_end_are_no_error(behind: str, on_device: bool) -> None:
    """vllm#42619, #44006: the window reached past a complete answer, the model agreed, and it became an error."""
    for wish in (
        ask("ok", OK),
        ask(CALL, tools=(SUB,), tool_choice=ToolChoice(ToolMode.REQUIRED, parallel=False)),
        ask('{"ok": true}', OutputConstraint.json_schema({"type": "object"})),
    ):
        wanted = [*wish.tokens, *tokens(behind)]
        agreeing = Wish(wish.prompt, wanted, wish.options)

        def over_the_end(number: int, said: tuple[int, ...], wanted: list[int] = wanted) -> list[int]:
            return wanted[len(said) :] if len(wanted) - len(said) <= MAX_DRAFTS else []

        core = WishingCore(over_the_end, on_device=on_device)
        [result] = core.answers([agreeing])
        assert result.finish_reason is FinishReason.STOP_TOKEN
        assert result.token_ids == wish.tokens
        assert result.num_generated_tokens == len(wish.tokens)
        assert result.constraint is not None
        assert result.constraint.terminated
        # The end came as a draft, and what follows it was in the window too.
        assert EOS in core.rounds[-1][0][:-1]


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (OK, "ok"),
        (OutputConstraint.regex("a+"), "aaa"),
        (OutputConstraint.choice(["yes", "no"]), "yes"),
        (OutputConstraint.json_object(), "{}"),
        (OutputConstraint.json_schema({"type": "boolean"}), "true"),
    ],
)
def test_no_mask_is_asked_of_a_terminated_matcher(constraint: OutputConstraint, text: str, on_device: bool) -> None:
    """sglang#15050: one draft, the end; afterwards the next mask was asked for. Ours raises if it is."""

    def end(number: int, said: tuple[int, ...]) -> list[int]:
        return [EOS]

    core = WishingCore(end, on_device=on_device)
    [result] = core.answers([ask(text, constraint)])
    assert (result.text, result.finish_reason) == (text, FinishReason.STOP_TOKEN)
    # The last round's only draft was right, and the round brought nothing else.
    assert core.rounds == [{0: (EOS,)}] * (len(result.token_ids) - 1)


def test_looking_over_an_end_and_back_leaves_no_trace(on_device: bool) -> None:
    """vllm#46272: drafts that ended a call and the text were taken back, and a legal token was refused afterwards."""
    two = f"{CALL}\n{CALL}"
    wish = ask(two, tools=(SUB,), tool_choice=REQUIRED)

    for over in ([TOOL_CLOSE, EOS], [EOS], [TOOL_CLOSE, *tokens("\n")], [*tokens("\n"), TOOL_CLOSE, EOS, EOS]):

        def ends(number: int, said: tuple[int, ...], over: list[int] = over) -> list[int]:
            """The next tokens, up to two of them, and then ends that are wrong most of the time."""
            return [*wish.tokens[len(said) : len(said) + len(said) % 3], *over]

        core = WishingCore(ends, on_device=on_device)
        [result] = core.answers([wish])
        assert result.token_ids == wish.tokens
        assert [call.arguments_json for call in result.tool_calls] == ['{"a":1,"b":2}'] * 2


@pytest.mark.parametrize("kind", [Kind.PREDICTOR, Kind.BLOCK])
@pytest.mark.parametrize("memory", [TIGHT_SNAPSHOT, TIGHT_REPLAY], ids=["snapshot", "replay"])
def test_no_drafts_survive_a_pause(memory: Memory, kind: Kind) -> None:
    """vllm#31955: a paused request came back with the drafts that it had before. Every chain that is run is the one
    that a drafter has for the text as it is then.
    """
    scenario = Scenario(memory, drafts=DraftSetup(kind))
    scenario.submit_all()
    assert scenario.drafter is not None
    num_after_pauses = 0

    def check(sequences: Any, masks: Any, drafts: Any = None) -> Any:
        nonlocal num_after_pauses
        for sequence, chain in zip(sequences, drafts or [], strict=False):
            expected = scenario.drafter.expected(sequence.ledger, len(chain), sequence.sampling)  # type: ignore[union-attr]
            assert chain.tokens == expected.tokens
            request = next(c.request for c in scenario.clients if c.request.sequence is sequence)
            num_after_pauses += bool(chain) and request.counts.num_pauses > 0
        return decode(sequences, masks, drafts)

    program: Any = scenario.core._program
    decode, program.decode_batch = program.decode_batch, check
    scenario.run()
    assert num_after_pauses > 0
    for client in scenario.clients:
        client.check_end()


@pytest.mark.parametrize("wants_dead_end", [False, True])
def test_a_dead_end_counts_where_the_output_gets_there(wants_dead_end: bool, on_device: bool) -> None:
    """MiniOneRec#50: an empty legal set became free text. Drafts lead into one; only if the model agrees, it is one."""
    constraint = OutputConstraint.choice(["ab" + HOLE, "ax"])
    drafts = [*b"ab", ord(HOLE), *b"free text"]
    core = WishingCore(continuing(drafts), on_device=on_device)
    wish = ask(drafts if wants_dead_end else "ax", constraint)
    if wants_dead_end:
        with pytest.raises(ConstraintDeadEnd):
            core.answers([wish])
        assert core.requests[0].session.text == "a"
    else:
        [result] = core.answers([wish])
        assert (result.text, result.finish_reason) == ("ax", FinishReason.STOP_TOKEN)
    assert core.rounds[0][0][:2] == (ord("b"), ord(HOLE))


def _with_id(number: int) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "status": {"enum": ["ok"]},
            "items": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
            "request_id": {"const": number},
        },
        "required": ["status", "items", "request_id"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("wants_other", [False, True])
def test_no_row_gets_what_is_another_s(wants_other: bool, on_device: bool) -> None:
    """vllm#52620: under load drafts slipped past the grammar. Here each row has its neighbour's answer as drafts; the
    model wants either that too, or the row's own.
    """
    texts = [json.dumps({"status": "ok", "items": [1, 2, 3], "request_id": 10 + number}) for number in range(8)]
    others = [texts[(number + 1) % 8] for number in range(8)]
    wishes = [
        ask(
            (others if wants_other else texts)[number],
            OutputConstraint.json_schema(_with_id(10 + number)),
            text=f"Request id {number}. Return a JSON object.",
        )
        for number in range(8)
    ]
    core = WishingCore(lambda number, said: tokens(others[number])[len(said) :][:2], on_device=on_device)
    results = core.answers(wishes)
    plain = WishingCore(None, on_device=on_device).answers(wishes)
    assert [result.token_ids for result in results] == [result.token_ids for result in plain]
    assert max(map(len, core.rounds)) == 8
    for number, result in enumerate(results):
        assert json.loads(result.text)["request_id"] == 10 + number
        assert result.constraint is not None
        assert result.constraint.terminated
        assert result.speculation is not None
        assert result.speculation.num_accepted > 10


def test_rows_without_drafts_beside_rows_with_drafts(on_device: bool) -> None:
    """TensorRT-LLM#15022: a draft length that fell to 0 broke the shape of the masks. Every mixture comes, all rows
    without any included.
    """
    wishes = [
        ask("ok", OK),
        ask("a,b,a,b,a", OutputConstraint.regex("[ab](,[ab])*"), text="Letters"),
        ask("free text", text="Hello"),
        ask('{"ok": true}', OutputConstraint.json_object(), text="JSON"),
    ]
    for pattern in range(1, 32):

        def some(number: int, said: tuple[int, ...], pattern: int = pattern) -> tuple[int, ...]:
            num_drafts = (pattern >> ((number + len(said)) % 5) & 1) * (1 + (number + pattern) % 3)
            return wishes[number].tokens[len(said) :][:num_drafts]

        core = WishingCore(some, on_device=on_device)
        results = core.answers(wishes)
        assert [result.token_ids for result in results] == [wish.tokens for wish in wishes]
    # The engine asks for drafts every round; all of them may be none.
    core = WishingCore(lambda number, said: (), on_device=on_device)
    assert [result.token_ids for result in core.answers(wishes)] == [wish.tokens for wish in wishes]


@pytest.mark.parametrize("num_drafts", [1, 3, 8])
def test_a_name_comes_once_in_a_call_whatever_is_drafted(num_drafts: int, on_device: bool) -> None:
    """What no grammar states, and a rule beside it has to follow along the drafts: a parameter is not named twice."""
    parameters = "".join(f"<parameter=a>\n{value}\n</parameter>\n" for value in (1, 2))
    twice = tokens(f"<tool_call>\n<function=any>\n{parameters}</function>\n</tool_call>")
    wish = ask(twice, tools=(ToolDefinition("any"),), tool_choice=REQUIRED)
    for shift in range(num_drafts):

        def ahead(number: int, said: tuple[int, ...], shift: int = shift) -> list[int]:
            """Windows that begin at every place of the text in turn."""
            return twice[len(said) :][: shift if len(said) == 1 else num_drafts]

        core = WishingCore(ahead, on_device=on_device)
        [result] = core.answers([wish])
        [plain] = WishingCore(None).answers([wish])
        assert result.token_ids == plain.token_ids
        assert result.text == plain.text
        assert [call.arguments_json for call in result.tool_calls] == [c.arguments_json for c in plain.tool_calls]
        assert text_of(result).count(b"<parameter=a>") == 1


def text_of(result: GenerationResult) -> bytes:
    return b"".join(VOCABULARY.token_bytes[token] for token in result.token_ids)
