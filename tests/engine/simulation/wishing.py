"""A model that wants an answer for each prompt, token for token, in rounds whose drafts a test gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from infernix.engine.core import CoreLimits, EngineCore
from infernix.engine.preparation import Preparation
from infernix.engine.prompt import prepare_prompt
from infernix.engine.request import PreparedRequest, Request
from infernix.messages import ChatPrompt
from infernix.options import RequestOptions
from infernix.program.drafters.chain import DraftChain
from infernix.program.program import Program
from infernix.results import GenerationResult
from support.chat_output import EOS, XML, answer_tokens
from tests.engine.simulation.memory_model import MemoryModel
from tests.engine.simulation.world import NUM_TOKENS, VOCABULARY, loaded_model, preparation

MAX_DRAFTS = 8
_MAX_CONTEXT = 600


@dataclass(frozen=True)
class Wish:
    """`wants` is what the model would say, up to an end-of-sequence token that need not be written."""

    prompt: ChatPrompt
    wants: str | Sequence[int]
    options: RequestOptions

    @property
    def tokens(self) -> tuple[int, ...]:
        """What it wants in tokens, the end included."""
        return (*(answer_tokens(self.wants) if isinstance(self.wants, str) else self.wants), EOS)


Drafts = Callable[[int, tuple[int, ...]], Sequence[int]]
"""By the number of a wish and what was said so far: guesses, of which a round takes as many as it may have."""


class WishingCore:
    """An engine's core with lanes and memory for all of its requests.

    rounds   the rows of every round: the number of each wish, and its drafts
    """

    def __init__(self, drafts: Drafts | None, *, on_device: bool = False, num_lanes: int = 8) -> None:
        self._drafts = drafts
        self._wishes: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.requests: list[Request] = []
        self.rounds: list[dict[int, tuple[int, ...]]] = []
        self._program = Program(
            MemoryModel(self._script, NUM_TOKENS, _MAX_CONTEXT, is_recurrent=False),
            VOCABULARY,
            max_rows=num_lanes,
            num_cache_positions=16_000,
            num_draft_tokens=MAX_DRAFTS,
            samples_on_device=on_device,
        )
        drafting: Any = None if drafts is None else self
        self.core = EngineCore(self._program, CoreLimits(num_lanes, 100, 1e9), clock=lambda: 0.0, drafting=drafting)

    def answers(self, wishes: Sequence[Wish]) -> list[GenerationResult]:
        """The results, in the order of the wishes; raises the first error."""
        for wish in wishes:
            request = self.core.submit(partial(_prepared, wish))
            self._wishes[request.prepared.prompt] = wish.tokens
            self.requests.append(request)
        while self.core.cycle() or not self.core.is_idle:
            pass
        return [request.delivery.result() for request in self.requests]

    def chains(self, requests: Sequence[Request]) -> list[DraftChain]:
        """In place of the engine's own drafting: also where no row has any drafts, one chain a row."""
        chains = []
        for request in requests:
            session = request.session
            most = min(MAX_DRAFTS, session.num_model_tokens_allowed(session.num_tokens_left) - 1)
            assert self._drafts is not None
            chain = tuple(self._drafts(self.requests.index(request), session.token_ids))[: max(0, most)]
            assert self._program.reserve(request.physical, request.num_unit_tokens + len(chain))
            chains.append(DraftChain(chain))
        numbers = [self.requests.index(request) for request in requests]
        self.rounds.append(dict(zip(numbers, (chain.tokens for chain in chains), strict=True)))
        return chains

    def _script(self, so_far: tuple[int, ...]) -> ArrayLike:
        logits = np.full(NUM_TOKENS, -20.0, dtype=np.float32)
        for prompt, wanted in self._wishes.items():
            if so_far[: len(prompt)] == prompt:
                logits[wanted[min(len(so_far) - len(prompt), len(wanted) - 1)]] = 10.0
        return logits


def continuing(*texts: Sequence[int]) -> Drafts:
    """Guesses that are what follows in a wish's text, by place, whatever was said before."""
    return lambda number, said: texts[number][len(said) :]


@cache
def _preparation() -> Preparation:
    return preparation(XML, _MAX_CONTEXT)


def _prepared(wish: Wish) -> PreparedRequest:
    return _preparation().request(prepare_prompt(wish.prompt, loaded_model(XML)), wish.options)
