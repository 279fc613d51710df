"""What a request's answer is when nothing else runs: neither engine nor Program, one token after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from infernix.engine.request import PreparedRequest
from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.frontend.session import OutputSession
from infernix.matching.vocabulary import TokenClass
from infernix.ops.random import Purpose, uniform
from infernix.ops.reference import target_distribution
from infernix.results import FinishReason, OutputChannel, OutputDelta, PublishedDelta
from infernix.tools import ToolCallDelta
from tests.engine.simulation.world import NUM_TOKENS, VOCABULARY, script

_GENERABLE = VOCABULARY.classes != TokenClass.NEVER


@dataclass(frozen=True, slots=True)
class Published:
    """Everything that was published so far, its pieces joined."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()

    def and_then(self, deltas: Sequence[PublishedDelta]) -> Published:
        """With more behind it."""
        texts = {OutputChannel.CONTENT: self.content, OutputChannel.REASONING: self.reasoning}
        calls = list(self.calls)
        for delta in deltas:
            if isinstance(delta, OutputDelta):
                texts[delta.channel] += delta.text
                continue
            assert isinstance(delta, ToolCallDelta)
            if delta.index == len(calls):
                assert delta.name is not None
                assert delta.arguments == ""
                calls.append((delta.name, ""))
            else:
                assert delta.index == len(calls) - 1
                assert delta.name is None
                name, arguments = calls[delta.index]
                calls[delta.index] = name, arguments + delta.arguments
        return Published(texts[OutputChannel.CONTENT], texts[OutputChannel.REASONING], tuple(calls))


@dataclass(slots=True)
class Transcript:
    """An answer from its beginning to its end.

    published   by the number of committed tokens: what was published by then; no entry within forced tokens
    control     the numbers of committed tokens at which forced tokens came
    error       what ended it, None: it ended by itself, and `session` has the result
    """

    prompt: tuple[int, ...]
    session: OutputSession
    published: dict[int, Published] = field(default_factory=dict)
    control: set[int] = field(default_factory=set)
    error: type[Exception] | None = None

    @property
    def tokens(self) -> tuple[int, ...]:
        """All that was committed."""
        return self.session.token_ids


def run_alone(prepare: Callable[[], PreparedRequest]) -> Transcript:
    """The whole answer, by the definition of each step."""
    request = prepare()
    session, sampling = request.session, request.sampling
    transcript = Transcript(request.prompt, session)
    published = Published()
    if request.budget.num_tokens == 0:
        session.preview_terminal(request.budget.limit_reason)
        published = published.and_then(session.commit_preview())
    else:
        transcript.published[0] = published
    counts: dict[int, int] = {}
    words = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    while session.finish_reason is None:
        so_far = (*request.prompt, *session.token_ids)
        tokens = session.pending_control_tokens
        if tokens:
            transcript.control.add(session.num_tokens)
            session.preview_control(tokens)
        else:
            legal = _GENERABLE
            if session.is_constrained:
                legal = legal & _unpacked(words) if session.fill_mask(words) else np.zeros(NUM_TOKENS, dtype=bool)
            purpose = Purpose.DECODE if session.num_tokens else Purpose.PREFILL
            try:
                law = target_distribution(np.asarray(script(so_far)), legal, sampling, counts)
            except (ConstraintDeadEnd, NonFiniteLogits) as error:
                transcript.error = type(error)
                break
            tokens = (law.draw(uniform(sampling.seed, len(so_far), purpose)),)
            session.preview_model(tokens)
        published = published.and_then(session.commit_preview())
        transcript.published[session.num_tokens] = published
        for token in tokens:
            counts[token] = counts.get(token, 0) + 1
    transcript.published[session.num_tokens] = published
    return transcript


def cancelled_after(prepare: Callable[[], PreparedRequest], transcript: Transcript, num_tokens: int) -> OutputSession:
    """The session of the same answer, cancelled when so many tokens were committed."""
    session = prepare().session
    while session.num_tokens < num_tokens:
        control = session.pending_control_tokens
        if control:
            session.preview_control(control)
        else:
            session.preview_model(transcript.tokens[session.num_tokens : session.num_tokens + 1])
        session.commit_preview()
    session.preview_terminal(FinishReason.CANCELLED)
    session.commit_preview()
    return session


def _unpacked(words: np.ndarray) -> np.ndarray:
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return bits[:NUM_TOKENS].astype(bool)
