"""A matcher over a finite set of texts: enough of a grammar for tests of what surrounds a matcher."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from infernix.matching.matcher import LookAhead
from infernix.matching.vocabulary import TokenClass, Vocabulary
from support.mask_words import mask_words


class ScriptedMatcher:
    """Accepts exactly `language`, byte strings; `calls` records the transactions."""

    def __init__(self, vocabulary: Vocabulary, language: Sequence[bytes]) -> None:
        self._vocabulary = vocabulary
        self._language = tuple(language)
        self._text = b""
        self._is_terminated = False
        self._before_preview: tuple[bytes, bool] | None = None
        self.calls: list[str] = []

    @property
    def may_end(self) -> bool:
        return self._text in self._language

    @property
    def is_terminated(self) -> bool:
        return self._is_terminated

    def is_legal(self, token: int) -> bool:
        if self._is_terminated:
            return False
        token_class = self._vocabulary.classes[token]
        if token_class == TokenClass.EOS:
            return self.may_end
        data = self._vocabulary.token_bytes[token]
        extended = self._text + data
        return bool(
            token_class == TokenClass.TEXT and data and any(text.startswith(extended) for text in self._language)
        )

    def fill(self, row: NDArray[np.int32]) -> bool:
        assert self._before_preview is None, "a mask was asked for during a preview"
        assert not self._is_terminated, "a mask was asked of a terminated matcher"
        num_tokens = self._vocabulary.num_tokens
        row[:] = mask_words(filter(self.is_legal, range(num_tokens)), num_tokens)
        return bool(row.any())

    def look_ahead(self, drafts: Sequence[int], rows: NDArray[np.int32]) -> LookAhead:
        assert self._before_preview is None, "masks were asked for during a preview"
        before = self._text, self._is_terminated
        num_ready = dead_positions = 0
        for position in range(len(drafts) + 1):
            if not self.fill(rows[position]):
                dead_positions = 1 << position
                break
            num_ready += 1
            if position == len(drafts) or drafts[position] in self._vocabulary.eos_ids:
                break
            if not self.is_legal(drafts[position]):
                break
            self._text += self._vocabulary.token_bytes[drafts[position]]
        self._text, self._is_terminated = before
        return LookAhead(num_ready, dead_positions)

    def accept_bytes(self, data: bytes) -> bool:
        extended = self._text + data
        is_prefix = any(text.startswith(extended) for text in self._language)
        if is_prefix:
            self._text = extended
        return is_prefix

    def preview(self, tokens: Sequence[int]) -> int:
        assert self._before_preview is None
        self.calls.append(f"preview {len(tokens)}")
        self._before_preview = self._text, self._is_terminated
        for count, token in enumerate(tokens):
            if not self.is_legal(token):
                return count
            if token in self._vocabulary.eos_ids:
                self._is_terminated = True
            else:
                self._text += self._vocabulary.token_bytes[token]
        return len(tokens)

    def confirm(self) -> None:
        assert self._before_preview is not None
        self.calls.append("confirm")
        self._before_preview = None

    def discard(self) -> None:
        assert self._before_preview is not None
        self.calls.append("discard")
        self._text, self._is_terminated = self._before_preview
        self._before_preview = None
