"""A server on loopback, in a thread of this process, and a model that answers each question as a test wants."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from numpy.typing import ArrayLike

from infernix.engine import Engine
from infernix.frontend.framing import Framing
from infernix.server.app import build_app
from infernix.server.runner import HttpServer, address_of, listen
from infernix.server.settings import ServerSettings
from support.chat_engine import chat_engine
from support.chat_output import CHAT, EOS, THINK_CLOSE, THINK_OPEN, TURN_START, XML, answer_tokens, text_tokens
from support.scripted_model import preferring

MODEL = "scripted"
_HEADER = len(text_tokens(b"assistant\n")) + 3  # the turn's mark, the mark of thinking, a line break
_NO_THINKING = (*text_tokens(b"\n"), THINK_CLOSE, *text_tokens(b"\n\n"))


@dataclass
class LiveServer:
    """Where it listens, and what is behind it."""

    url: str
    app: FastAPI
    http: HttpServer


@contextmanager
def live_server(engine: Any, log: Any = None, **settings: Any) -> Iterator[LiveServer]:
    """Serves an engine, which stays the caller's, until the block is left."""
    settings.setdefault("shutdown_seconds", 1)
    whole = ServerSettings(settings.pop("model_id", MODEL), **settings)
    app = build_app(engine, whole, log)
    with listen("127.0.0.1", 0) as listener:
        http = HttpServer(app, whole, listener)
        thread = threading.Thread(target=http.run, name="live-server")
        thread.start()
        try:
            yield LiveServer(address_of(listener), app, http)
        finally:
            http.stop()
            thread.join()


Answers = Mapping[str, str] | Callable[[str], str]


def answering(answers: Answers, framing: Framing = XML, **options: Any) -> Engine:
    """An engine whose model wants to give the answer to what was said last.

    An answer may hold the marks of thinking and of tool calls. What stands before `</think>` is said only where the
    answer begins inside thinking.
    """
    find = answers if callable(answers) else answers.__getitem__
    return chat_engine(_Speaker(find, framing), framing, **options)


class _Speaker:
    def __init__(self, find: Callable[[str], str], framing: Framing) -> None:
        self._find = find
        self._framing = framing

    def __call__(self, so_far: tuple[int, ...]) -> ArrayLike:
        begin = len(so_far) - 1 - so_far[::-1].index(TURN_START)
        if so_far[begin + _HEADER - 2 : begin + _HEADER - 1] != (THINK_OPEN,):
            return self._go_on(so_far, begin)
        wanted = answer_tokens(self._find(_said(so_far, begin)), self._framing)
        spoken = so_far[begin + _HEADER :]
        if spoken[: len(_NO_THINKING)] == _NO_THINKING:
            spoken = spoken[len(_NO_THINKING) :]
            wanted = wanted[wanted.index(THINK_CLOSE) + 1 :] if THINK_CLOSE in wanted else wanted
            wanted = wanted[1:] if wanted[:1] == text_tokens(b"\n\n") else wanted
        token = wanted[len(spoken)] if len(spoken) < len(wanted) else EOS
        return preferring(CHAT.num_tokens, {token: 10.0})

    def _go_on(self, so_far: tuple[int, ...], begin: int) -> ArrayLike:
        """The turn was begun by the client, whose text stands in tokens of the prompt's own."""
        num_bytes = len(_bytes(so_far[begin + 1 :])) - len(b"assistant\n")
        rest = text_tokens(self._find(_said(so_far, begin)).encode()[num_bytes:])
        return preferring(CHAT.num_tokens, {(rest or [EOS])[0]: 10.0})


def _bytes(tokens: tuple[int, ...]) -> bytes:
    return b"".join(CHAT.token_bytes[token] for token in tokens)


def _said(so_far: tuple[int, ...], end: int) -> str:
    """The content of the turn that ends before `end`."""
    earlier = so_far[:end]
    if TURN_START not in earlier:  # the conversation began with the turn that the client has begun
        return ""
    begin = len(earlier) - 1 - earlier[::-1].index(TURN_START)
    return _bytes(earlier[begin + 1 : -1]).decode().partition("\n")[2]
