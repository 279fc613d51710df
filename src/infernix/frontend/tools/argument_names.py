"""No argument comes twice in a call of the JSON way of writing, however its name is spelled.

The call is a JSON object, and the only object directly inside it holds the arguments: their names stand at depth 2.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from infernix.frontend.output_grammar import OutputGrammar
from infernix.frontend.tools.unique_names import NameIndex, TokenGroup, UniqueNames
from infernix.matching.vocabulary import Vocabulary

_QUOTE = b'"'
_ARGUMENTS_DEPTH = 2
_STRUCTURE = re.compile(rb'["{}\[\],]')
_IN_STRING = re.compile(rb'["\\]')
# A name that begins in the token behind something else.
_ENTERING = re.compile(rb'[,{][^"]*"[^"]*"')
_ESCAPE_BYTES, _PAIR_BYTES = 6, 12
_HIGH_SURROGATES = range(0xD800, 0xDC00)


class _Part(Enum):
    """BETWEEN: outside of strings. ESCAPED: behind the backslash of a string that is no argument's name."""

    BETWEEN = "between"
    STRING = "string"
    ESCAPED = "escaped"
    NAME = "name"


# Looking a member up in its class is slow.
_BETWEEN, _STRING, _ESCAPED, _NAME = _Part


@dataclass(frozen=True, slots=True)
class CallState:
    """`expects_name`: the next string at this place is a name. `name` is what is there of one, decoded to UTF-8, and
    `pending` an escape that cannot be decoded yet. `used` are the names of the call."""

    part: _Part = _BETWEEN
    depth: int = 0
    expects_name: bool = False
    name: bytes = b""
    pending: bytes = b""
    used: frozenset[bytes] = frozenset()


class ArgumentNameIndex(NameIndex):
    """The tokens of a vocabulary that can complete an argument's name.

    closing    by what of the name they begin with, decoded: tokens that complete one that was begun
    quoted     tokens with a quote: only they can complete a name whose last escape is still to be completed
    whole      by a name: tokens that begin and complete it where a name is expected
    entering   tokens that can hold a whole name behind something else
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        closing: dict[bytes, list[int]] = defaultdict(list)
        whole: dict[bytes, list[int]] = defaultdict(list)
        quoted = [(token, data) for token, data in enumerate(self.texts) if _QUOTE in data]
        for token, data in quoted:
            name, _, end = read_name(b"", b"", data, 0)
            if end is not None:
                closing[name].append(token)
            begin = _STRUCTURE.search(data)
            if begin is not None and begin.group() == _QUOTE:
                name, _, end = read_name(b"", b"", data, begin.end())
                if end is not None:
                    whole[name].append(token)
        self.closing = {name: TokenGroup(tokens) for name, tokens in closing.items()}
        self.whole = {name: TokenGroup(tokens) for name, tokens in whole.items()}
        self.quoted = TokenGroup(token for token, _ in quoted)
        self.entering = TokenGroup(token for token, data in quoted if _ENTERING.search(data))


class ArgumentNames(UniqueNames[CallState]):
    """The companion of one answer."""

    def __init__(self, grammar: OutputGrammar, index: ArgumentNameIndex) -> None:
        super().__init__(grammar, index)
        self._index = index

    @property
    def _call_start(self) -> CallState:
        return CallState()

    def _as_call(self, state: Hashable) -> CallState | None:
        return state if isinstance(state, CallState) else None

    def _advance(self, state: CallState, data: bytes, at: int) -> tuple[CallState | None, int] | None:
        if state.part is _BETWEEN:
            return self._advance_between(state, data, at)
        if state.part is _ESCAPED:
            # Of a longer escape, all that follows is letters and digits.
            return replace(state, part=_STRING), at + 1
        if state.part is _STRING:
            found = _IN_STRING.search(data, at)
            if found is None:
                return state, len(data)
            return replace(state, part=_BETWEEN if found.group() == _QUOTE else _ESCAPED), found.end()
        name, pending, end = read_name(state.name, state.pending, data, at)
        if end is None:
            return replace(state, name=name, pending=pending), len(data)
        if name in state.used:
            return None
        return CallState(depth=state.depth, used=state.used | {name}), end

    def _advance_between(self, state: CallState, data: bytes, at: int) -> tuple[CallState | None, int]:
        found = _STRUCTURE.search(data, at)
        if found is None:
            return state, len(data)
        at = found.end()
        depth = state.depth
        match found.group():
            case b'"':
                part = _NAME if state.expects_name else _STRING
                return replace(state, part=part, expects_name=False), at
            case b"{" | b"[":
                return replace(state, depth=depth + 1, expects_name=depth + 1 == _ARGUMENTS_DEPTH), at
            case b",":
                return replace(state, expects_name=depth == _ARGUMENTS_DEPTH), at
            case _:
                return (replace(state, depth=depth - 1, expects_name=False) if depth > 1 else None), at

    def _suspects(self, state: CallState | None, row: NDArray[np.int32]) -> list[int]:
        index = self._index
        if state is None or not state.used:
            return index.entering.legal(row)
        if state.part is _NAME:
            if state.pending:
                return index.quoted.legal(row)
            for name in state.used:
                if name.startswith(state.name) and (group := index.closing.get(name[len(state.name) :])):
                    group.clear(row)
        elif state.expects_name:
            for name in state.used:
                if group := index.whole.get(name):
                    group.clear(row)
        return index.entering.legal(row)


def read_name(name: bytes, pending: bytes, data: bytes, at: int) -> tuple[bytes, bytes, int | None]:
    """Reads on in a string whose decoded beginning is `name`, with an escape `pending`: the same two behind the bytes,
    and the place behind the closing quote, None where there is none."""
    while at < len(data):
        if not pending:
            found = _IN_STRING.search(data, at)
            if found is None:
                return name + data[at:], b"", None
            name += data[at : found.start()]
            at = found.end()
            if found.group() == _QUOTE:
                return name, b"", at
            pending = b"\\"
            continue
        pending += data[at : at + 1]
        at += 1
        decoded = _decoded(pending)
        if decoded is not None:
            name, pending = name + decoded, b""
    return name, pending, None


def _decoded(escape: bytes) -> bytes | None:
    """The character of an escape, of two for a pair of surrogates; None where it is not complete. What is no escape
    stands for itself: no grammar lets it through."""
    if len(escape) < 2 or (escape[1:2] == b"u" and len(escape) < _ESCAPE_BYTES):
        return None
    try:
        if len(escape) == _ESCAPE_BYTES and int(escape[2:], 16) in _HIGH_SURROGATES:
            return None
        if _ESCAPE_BYTES < len(escape) < _PAIR_BYTES:
            return None
        text: str = json.loads(_QUOTE + escape + _QUOTE)
        return text.encode("utf-8", "surrogatepass")
    except ValueError:
        return escape
