"""The phases of an answer: reasoning, what separates it from the rest, and the rest.

One reader decides for publication, for tool calls and for the thinking budget alike, by the same rules as the grammar:
reasoning ends at the token that closes it, never at its spelling; a line break directly before that token is framing;
so is the separator behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Self

from infernix.errors import InternalError
from infernix.frontend.framing import THINK_SEPARATOR, Framing
from infernix.frontend.phases import StartingPhase
from infernix.frontend.reading import BodyReader, ReadingEvent, ReasoningPiece, shallow_copy
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.results import OutputBranch, ToolDiagnostics
from infernix.tools import ToolCall

_LINE_BREAK = b"\n"
# White space that is taken off the beginning of free content behind the reasoning.
_SPACE = b" \t\r\n"


class _Phase(Enum):
    """START: free content that has not begun, in which the model may still open its reasoning itself."""

    START = auto()
    THINKING = auto()
    SEPARATOR = auto()
    BODY = auto()


# Looking a member up takes longer than comparing with it, and this is done for every token.
_BODY = _Phase.BODY
_TEXT = int(TokenClass.TEXT)


class AnswerReader:
    """Reads an answer token by token; `body` reads what follows the reasoning.

    `is_exact`: a grammar guarantees the separator, and every byte behind it is content. Without a grammar all white
    space behind the reasoning is taken off, and a model may begin by opening its reasoning with the token for it.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        framing: Framing,
        phase: StartingPhase,
        body: BodyReader,
        *,
        is_exact: bool,
        spelled: Mapping[int, bytes],
    ) -> None:
        """`spelled` are the control tokens that count as text in the reasoning, with what they spell."""
        self._vocabulary = vocabulary
        self._framing = framing
        self._spelled = spelled
        self._body = body
        self._is_exact = is_exact
        if phase is StartingPhase.THINKING:
            self._phase = _Phase.THINKING
        elif phase is StartingPhase.CONTENT and not is_exact and framing.think_open is not None:
            self._phase = _Phase.START
        else:
            self._phase = _Phase.BODY
        # In THINKING: a line break that may be framing. In SEPARATOR: its part that has come.
        self._held = b""
        self._is_opening = False

    @property
    def is_thinking(self) -> bool:
        """Whether the reasoning is open."""
        return self._phase is _Phase.THINKING

    @property
    def may_open_thinking(self) -> bool:
        """Whether the model may still open its reasoning itself, with the next token."""
        return self._phase is _Phase.START

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The completed tool calls."""
        return self._body.calls

    @property
    def branch(self) -> OutputBranch:
        """Content, calls, or nothing of both yet."""
        return self._body.branch

    @property
    def diagnostics(self) -> ToolDiagnostics | None:
        """What had to be said of the calls; None where none are read."""
        return self._body.diagnostics

    def copy(self) -> Self:
        """An equal reader of its own."""
        twin = shallow_copy(self)
        twin._body = self._body.copy()
        return twin

    def feed(self, token: int) -> list[ReadingEvent]:
        """One token that does not end the answer. Raises InternalError where grammar and reader disagree."""
        is_text = self._vocabulary.classes.item(token) == _TEXT
        data = self._vocabulary.token_bytes[token] if is_text else None
        phase = self._phase
        if phase is _BODY:
            return self._feed_body(token, data)
        if phase is _Phase.START:
            if token == self._framing.think_open:
                self._phase, self._is_opening = _Phase.THINKING, True
                return []
            self._phase = _BODY
            return self._feed_body(token, data)
        if phase is _Phase.THINKING:
            return self._feed_reasoning(token, data)
        return self._feed_separator(token, data)

    def seed(self, prefix: Sequence[bytes | int]) -> list[ReadingEvent]:
        """Takes the given beginning of the content, text and control tokens; what it says is known to the caller."""
        self._phase = _Phase.BODY
        events: list[ReadingEvent] = []
        for piece in prefix:
            events += self._body.control(piece) if isinstance(piece, int) else self._body.text(piece)
        self._body.suppress_held()
        return events

    def finish(self, *, is_complete: bool) -> list[ReadingEvent]:
        """The end; `is_complete`: by an end-of-sequence token."""
        if is_complete and self._is_exact and self._phase in (_Phase.THINKING, _Phase.SEPARATOR):
            raise InternalError("the grammar let the answer end inside its reasoning")
        if self._phase is _Phase.THINKING:
            held, self._held = self._held, b""
            return [ReasoningPiece(held)] if held else []
        return self._body.finish(is_complete=is_complete)

    def _feed_reasoning(self, token: int, data: bytes | None) -> list[ReadingEvent]:
        if token == self._framing.think_close:
            self._phase, self._held = _Phase.SEPARATOR, b""
            return []
        data = self._spelled.get(token, b"") if data is None else data
        if self._is_opening and data:
            self._is_opening = False
            data = data.removeprefix(_LINE_BREAK)
        if not data:
            return []
        data = self._held + data
        self._held = _LINE_BREAK if data.endswith(_LINE_BREAK) else b""
        data = data.removesuffix(_LINE_BREAK)
        return [ReasoningPiece(data)] if data else []

    def _feed_separator(self, token: int, data: bytes | None) -> list[ReadingEvent]:
        if not self._is_exact:
            rest = b"" if data is None else data.lstrip(_SPACE)
            if data is not None and not rest:
                return []
            self._phase = _Phase.BODY
            return self._feed_body(token, None if data is None else rest)
        if data is None:
            raise InternalError(f"control token {token} stands where the separator behind the reasoning has to")
        data, self._held = self._held + data, b""
        if data.startswith(THINK_SEPARATOR):
            self._phase = _Phase.BODY
            return self._body.text(data.removeprefix(THINK_SEPARATOR))
        if not THINK_SEPARATOR.startswith(data):
            raise InternalError(f"{data[:40]!r} stands where the separator behind the reasoning has to")
        self._held = data
        return []

    def _feed_body(self, token: int, data: bytes | None) -> list[ReadingEvent]:
        return self._body.control(token) if data is None else self._body.text(data)
