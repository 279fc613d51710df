"""What one request has put out: constraint, decoder and budget move together, and only on a commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.errors import InternalError
from infernix.frontend.budget import OutputBudget
from infernix.frontend.constraint import ConstraintState
from infernix.frontend.utf8 import decode_piece, decode_rest
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.results import ConstraintObservation, FinishReason


@dataclass(frozen=True, slots=True)
class OutputPreview:
    """What a commit would do: accept `num_accepted` tokens, publish `text`, and end if there is a `finish_reason`."""

    num_accepted: int
    text: str
    finish_reason: FinishReason | None

    @property
    def is_terminal(self) -> bool:
        """Whether the request ends with this commit."""
        return self.finish_reason is not None


@dataclass(frozen=True, slots=True)
class _Provisional:
    preview: OutputPreview
    tokens: tuple[int, ...]
    held: bytes


class OutputSession:
    """The output of one request, in transactions: `preview_model`, then `commit_preview` or `discard_preview`.

    Text is the bytes of TEXT tokens, decoded as UTF-8. Control tokens and the end-of-sequence token are committed and
    counted like all others, but are no text. An unfinished character is held back until a token completes it; at the
    end it becomes one U+FFFD.
    """

    def __init__(self, vocabulary: Vocabulary, budget: OutputBudget, constraint: ConstraintState | None = None) -> None:
        self._vocabulary = vocabulary
        self._budget = budget
        self._constraint = constraint
        self._token_ids: list[int] = []
        self._pieces: list[str] = []
        self._held = b""
        self._finish_reason: FinishReason | None = None
        self._provisional: _Provisional | None = None

    @property
    def is_constrained(self) -> bool:
        """Whether a grammar decides about the next token."""
        return self._constraint is not None

    @property
    def num_tokens_left(self) -> int:
        """Tokens that may still be committed."""
        return self._budget.num_tokens - len(self._token_ids)

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the output ended, or None while it goes on."""
        return self._finish_reason

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Every committed token."""
        return tuple(self._token_ids)

    @property
    def text(self) -> str:
        """All the committed text."""
        return "".join(self._pieces)

    def fill_mask(self, words: NDArray[np.int32]) -> bool:
        """Writes the legal next tokens of a constrained output; False: there is none."""
        self._require_settled()
        if self._constraint is None:
            raise ValueError("the output is not constrained")
        return self._constraint.fill_mask(words)

    def preview_model(self, tokens: Sequence[int]) -> OutputPreview:
        """Takes produced tokens (at least one) provisionally, up to an end-of-sequence token or the budget's end.

        Raises InternalError, with nothing changed, if a token is not legal: the mask was not honoured.
        """
        self._require_settled()
        accepted: list[int] = []
        reason: FinishReason | None = None
        for token in tokens:
            accepted.append(token)
            if token in self._vocabulary.eos_ids:
                reason = FinishReason.STOP_TOKEN
            elif len(accepted) == self.num_tokens_left:
                reason = self._budget.limit_reason
            if reason is not None:
                break
        if not 0 < len(accepted) <= self.num_tokens_left:
            raise ValueError(f"{len(accepted)} tokens to preview and {self.num_tokens_left} left in the budget")
        if self._constraint is not None:
            num_legal = self._constraint.preview(accepted)
            if num_legal < len(accepted):
                self._constraint.discard()
                raise InternalError(f"token {accepted[num_legal]} was produced and is not legal")
        return self._propose(tuple(accepted), reason)

    def preview_terminal(self, reason: FinishReason) -> OutputPreview:
        """An end without another token: cancellation, or a budget of nothing."""
        self._require_settled()
        return self._propose((), reason)

    def commit_preview(self) -> str:
        """Makes the preview count and returns the text to publish; nothing here can fail."""
        provisional = self._require_provisional()
        if self._constraint is not None and provisional.tokens:
            self._constraint.confirm()
        self._token_ids += provisional.tokens
        self._held = provisional.held
        self._finish_reason = provisional.preview.finish_reason
        if provisional.preview.text:
            self._pieces.append(provisional.preview.text)
        self._provisional = None
        return provisional.preview.text

    def discard_preview(self) -> None:
        """Takes the preview back, if there is one."""
        if self._provisional is None:
            return
        if self._constraint is not None and self._provisional.tokens:
            self._constraint.discard()
        self._provisional = None

    def observe_constraint(self) -> ConstraintObservation | None:
        """What is known of the constraint at the committed text."""
        return None if self._constraint is None else self._constraint.observe()

    def _propose(self, tokens: tuple[int, ...], reason: FinishReason | None) -> OutputPreview:
        data = b"".join(
            self._vocabulary.token_bytes[token]
            for token in tokens
            if self._vocabulary.classes[token] == TokenClass.TEXT
        )
        text, held = decode_piece(self._held, data)
        if reason is not None:
            text, held = text + decode_rest(held), b""
        preview = OutputPreview(len(tokens), text, reason)
        self._provisional = _Provisional(preview, tokens, held)
        return preview

    def _require_settled(self) -> None:
        if self._provisional is not None:
            raise ValueError("the preview is neither committed nor discarded")
        if self._finish_reason is not None:
            raise ValueError("the output has ended")

    def _require_provisional(self) -> _Provisional:
        if self._provisional is None:
            raise ValueError("there is no preview")
        return self._provisional
