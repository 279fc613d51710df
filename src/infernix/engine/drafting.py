"""Guesses at the tokens of the next round, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infernix.engine.request import Request
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.program.drafters.chain import NO_DRAFTS, DraftChain, DraftSource
from infernix.program.drafters.corpus import MAX_MATCH_TOKENS, WINDOWS
from infernix.program.drafters.ngram import DEFAULT_MIN_MATCH, MAX_DRAFT_TOKENS, NgramDrafter
from infernix.program.program import Program


@dataclass(frozen=True, slots=True)
class NgramOptions:
    """Copies from a request's own text: the longest chain in tokens (0: none), and the tokens that must match.

    Raises ValueError for a number out of its range.
    """

    num_draft_tokens: int = 0
    min_match: int = DEFAULT_MIN_MATCH

    def __post_init__(self) -> None:
        if not 0 <= self.num_draft_tokens <= MAX_DRAFT_TOKENS:
            raise ValueError(f"0 to {MAX_DRAFT_TOKENS} tokens can be drafted, not {self.num_draft_tokens}")
        if not WINDOWS[-1] <= self.min_match <= MAX_MATCH_TOKENS:
            raise ValueError(f"a match has {WINDOWS[-1]} to {MAX_MATCH_TOKENS} tokens, not {self.min_match}")


class Drafting:
    """Proposes for rounds. Drafts change nothing but speed, so no request waits, pauses or fails for their sake."""

    def __init__(
        self, program: Program, vocabulary: Vocabulary, ngram: NgramOptions, *, num_neural_drafts: int = 0
    ) -> None:
        """`num_neural_drafts` is how many the program's drafter has for a row at most.

        Raises ValueError where there is nothing to draft with.
        """
        if not ngram.num_draft_tokens and not num_neural_drafts:
            raise ValueError("there is nothing to draft with")
        self._program = program
        self._ngram = ngram
        self._num_neural_drafts = num_neural_drafts
        # Other tokens than text are never copied: they mean something only where they stand.
        self._is_boundary = vocabulary.classes != TokenClass.TEXT

    def chains(self, requests: Sequence[Request]) -> list[DraftChain] | None:
        """The drafts of a round whose rows have room for their own tokens; None: no row has any.

        A chain never reaches past what the round may bring (the output's budget, the rest of a thinking budget), is no
        longer than the request's own recent drafts make worth while, and takes only memory that nobody holds. A copy
        takes the place of what the program's drafter would propose.
        """
        for request in requests:
            request.pacing.settle(request.physical.ledger)
        chains = [self._copy(request) for request in requests]
        if self._num_neural_drafts:
            extents = [0 if chain else self._extent(request) for request, chain in zip(requests, chains, strict=True)]
            found = self._program.propose([request.physical for request in requests], extents)
            chains = [chain if chain else other for chain, other in zip(chains, found, strict=True)]
        for request, chain in zip(requests, chains, strict=True):
            request.pacing.propose(chain, len(request.physical.ledger))
        return chains if any(chains) else None

    def _copy(self, request: Request) -> DraftChain:
        num_allowed = _num_allowed(request) if self._ngram.num_draft_tokens else 0
        if num_allowed < 1:
            return NO_DRAFTS
        num_others = min(self._num_neural_drafts, num_allowed)
        chain = self._copies(request).propose(num_others)[:num_allowed]
        pace = request.pacing.of(DraftSource.COPY)
        num_drafts = pace.extent(len(chain))
        # What is cut short must, like a copy whose source ends, be longer than what stands in its place otherwise.
        if num_drafts < len(chain) and num_drafts <= request.pacing.of(DraftSource.NETWORK).extent(num_others):
            pace.passed()
            return NO_DRAFTS
        if not num_drafts or not self._has_room(request, num_drafts):
            return NO_DRAFTS
        return DraftChain(chain[:num_drafts], source=DraftSource.COPY)

    def _extent(self, request: Request) -> int:
        """How many drafts of the program's drafter the round may have."""
        num_allowed = min(self._num_neural_drafts, _num_allowed(request))
        if num_allowed < 1:
            return 0
        pace = request.pacing.of(DraftSource.NETWORK)
        extent = pace.extent(num_allowed)
        if not extent:
            pace.passed()
        return extent if extent and self._has_room(request, extent) else 0

    def _has_room(self, request: Request, num_drafts: int) -> bool:
        return self._program.reserve(request.physical, request.num_unit_tokens + num_drafts)

    def _copies(self, request: Request) -> NgramDrafter:
        """The request's drafter, up to date with all that is committed."""
        ledger = request.physical.ledger
        if request.copies is None:
            request.copies = NgramDrafter(
                self._is_boundary,
                num_draft_tokens=self._ngram.num_draft_tokens,
                capacity=len(request.prepared.prompt) + request.prepared.budget.num_tokens,
                min_match=self._ngram.min_match,
            )
            request.num_copied_from = 0
        request.copies.append(ledger[request.num_copied_from :])
        request.num_copied_from = len(ledger)
        return request.copies


def _num_allowed(request: Request) -> int:
    """Drafts that a round may commit; one of its tokens is the model's own."""
    session = request.session
    return session.num_model_tokens_allowed(session.num_tokens_left) - 1
