"""The rule that a call names each argument once, where its names are not declared beforehand.

An open set of names has no context-free uniqueness, so a companion of the matcher follows the canonical framing of the
tokens that the grammar takes, and refuses those that complete a name which the call has already. What a call looks
like inside is left to the two ways of writing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from infernix.frontend.framing import THINK_SEPARATOR, TOOL_OPEN
from infernix.frontend.output_grammar import OutputGrammar
from infernix.matching.vocabulary import TokenClass, Vocabulary

_OPENER = TOOL_OPEN.encode()

StateT = TypeVar("StateT", bound=Hashable)


class Outside(Enum):
    """Where bytes do not matter. IDLE: only an opening token does. THINKING: only the token that closes it does."""

    THINKING = "thinking"
    IDLE = "idle"


# Looking a member up in its class is slow, and these are asked for at every token.
_THINKING, _IDLE = Outside


@dataclass(frozen=True, slots=True)
class Searching:
    """Outside a call that opens by text, behind the first `progress` bytes of the opener."""

    progress: int = 0


@dataclass(frozen=True, slots=True)
class BeforeBranch:
    """`num_bytes` before the byte that tells JSON content from a call that opens by text."""

    num_bytes: int


class TokenGroup:
    """Some token ids, and fast ways to look them up in a mask row and to take them out of it."""

    def __init__(self, ids: Iterable[int] = ()) -> None:
        self._ids = np.array(sorted(ids), np.int64)

    def legal(self, row: NDArray[np.int32]) -> list[int]:
        """Those that are set in the row."""
        ids = self._ids
        if not len(ids):
            return []
        found: list[int] = ids[(row[ids >> 5] >> (ids & 31) & 1).astype(np.bool_)].tolist()
        return found

    def clear(self, row: NDArray[np.int32]) -> None:
        """Takes all of them out of the row."""
        words, kept = self._kept_bits
        row[words] &= kept

    @cached_property
    def _kept_bits(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        words, begins = np.unique(self._ids >> 5, return_index=True)
        bits = np.uint32(1) << (self._ids & 31).astype(np.uint32)
        return words, (~np.bitwise_or.reduceat(bits, begins)).view(np.int32)


class NameIndex:
    """`texts`: by token its bytes, none for a token that is no text."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        kinds = vocabulary.classes.tolist()
        self.texts = tuple(
            data if kind == TokenClass.TEXT else b"" for data, kind in zip(vocabulary.token_bytes, kinds, strict=True)
        )


class UniqueNames(ABC, Generic[StateT]):
    """A companion (`infernix.matching.matcher.Companion`); a state inside a call is a `StateT`."""

    def __init__(self, grammar: OutputGrammar, index: NameIndex) -> None:
        self._texts = index.texts
        self._think_close = grammar.framing.think_close
        self._tool_open = grammar.framing.tool_open
        self._outside: Hashable = Searching() if self._tool_open is None else _IDLE
        self._content: Hashable = self._outside
        if self._tool_open is None and grammar.has_json_branch:
            self._content = BeforeBranch(len(THINK_SEPARATOR) if grammar.thinks else 0)
        self._start: Hashable = _THINKING if grammar.thinks else self._content

    def start(self) -> Hashable:
        """The state before the first token."""
        return self._start

    def after(self, state: Hashable, token: int) -> Hashable | None:
        """The state after a token, or None where it completes a name for the second time."""
        if state is _THINKING:
            return self._content if token == self._think_close else state
        if token == self._tool_open:
            return self._call_start
        return state if state is _IDLE else self._read(state, self._texts[token])

    def clear(self, state: Hashable, row: NDArray[np.int32]) -> None:
        """Clears the bits of the tokens that `after` would refuse."""
        if isinstance(state, Outside):
            return
        words = row.view(np.uint32)
        for token in self._suspects(self._as_call(state), row):
            if self.after(state, token) is None:
                words[token >> 5] &= ~np.uint32(1 << (token & 31))

    @property
    @abstractmethod
    def _call_start(self) -> StateT:
        """The state behind the opener."""

    @abstractmethod
    def _as_call(self, state: Hashable) -> StateT | None:
        """The state if it is one inside a call."""

    @abstractmethod
    def _advance(self, state: StateT, data: bytes, at: int) -> tuple[StateT | None, int] | None:
        """Reads one byte or more from `at`: the state and the place behind them; None for the state where the call has
        no more names, None altogether where a name comes twice."""

    @abstractmethod
    def _suspects(self, state: StateT | None, row: NDArray[np.int32]) -> list[int]:
        """Tokens among those of the row that `after` might refuse; in a state of a call (None: outside) all but those
        that the method takes out of the row by itself."""

    def _read(self, state: Hashable, data: bytes) -> Hashable | None:
        at = 0
        while at < len(data) and state is not _IDLE:
            call = self._as_call(state)
            if call is None:
                state, at = self._read_outside(state, data, at)
                continue
            advanced = self._advance(call, data, at)
            if advanced is None:
                return None
            following, at = advanced
            state = self._outside if following is None else following
        return state

    def _read_outside(self, state: Hashable, data: bytes, at: int) -> tuple[Hashable, int]:
        if isinstance(state, BeforeBranch):
            if state.num_bytes:
                return BeforeBranch(state.num_bytes - 1), at + 1
            return (Searching() if data[at] == _OPENER[0] else _IDLE), at
        assert isinstance(state, Searching)
        return self._search(state.progress, data, at)

    def _search(self, progress: int, data: bytes, at: int) -> tuple[Hashable, int]:
        """The opener has its first byte only once, so a mismatch goes back to its beginning."""
        if progress == 0:
            found = data.find(_OPENER[:1], at)
            return (Searching(), len(data)) if found < 0 else (Searching(1), found + 1)
        if data[at] != _OPENER[progress]:
            return Searching(), at
        return (self._call_start if progress + 1 == len(_OPENER) else Searching(progress + 1)), at + 1
