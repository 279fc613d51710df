"""Where in an answer the new tokens begin. Read from the prompt itself, never from a flag."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from infernix.frontend.framing import Framing


class StartingPhase(StrEnum):
    """RAW: a text to continue, without phases. THINKING: the prompt ends inside reasoning. CONTENT: past it."""

    RAW = "raw"
    THINKING = "thinking"
    CONTENT = "content"


def starting_phase(answer_begin: Sequence[int], framing: Framing) -> StartingPhase:
    """The phase after `answer_begin`, the tokens of a rendered chat that belong to the turn to be answered.

    Only tokens count, not their spelling: what a message says can hold neither of them. A turn in which thinking was
    never opened is content: a model that opens thinking by itself is told so by its template, or it does not think.
    """
    for token in reversed(answer_begin):
        if token == framing.think_close:
            return StartingPhase.CONTENT
        if token == framing.think_open:
            return StartingPhase.THINKING
    return StartingPhase.CONTENT
