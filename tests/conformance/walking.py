"""A random text of a language, token by token through the masks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from infernix.matching import DEAD, CompiledGrammar, ConfigurationTable, TokenClass, Vocabulary

MAX_TOKENS = 1200
"""A walk that is not at an end by then is given up."""

MAX_SEARCHED_CONFIGURATIONS = 400

_ALL_BYTES = np.arange(256, dtype=np.uint8)
_ASCII = range(0x20, 0x7F)
_CONTINUATIONS = range(0x80, 0xC0)

# What ends the text soonest, if it is legal: closing before separating before short values before long ones.
_CLOSING_ORDER = b'}],:ntf0123456789-"[{'


@dataclass(frozen=True, slots=True)
class Manner:
    """How a walk chooses.

    num_free     tokens before it only tries to come to an end
    haste        the chance, at every token of a string before that, to close the string
    blanks       the chance, at every token outside strings, to let white space stand, of which there are many tokens
    by_byte      first bytes are equally likely; else tokens are, of which nearly all are letters
    """

    num_free: int
    haste: float
    blanks: float
    by_byte: bool

    @classmethod
    def random(cls, rng: Random) -> Manner:
        """Short and long walks, open and closed ones."""
        return cls(
            num_free=rng.choice((3, 15, 40, 100)),
            haste=rng.choice((0.0, 0.1, 0.4)),
            blanks=rng.choice((0.05, 0.05, 1.0)),
            by_byte=rng.random() < 0.5,
        )


class Walker:
    """Draws texts from compiled grammars of one vocabulary, which has every byte as a token."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._row = np.zeros(vocabulary.num_mask_words, np.int32)
        self._eos = min(vocabulary.eos_ids)
        self._first_bytes = np.array([data[0] if data else 0 for data in vocabulary.token_bytes], np.uint8)
        self._is_blank = np.array([bool(data) and data.isspace() for data in vocabulary.token_bytes])
        self._byte_tokens: dict[int, int] = {}
        for token, (data, kind) in enumerate(zip(vocabulary.token_bytes, vocabulary.classes, strict=True)):
            if len(data) == 1 and kind == TokenClass.TEXT:
                self._byte_tokens.setdefault(data[0], token)

    def walk(self, grammar: CompiledGrammar, manner: Manner, rng: Random) -> bytes | None:
        """A text that ended with EOS, or None where MAX_TOKENS came first.

        AssertionError where the matcher refuses what the mask offers, or where no token is legal.
        """
        matcher = grammar.new_matcher()
        text = bytearray()
        place = _StringPlace()
        planned: deque[int] = deque()
        for num_tokens in range(MAX_TOKENS):
            assert matcher.fill(self._row), f"a dead end after {bytes(text)!r}"
            legal = self._legal_tokens()
            if not planned and (num_tokens >= manner.num_free or (place.is_inside and rng.random() < manner.haste)):
                planned = self._closing(grammar.configurations, legal, bytes(text), place)
            if not place.is_inside and rng.random() >= manner.blanks:
                legal = self._without_blanks(legal)
            token = planned.popleft() if planned else self._any(legal, manner, rng)
            assert self._is_legal(token), f"token {token} is masked after {bytes(text)!r}, but its bytes could follow"
            assert matcher.accept(token), f"token {token} is refused after {bytes(text)!r}"
            if token == self._eos:
                return bytes(text)
            text += self._vocabulary.token_bytes[token]
            place.follow(self._vocabulary.token_bytes[token])
        return None

    def _legal_tokens(self) -> NDArray[np.intp]:
        bits = np.unpackbits(self._row.view(np.uint8), bitorder="little")[: self._vocabulary.num_tokens]
        # One end token stands for all of them.
        bits[[token for token in self._vocabulary.eos_ids if token != self._eos]] = 0
        return np.flatnonzero(bits)

    def _is_legal(self, token: int) -> bool:
        return bool(self._row.view(np.uint32)[token >> 5] >> np.uint32(token & 31) & 1)

    def _without_blanks(self, legal: NDArray[np.intp]) -> NDArray[np.intp]:
        others = legal[~self._is_blank[legal]]
        return others if len(others) else legal

    def _any(self, legal: NDArray[np.intp], manner: Manner, rng: Random) -> int:
        if manner.by_byte:
            first_bytes = self._first_bytes[legal]
            byte = rng.choice(np.flatnonzero(np.bincount(first_bytes, minlength=256)).tolist())
            legal = legal[first_bytes == byte]
        return int(legal[rng.randrange(len(legal))])

    def _closing(
        self, table: ConfigurationTable, legal: NDArray[np.intp], text: bytes, place: _StringPlace
    ) -> deque[int]:
        """Tokens towards the end; none where there is no telling."""
        if self._is_legal(self._eos):
            return deque([self._eos])
        if place.is_inside:
            return deque(self._byte_tokens[byte] for byte in _shortest_to_quote(table, text, place.is_escaped))
        legal_set = set(legal.tolist())
        for byte in _CLOSING_ORDER:
            token = self._byte_tokens[byte]
            if token in legal_set:
                return deque([token])
        return deque()


class _StringPlace:
    """Whether a JSON text ends inside a string."""

    def __init__(self) -> None:
        self.is_inside = False
        self.is_escaped = False

    def follow(self, data: bytes) -> None:
        for byte in data:
            if not self.is_inside:
                self.is_inside = byte == ord('"')
            elif self.is_escaped:
                self.is_escaped = False
            elif byte == ord("\\"):
                self.is_escaped = True
            elif byte == ord('"'):
                self.is_inside = False


def _shortest_to_quote(table: ConfigurationTable, text: bytes, is_escaped: bool) -> bytes:
    """The fewest bytes from inside a string to its end; where a bounded search does not get there, as far as it gets.

    Of what may stand in a string only ASCII is tried, and what completes a character.
    """
    start = table.step_bytes(table.start, np.frombuffer(text, np.uint8).copy(), 0, len(text))
    paths: dict[tuple[int, bool], bytes] = {(start, is_escaped): b""}
    pending = deque(paths)
    path = b""
    while pending and len(paths) < MAX_SEARCHED_CONFIGURATIONS:
        configuration, escaped = pending.popleft()
        path = paths[configuration, escaped]
        if not escaped and _step(table, configuration, ord('"')) != DEAD:
            return path + b'"'
        reached = [(_step(table, configuration, byte), byte) for byte in _ASCII]
        if all(target == DEAD for target, _ in reached):
            reached = [(_step(table, configuration, byte), byte) for byte in _CONTINUATIONS]
        for target, byte in reached:
            following = target, not escaped and byte == ord("\\")
            if target != DEAD and following not in paths:
                paths[following] = path + bytes([byte])
                pending.append(following)
    return path


def _step(table: ConfigurationTable, configuration: int, byte: int) -> int:
    return table.step_bytes(configuration, _ALL_BYTES, byte, byte + 1)
