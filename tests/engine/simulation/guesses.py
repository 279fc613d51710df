"""Drafts that are mostly right, because the answers are known, wrong at any place, and go on behind any end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from infernix.engine.request import Request
from infernix.program.drafters.chain import DraftChain
from infernix.program.program import Program
from tests.engine.simulation.alone import Transcript
from tests.engine.simulation.world import NUM_TOKENS


class Guesses:
    """In place of the engine's own drafting; `num_drafts` counts what was proposed."""

    def __init__(
        self, program: Program, rng: Random, max_drafts: int, transcript_of: Callable[[Request], Transcript]
    ) -> None:
        self._program = program
        self._rng = rng
        self._max_drafts = max_drafts
        self._transcript_of = transcript_of
        self.num_drafts = 0

    def chains(self, requests: Sequence[Request]) -> list[DraftChain] | None:
        """The drafts of a round, each row's own; None: no row has any."""
        chains = [self._chain(request) for request in requests]
        return chains if any(chains) else None

    def _chain(self, request: Request) -> DraftChain:
        """As much of a guess as the round may bring and as there is memory for."""
        rng, session = self._rng, request.session
        num_drafts = min(
            rng.randint(0, self._max_drafts), session.num_model_tokens_allowed(session.num_tokens_left) - 1
        )
        begin = session.num_tokens
        chain = [*self._transcript_of(request).tokens[begin : begin + num_drafts]]
        chain += [rng.randrange(NUM_TOKENS) for _ in range(num_drafts - len(chain))]
        if chain and rng.random() < 0.3:
            chain[rng.randrange(len(chain))] = rng.randrange(NUM_TOKENS)
        while chain and not self._program.reserve(request.physical, request.num_unit_tokens + len(chain)):
            chain.pop()
        self.num_drafts += len(chain)
        return DraftChain(tuple(chain))
