"""What a request's answer is when nothing else runs, by the definitions of its steps: neither engine nor Program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from infernix.engine.request import PreparedRequest
from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.frontend.session import OutputSession
from infernix.matching.vocabulary import TokenClass
from infernix.ops.random import Purpose, uniform
from infernix.ops.reference import target_distribution
from infernix.ops.speculative_reference import Law, verify
from infernix.program.drafters.chain import NO_DRAFTS, DraftChain
from infernix.results import FinishReason, OutputChannel, OutputDelta, PublishedDelta
from infernix.tools import ToolCallDelta
from tests.engine.simulation.world import NUM_TOKENS, VOCABULARY, matcher_of, script

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
    error       what ended it, None: it ended by itself, and `session` has the result
    """

    prompt: tuple[int, ...]
    session: OutputSession
    published: dict[int, Published] = field(default_factory=dict)
    error: type[Exception] | None = None

    @property
    def tokens(self) -> tuple[int, ...]:
        """All that was committed."""
        return self.session.token_ids


class Alone:
    """An answer, round by round, each by its definition; the caller says which drafts a round has."""

    def __init__(self, prepare: Callable[[], PreparedRequest]) -> None:
        request = self._request = prepare()
        self.transcript = Transcript(request.prompt, request.session)
        self._published = Published()
        self._counts: Counter[int] = Counter()
        if request.budget.num_tokens == 0:
            request.session.preview_terminal(request.budget.limit_reason)
            self._commit(())
        else:
            self.transcript.published[0] = self._published

    @property
    def is_over(self) -> bool:
        """Whether there is an end or an error."""
        return self.transcript.session.finish_reason is not None or self.transcript.error is not None

    def step(self, chain: DraftChain = NO_DRAFTS) -> tuple[int, ...]:
        """The next round, or the forced end of the reasoning where that is due; what it came to.

        A round comes to a beginning of its drafts and one token more, also where the output ends before; to nothing,
        and the transcript has the error, where it fails.
        """
        session, sampling = self._request.session, self._request.sampling
        tokens = session.pending_control_tokens
        if tokens:
            assert not chain, "nothing is drafted where tokens are forced"
            session.preview_control(tokens)
            self._commit(tokens)
            return tokens
        is_first, begin = not session.num_tokens, len(self._request.prompt) + session.num_tokens

        def number(place: int, purpose: Purpose) -> float:
            return uniform(sampling.seed, begin + place, Purpose.PREFILL if is_first else purpose)

        matcher = matcher_of(session)
        mark = None if matcher is None else matcher.plain.mark()
        try:
            tokens = verify(self._laws(chain), _proposals(chain), chain.tokens, VOCABULARY.eos_ids, number)
        except (ConstraintDeadEnd, NonFiniteLogits) as error:
            self.transcript.error = type(error)
            return ()
        finally:
            if matcher is not None:
                matcher.plain.rollback(mark)
        for token in tokens:
            if session.finish_reason is None:
                session.preview_model((token,))
                self._commit((token,))
        return tokens

    def _laws(self, chain: DraftChain) -> Iterator[Law]:
        """What each place draws from, the drafts before it taken for said; asked for one by one."""
        request, counts = self._request, self._counts.copy()
        matcher = matcher_of(request.session)
        so_far = (*request.prompt, *request.session.token_ids)
        words = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
        for draft in (*chain.tokens, None):
            legal = _GENERABLE
            if matcher is not None:
                legal = legal & _unpacked(words) if matcher.plain.fill(words) else np.zeros(NUM_TOKENS, dtype=bool)
            law = target_distribution(np.asarray(script(so_far)), legal, request.sampling, counts)
            yield dict(zip(law.ids.tolist(), law.probabilities.tolist(), strict=True))
            if draft is not None:
                so_far = (*so_far, draft)
                counts[draft] += 1
                assert matcher is None or matcher.plain.accept(draft), "an illegal draft was not refused"

    def _commit(self, tokens: Sequence[int]) -> None:
        session = self._request.session
        self._published = self._published.and_then(session.commit_preview())
        self.transcript.published[session.num_tokens] = self._published
        self._counts.update(tokens)


def _proposals(chain: DraftChain) -> list[Law] | None:
    """The law that each draft was drawn from; None where they were not drawn."""
    drawn = chain.proposals
    if drawn is None:
        return None
    return [
        dict(zip(ids.tolist(), probabilities.tolist(), strict=True))
        for ids, probabilities in zip(drawn.candidate_ids, drawn.probabilities, strict=True)
    ]


def run_alone(prepare: Callable[[], PreparedRequest]) -> Transcript:
    """The whole answer, one token after another."""
    alone = Alone(prepare)
    while not alone.is_over:
        alone.step()
    return alone.transcript


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
