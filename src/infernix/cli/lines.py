"""Lines that somebody types, or that come from a pipe."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from collections.abc import Iterator

from infernix.cli.files import InputFileError

_LOOK_SECONDS = 0.1


class LineReader:
    """Reads standard input line by line; on a terminal it asks for each one."""

    def __init__(self) -> None:
        """Raises InputFileError where there is no standard input."""
        if sys.stdin is None:
            raise InputFileError("cannot read standard input: it is closed")
        if isinstance(sys.stdin, io.TextIOWrapper):
            # What is not UTF-8 becomes lone surrogates, which no prompt takes.
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        self.is_terminal = sys.stdin.isatty()
        if self.is_terminal:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401  # gives `input` its editing and its history

    def read(self, question: str) -> str | None:
        """The next line without its end, or None where there is none; `question` is for the terminal only."""
        if not self.is_terminal:
            return _line("")
        with _interrupts_seen_soon():
            if not sys.stdout.isatty():  # `input` would put the question among the answers
                print(question, end="", file=sys.stderr, flush=True)
                question = ""
            return _line(question)


def _line(question: str) -> str | None:
    try:
        return input(question)
    except EOFError:
        return None


@contextlib.contextmanager
def _interrupts_seen_soon() -> Iterator[None]:
    """Looks ten times a second whether Ctrl-C was typed.

    `input` looks before it waits for a key, and when a signal ends the wait: a Ctrl-C between the two would have no
    effect before the next key.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return
    previous = signal.signal(signal.SIGALRM, lambda _number, _frame: None)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS, _LOOK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
