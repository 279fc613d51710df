"""Opening the output of a request: which reader it needs, and which options its constraint rules out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infernix.errors import InvalidOptions
from infernix.frontend.answer_reader import AnswerReader
from infernix.frontend.budget import OutputBudget
from infernix.frontend.constraint import ConstraintState
from infernix.frontend.content_reader import ContentReader
from infernix.frontend.continuation import continue_text
from infernix.frontend.framing import Framing
from infernix.frontend.free_reader import FreeReader
from infernix.frontend.phases import StartingPhase
from infernix.frontend.reading import BodyReader
from infernix.frontend.session import OutputSession
from infernix.frontend.thinking import ThinkingLimit
from infernix.frontend.tool_reader import ToolReader
from infernix.frontend.tools.contract import ToolPolicy
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.options import RequestOptions

_LOOSE_OPTIONS = ("stop", "stop_token_ids", "raw_output", "publish_special_tokens", "ignore_eos")


@dataclass(frozen=True, slots=True)
class OutputModel:
    """What a model's tokens mean in its output; `forced_end` is what ends its reasoning when the budget is used up."""

    vocabulary: Vocabulary
    framing: Framing
    forced_end: tuple[int, ...] = ()


def refuse_loose_options(options: RequestOptions) -> None:
    """Raises InvalidOptions, by name, for an option that would break what a constraint promises."""
    for name in _LOOSE_OPTIONS:
        if getattr(options, name):
            raise InvalidOptions("cannot be combined with an output constraint or constrained tools", field=name)


def open_session(
    model: OutputModel,
    phase: StartingPhase,
    budget: OutputBudget,
    options: RequestOptions,
    *,
    constraint: ConstraintState | None = None,
    policy: ToolPolicy | None = None,
    continuation: str | None = None,
) -> OutputSession:
    """The session of a prepared request.

    `constraint` is the request's matcher in the grammar of everything that may come from the prompt's `phase` on;
    `policy` the tools that may be called, None where there are none to read. `continuation` is the text that the output
    continues.

    Raises InvalidOptions for options that a constraint rules out and for stop tokens out of range,
    ThinkingBudgetCapacity, and a ConstraintError for a continuation that the constraint does not let begin.
    """
    if constraint is not None:
        refuse_loose_options(options)
    elif options.constraint is not None or (policy is not None and policy.constrained):
        raise ValueError("a constrained output needs its constraint")
    vocabulary, framing = model.vocabulary, model.framing
    for token in options.stop_token_ids:
        if token >= vocabulary.num_tokens:
            raise InvalidOptions(f"{token} is outside 0..{vocabulary.num_tokens - 1}", field="stop_token_ids")
    can_think = framing.think_close is not None
    session = OutputSession(
        _new_reader(model, phase, options, policy, is_constrained=constraint is not None),
        budget,
        end_ids=frozenset(options.stop_token_ids) | (frozenset() if options.ignore_eos else vocabulary.eos_ids),
        constraint=constraint,
        thinking=ThinkingLimit(options.thinking_budget, model.forced_end) if can_think else None,
        stop=options.stop,
    )
    if continuation is not None:
        kind = None if options.constraint is None else options.constraint.kind
        continue_text(session, continuation, vocabulary, framing, constraint=constraint, kind=kind, policy=policy)
    session.check_thinking_capacity()
    return session


def _new_reader(
    model: OutputModel,
    phase: StartingPhase,
    options: RequestOptions,
    policy: ToolPolicy | None,
    *,
    is_constrained: bool,
) -> AnswerReader:
    if options.raw_output:
        phase = StartingPhase.RAW
    spelled = _spelled(model, options, is_raw=phase is StartingPhase.RAW)
    return AnswerReader(
        model.vocabulary,
        model.framing,
        phase,
        _new_body(model.framing, phase, options, policy, spelled, is_constrained=is_constrained),
        is_exact=is_constrained,
        spelled=spelled,
    )


def _new_body(
    framing: Framing,
    phase: StartingPhase,
    options: RequestOptions,
    policy: ToolPolicy | None,
    spelled: Mapping[int, bytes],
    *,
    is_constrained: bool,
) -> BodyReader:
    if policy is None or not policy.tools or phase is StartingPhase.RAW:
        return ContentReader({} if is_constrained else spelled)
    if policy.constrained:
        return ToolReader(policy, framing, has_json_content=options.constraint is not None)
    return FreeReader(policy, framing, spelled)


def _spelled(model: OutputModel, options: RequestOptions, *, is_raw: bool) -> dict[int, bytes]:
    """Control tokens that count as text. Without phases the mark that closes the reasoning is one of them."""
    vocabulary, framing = model.vocabulary, model.framing
    tokens = set(framing.passing_ids)
    if is_raw and framing.think_close is not None:
        tokens.add(framing.think_close)
    if options.publish_special_tokens:
        tokens |= {
            token
            for token, token_class in enumerate(vocabulary.classes.tolist())
            if token_class in (TokenClass.CONTROL, TokenClass.EOS)
        }
    return {token: vocabulary.token_bytes[token] for token in tokens}
