"""Lines that somebody types, or that come from a pipe."""

from __future__ import annotations

import contextlib
import io
import sys

from infernix.cli.files import InputFileError


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
            question = ""
        elif not sys.stdout.isatty():  # `input` would put the question among the answers
            print(question, end="", file=sys.stderr, flush=True)
            question = ""
        try:
            return input(question)
        except EOFError:
            return None
