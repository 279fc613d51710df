"""Drafts that are made up by chance around an answer that is known: right, wrong, illegal, past any end, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from random import Random

from infernix.engine.request import Request
from infernix.program.drafters.chain import NO_DRAFTS, DraftChain
from infernix.program.program import Program
from support.chat_output import EOS, SECOND_EOS, THINK_CLOSE, THINK_OPEN, TOOL_CLOSE, TOOL_OPEN, TURN_START
from tests.engine.simulation.world import HOLE, NUM_TOKENS


class Script(StrEnum):
    """What a row's drafts are.

    right      the answer goes on like that
    whole      likewise, and as long as the round may be: up to the end of the output's budget, or of thinking
    wrong      but for one token, another than the answer's
    illegal    one token is legal nowhere
    ends       one token ends the output, and something follows it
    closes     one token is a mark: of thinking or of tools
    past       the answer to its end, and more
    """

    NONE = "none"
    RIGHT = "right"
    WHOLE = "whole"
    WRONG = "wrong"
    ILLEGAL = "illegal"
    ENDS = "ends"
    CLOSES = "closes"
    PAST = "past"


_IN_PLACE = {
    Script.WRONG: range(NUM_TOKENS),
    Script.ILLEGAL: (ord(HOLE), TURN_START),
    Script.ENDS: (EOS, SECOND_EOS),
    Script.CLOSES: (THINK_OPEN, THINK_CLOSE, TOOL_OPEN, TOOL_CLOSE),
}


class ScriptedDrafts:
    """In place of the engine's own drafting; `answer_of` a request is all that it will say.

    happened   rows by script, and how many drafts of each are what the answer says
    num_rounds, num_mixed   rounds with drafts, and those of them in which rows have different numbers of drafts
    """

    def __init__(
        self, program: Program, rng: Random, max_drafts: int, answer_of: Callable[[Request], Sequence[int]]
    ) -> None:
        self._program = program
        self._rng = rng
        self._max_drafts = max_drafts
        self._answer_of = answer_of
        self.happened: Counter[str] = Counter()
        self.num_rounds = 0
        self.num_mixed = 0

    def chains(self, requests: Sequence[Request]) -> list[DraftChain] | None:
        """The drafts of a round; None: no row has any."""
        chains = [self._chain(request) for request in requests]
        if not any(chains):
            return None
        self.num_rounds += 1
        self.num_mixed += len(set(map(len, chains))) > 1
        return chains

    def _chain(self, request: Request) -> DraftChain:
        rng, session = self._rng, request.session
        most = min(self._max_drafts, session.num_model_tokens_allowed(session.num_tokens_left) - 1)
        script = rng.choice(list(Script))
        if script is Script.NONE or most < 1:
            return NO_DRAFTS
        num_drafts = most if script in (Script.WHOLE, Script.PAST) else rng.randint(1, most)
        answer = self._answer_of(request)[session.num_tokens :]
        chain = list(answer[:num_drafts])
        if script is Script.PAST:
            chain += [rng.choice((EOS, THINK_CLOSE, ord("}"), ord("a"))) for _ in range(num_drafts - len(chain))]
        elif script in _IN_PLACE and chain:
            chain[rng.randrange(len(chain))] = rng.choice(_IN_PLACE[script])
        assert self._program.reserve(request.physical, request.num_unit_tokens + len(chain))
        self.happened[script] += 1
        self.happened[f"{script}: drafts as in the answer"] += _num_alike(chain, answer)
        return DraftChain(tuple(chain))


def _num_alike(first: Sequence[int], second: Sequence[int]) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(first), len(second)))
