"""Requests by chance: every kind of constraint, tools, thinking, continuations, budgets down to nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random

from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.tools import ToolChoice, ToolDefinition, ToolEnforcement, ToolMode
from support.chat_engine import strict_tool
from support.chat_output import FORCED_END, THINK_CLOSE
from tests.engine.simulation.world import BROKEN, COPYING, HOLE, WISHES

_SUB = strict_tool("sub", ("a", "b"), a={"type": "integer"}, b={"type": "integer"})
_NOW = ToolDefinition.of("now", {"type": "object", "properties": {}})
_TOOLS = ((_SUB,), (_SUB, _NOW), (_NOW,))
_OBJECT = OutputConstraint.json_schema(
    {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "n": {"type": "array", "items": {"type": "integer"}}},
        "required": ["ok"],
        "additionalProperties": False,
    }
)
# Those with the hole in them run into a dead end, unless they are lucky.
_CONSTRAINTS = (
    OutputConstraint.choice(["yes", "no", "yes, but", "", "ja" + HOLE]),
    OutputConstraint.choice(["abc", "abd", "b"]),
    OutputConstraint.regex("(a|b|cc){0,9}(x|y" + HOLE + ")"),
    OutputConstraint.regex("[a-c]+(,[a-c]+)*"),
    OutputConstraint.grammar('root ::= item ("," item)*\nitem ::= [ab]+ | "(" item ")" | "' + HOLE + '"'),
    OutputConstraint.grammar('root ::= "a" root "b" | ""'),
    OutputConstraint.json_object(),
    _OBJECT,
)
_CONTINUED = (
    ('{"ok": ', _OBJECT),
    ('{"ok"', OutputConstraint.json_object()),
    ("ab", OutputConstraint.regex("[a-c]+(,[a-c]+)*")),
    ("Well", None),
)
_SYSTEM = ("You are a calm assistant; be brief.", "You are a calm assistant; be long.", "Answer in JSON.")
# The last one holds what the model likes to say.
_ASKED = ("Hi", "Hi there", "What is 12 - 3?", "Give an example, please: yes or no?", f"Say {WISHES[2]} twice.")
# What is to be said again, and how far the answer is bound to it.
_RETOLD = (
    ("The lamp is on; the lamp is off; the lamp is on.", None),
    ("The lamp is on; the lamp is off; the lamp is on.", OutputConstraint.regex("[A-Za-z ]+(;[A-Za-z ]+)*")),
    ("abba,abba,cab,abba,cab", OutputConstraint.grammar('root ::= word ("," word)*\nword ::= [abc]+')),
    ('{"a": "ok ok ok", "b": "ok ok ok"}', OutputConstraint.json_object()),
    (
        '[{"ok": true, "n": [1, 22]}, {"ok": true, "n": [1, 22]}]',
        OutputConstraint.json_schema({"type": "array", "items": json.loads(_OBJECT.source)}),
    ),
    (WISHES[0], None),
)
_STOPS = ((), (), ("a",), ("yes", "\n\n"), ("ab", "b{"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one caller asks for."""

    prompt: ChatPrompt | tuple[int, ...]
    options: RequestOptions


def random_request(rng: Random, earlier: list[tuple[int, ...]], *, is_growing: bool, is_copied: bool = False) -> Wanted:
    """A request; `earlier` are texts in tokens that a prompt may begin with, prompts and their answers.

    `is_growing`: a short prompt and a long answer, so that memory becomes short while requests run. `is_copied`: the
    model repeats itself, so that there is something to copy.
    """
    if is_copied and rng.random() < 0.8:
        return _retold(rng)
    max_new_tokens = rng.choice((13, 21, 34, 55) if is_growing else (0, 1, 2, 3, 5, 8, 13, 21, 34))
    sampling = _sampling(rng)
    if earlier and rng.random() < 0.2 and not is_growing:
        return Wanted(_continued(rng, rng.choice(earlier)), _raw_options(rng, max_new_tokens, sampling))
    messages: list[dict[str, object]] = []
    if rng.random() < 0.8 and not is_growing:
        messages.append({"role": "system", "content": rng.choice(_SYSTEM)})
    if rng.random() < 0.3 and not is_growing:
        messages += [{"role": "user", "content": rng.choice(_ASKED)}, {"role": "assistant", "content": "yes"}]
    messages.append({"role": "user", "content": rng.choice(_ASKED[:2] if is_growing else _ASKED)})
    mark = rng.choices(("", chr(BROKEN), chr(COPYING)), (0.6, 0.1, 0.3))[0]
    mark = chr(COPYING) if is_copied else mark
    messages[0] = {**messages[0], "content": mark + str(messages[0]["content"])}
    kind = rng.random()
    if kind < 0.15:
        text, constraint = rng.choice(_CONTINUED)
        prompt = ChatPrompt([*messages, {"role": "assistant", "content": text}], continue_final=True)
        return Wanted(prompt, RequestOptions(max_new_tokens, constraint, sampling))
    thinking = rng.choice((True, False, None, False))
    thinking_budget = rng.choice((None, None, 0, 1, 2, 6))
    if thinking is not False and thinking_budget is not None and rng.random() < 0.8:
        max_new_tokens = thinking_budget + len(FORCED_END) + rng.choice((1, 2, 8))
    if kind < 0.4:
        options = _tool_options(rng, max_new_tokens, sampling, thinking_budget)
        return Wanted(ChatPrompt(messages, rng.choice(_TOOLS), thinking), options)
    if kind < 0.75:
        constraint = rng.choice(_CONSTRAINTS)
        options = RequestOptions(max_new_tokens, constraint, sampling, thinking_budget=thinking_budget)
        return Wanted(ChatPrompt(messages, (), thinking), options)
    options = RequestOptions(
        max_new_tokens,
        sampling=sampling,
        thinking_budget=thinking_budget,
        stop=rng.choice(_STOPS),
        publish_special_tokens=rng.random() < 0.2,
        ignore_eos=rng.random() < (0.7 if is_growing else 0.1),
    )
    return Wanted(ChatPrompt(messages, (), thinking), options)


def _retold(rng: Random) -> Wanted:
    text, constraint = rng.choice(_RETOLD)
    messages = [{"role": "user", "content": f"{chr(COPYING)}{text}"}]
    thinking = rng.random() < 0.2
    is_free = constraint is None
    options = RequestOptions(
        rng.choice((21, 34, 55)),
        constraint,
        rng.choice((SamplingOptions.greedy(), SamplingOptions(temperature=0.4, seed=rng.randrange(2**64)))),
        thinking_budget=rng.choice((None, 2, 7)) if thinking else None,
        stop=rng.choice(_STOPS) if is_free else (),
        ignore_eos=is_free and rng.random() < 0.7,
    )
    return Wanted(ChatPrompt(messages, _TOOLS[1] if is_free and not options.stop else (), thinking), options)


def _sampling(rng: Random) -> SamplingOptions:
    if rng.random() < 0.4:
        return SamplingOptions.greedy()
    return SamplingOptions(
        temperature=rng.choice((0.3, 1.0, 1.7)),
        top_k=rng.choice((0, 0, 3, 40)),
        top_p=rng.choice((1.0, 0.9)),
        presence_penalty=rng.choice((0.0, 0.0, 1.5)),
        frequency_penalty=rng.choice((0.0, 0.5)),
        seed=rng.randrange(2**64),
    )


def _tool_options(
    rng: Random, max_new_tokens: int, sampling: SamplingOptions, thinking_budget: int | None
) -> RequestOptions:
    mode = rng.choice((ToolMode.AUTO, ToolMode.AUTO, ToolMode.REQUIRED, ToolMode.NONE))
    choice = ToolChoice(
        mode, parallel=rng.random() < 0.5, enforcement=rng.choice((ToolEnforcement.BASIC, ToolEnforcement.AUTOMATIC))
    )
    constraint = _OBJECT if rng.random() < 0.4 else None
    return RequestOptions(max_new_tokens, constraint, sampling, choice, thinking_budget)


def _continued(rng: Random, text: tuple[int, ...]) -> tuple[int, ...]:
    """The text, as it is, cut, or with something behind it."""
    match rng.randrange(4):
        case 0:
            return text
        case 1:
            return text[: rng.randint(1, len(text))]
        case _:
            return (*text, *rng.choice(((THINK_CLOSE,), tuple(b"And then?"), tuple(b"ab"))))


def _raw_options(rng: Random, max_new_tokens: int, sampling: SamplingOptions) -> RequestOptions:
    if rng.random() < 0.5:
        return RequestOptions(max_new_tokens, rng.choice(_CONSTRAINTS), sampling)
    return RequestOptions(max_new_tokens, sampling=sampling, stop=rng.choice(_STOPS))
