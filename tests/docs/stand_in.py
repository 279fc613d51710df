"""A model that thinks, for the pages about thinking: the embedded one does not, and others cannot be downloaded."""

from __future__ import annotations

from functools import cache
from typing import Any

from numpy.typing import ArrayLike

from support.chat_engine import chat_engine
from support.chat_output import CHAT, EOS, THINK_CLOSE, TURN_START, XML, text_tokens
from support.scripted_model import preferring

# What the pages call the directory of the model.
STAND_IN = "models/thinker"
REASONING = b"The sentence says July 20, 1969. The form is YYYY-MM-DD, so the month is 07.\n"
ANSWER = b"1969-07-20"
_THINKING = [*text_tokens(REASONING), THINK_CLOSE]
_CONTENT = [*text_tokens(b"\n\n" + ANSWER), EOS]


@cache
def thinking_model() -> Any:
    """It wants to think one thing and to say another, whatever it is asked."""
    return chat_engine(_wants, XML)._loaded


def _wants(so_far: tuple[int, ...]) -> ArrayLike:
    turn = so_far[len(so_far) - 1 - so_far[::-1].index(TURN_START) :]
    if THINK_CLOSE in turn:
        wanted = _CONTENT[len(turn) - 1 - turn.index(THINK_CLOSE)]
    else:
        num_header = len(text_tokens(b"assistant\n")) + 3  # the turn's mark, the mark of thinking, a line break
        wanted = _THINKING[len(turn) - num_header]
    return preferring(CHAT.num_tokens, {wanted: 10.0})
