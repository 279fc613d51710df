"""No parameter comes twice in a call of the XML way of writing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from infernix.frontend.output_grammar import OutputGrammar
from infernix.frontend.tools.parameter_framing import NAME_END, PARAMETER, VALUE_END
from infernix.frontend.tools.unique_names import NameIndex, TokenGroup, UniqueNames
from infernix.matching.vocabulary import Vocabulary

_NAME_END = NAME_END[0].encode()
_LINE_BREAK = b"\n"
# From the end of a value to the beginning of the next name. Only its first part can stand in a value by accident.
_PASSAGE_BYTES = (VALUE_END + "\n" + PARAMETER).encode()
_NUM_VALUE_END_BYTES = len(VALUE_END)
_AT_PARAMETER = len(VALUE_END + "\n")


class _Part(Enum):
    """HEADER: up to the second line break. PASSAGE: in a value and behind it. NAME_ENDED: before a value."""

    HEADER = "header"
    PASSAGE = "passage"
    NAME = "name"
    NAME_ENDED = "name ended"


# Looking a member up in its class is slow.
_HEADER, _PASSAGE, _NAME, _NAME_ENDED = _Part


@dataclass(frozen=True, slots=True)
class CallState:
    """`progress`: line breaks of the header, or bytes of the passage. `name` is what is there of one, `used` are the
    names of the call."""

    part: _Part
    progress: int = 0
    name: bytes = b""
    used: frozenset[bytes] = frozenset()


class ParameterNameIndex(NameIndex):
    """The tokens of a vocabulary that can complete a parameter's name.

    closing    by what of the name they begin with: tokens that complete one that was begun
    entering   by their number of bytes of the passage: tokens that end it, and complete the name behind it
    crossing   tokens with a whole passage and the name behind it
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        closing: dict[bytes, list[int]] = defaultdict(list)
        entering: dict[int, list[int]] = defaultdict(list)
        crossing: list[int] = []
        for token, data in enumerate(self.texts):
            if _NAME_END not in data:
                continue
            closing[data[: data.index(_NAME_END)]].append(token)
            for length in range(1, len(_PASSAGE_BYTES) + 1):
                if data.startswith(_PASSAGE_BYTES[-length:]) and _NAME_END in data[length:]:
                    entering[length].append(token)
            begin = data.find(_PASSAGE_BYTES)
            if begin >= 0 and _NAME_END in data[begin + len(_PASSAGE_BYTES) :]:
                crossing.append(token)
        self.closing = {name: TokenGroup(tokens) for name, tokens in closing.items()}
        self.entering = {length: TokenGroup(tokens) for length, tokens in entering.items()}
        self.crossing = TokenGroup(crossing)


class ParameterNames(UniqueNames[CallState]):
    """The companion of one answer."""

    def __init__(self, grammar: OutputGrammar, index: ParameterNameIndex) -> None:
        super().__init__(grammar, index)
        self._index = index

    @property
    def _call_start(self) -> CallState:
        return CallState(_HEADER)

    def _as_call(self, state: Hashable) -> CallState | None:
        return state if isinstance(state, CallState) else None

    def _advance(self, state: CallState, data: bytes, at: int) -> tuple[CallState | None, int] | None:
        if state.part is _NAME:
            return self._advance_name(state, data, at)
        if state.part is _PASSAGE:
            return self._advance_passage(state, data, at)
        if state.part is _NAME_ENDED:
            return replace(state, part=_PASSAGE, progress=0), at + 1
        found = data.find(_LINE_BREAK, at)
        if found < 0:
            return state, len(data)
        if state.progress == 0:
            return CallState(_HEADER, 1), found + 1
        return CallState(_PASSAGE, _AT_PARAMETER), found + 1

    def _advance_passage(self, state: CallState, data: bytes, at: int) -> tuple[CallState | None, int]:
        progress = state.progress
        while at < len(data):
            if progress == 0:
                at = data.find(_LINE_BREAK, at)
                if at < 0:
                    break
            if data[at] == _PASSAGE_BYTES[progress]:
                progress, at = progress + 1, at + 1
                if progress == len(_PASSAGE_BYTES):
                    return replace(state, part=_NAME, progress=0), at
            elif progress < _NUM_VALUE_END_BYTES:
                progress = 0  # the passage has its first byte only once in this part
            else:
                return None, at
        return (state if progress == state.progress else replace(state, progress=progress)), len(data)

    def _advance_name(self, state: CallState, data: bytes, at: int) -> tuple[CallState, int] | None:
        end = data.find(_NAME_END, at)
        if end < 0:
            return replace(state, name=state.name + data[at:]), len(data)
        name = state.name + data[at:end]
        if name in state.used:
            return None
        return CallState(_NAME_ENDED, used=state.used | {name}), end + 1

    def _suspects(self, state: CallState | None, row: NDArray[np.int32]) -> list[int]:
        suspects = self._index.crossing.legal(row)
        if state is None or not state.used:
            return suspects
        if state.part is _NAME:
            for name in state.used:
                if name.startswith(state.name) and (group := self._index.closing.get(name[len(state.name) :])):
                    group.clear(row)
        elif state.part is _PASSAGE:
            entering = self._index.entering.get(len(_PASSAGE_BYTES) - state.progress)
            if entering is not None:
                suspects += entering.legal(row)
        return suspects
