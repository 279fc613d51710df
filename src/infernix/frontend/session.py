"""What one request has put out: constraint, reader and budgets move together, and only on a commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.errors import InternalError
from infernix.frontend.answer_reader import AnswerReader
from infernix.frontend.budget import OutputBudget
from infernix.frontend.constraint import ConstraintState
from infernix.frontend.publication import Publisher
from infernix.frontend.thinking import ThinkingLimit
from infernix.matching.matcher import LookAhead
from infernix.results import (
    ConstraintObservation,
    FinishReason,
    OutputChannel,
    OutputDelta,
    PublishedDelta,
    ThinkingStatistics,
    ToolDiagnostics,
)
from infernix.tools import ToolCall


@dataclass(frozen=True, slots=True)
class OutputPreview:
    """What a commit would do: accept `num_accepted` tokens, publish `deltas`, and end if there is a `finish_reason`."""

    num_accepted: int
    deltas: tuple[PublishedDelta, ...]
    finish_reason: FinishReason | None

    @property
    def is_terminal(self) -> bool:
        """Whether the request ends with this commit."""
        return self.finish_reason is not None

    @property
    def text(self) -> str:
        """The content that is published."""
        return "".join(_texts(self.deltas, OutputChannel.CONTENT))


@dataclass(frozen=True, slots=True)
class _Thinking:
    """Tokens of reasoning so far."""

    num_model_tokens: int = 0
    num_injected_tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Provisional:
    preview: OutputPreview
    tokens: tuple[int, ...]
    reader: AnswerReader
    publisher: Publisher
    thinking: _Thinking
    has_thought: bool


class OutputSession:
    """The output of one request, in transactions: a preview, then `commit_preview` or `discard_preview`.

    `preview_model` takes what the model produced, `preview_control` the forced end of the reasoning, and
    `preview_terminal` an end without a token. Everything that can fail is done in the preview, on copies; a commit only
    puts them in place.

    Reasoning, content and tool calls are told apart by `reader`. The end-of-sequence token is committed and counted
    like all others, but is never published. `end_ids` are the tokens that end the output; a constrained output ends at
    the vocabulary's own and at no others.
    """

    def __init__(
        self,
        reader: AnswerReader,
        budget: OutputBudget,
        *,
        end_ids: frozenset[int],
        constraint: ConstraintState | None = None,
        thinking: ThinkingLimit | None = None,
        stop: tuple[str, ...] = (),
    ) -> None:
        self._reader = reader
        self._budget = budget
        self._end_ids = end_ids
        self._constraint = constraint
        self._limit = thinking or ThinkingLimit()
        self._publisher = Publisher(stop)
        self._thinking = _Thinking()
        self._has_thought = reader.is_thinking
        self._token_ids: list[int] = []
        self._pieces: dict[OutputChannel, list[str]] = {channel: [] for channel in OutputChannel}
        self._unpublished: tuple[PublishedDelta, ...] = ()
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
    def num_tokens(self) -> int:
        """Committed tokens."""
        return len(self._token_ids)

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
        """All the committed content."""
        return "".join(self._pieces[OutputChannel.CONTENT])

    @property
    def reasoning(self) -> str:
        """All the committed reasoning."""
        return "".join(self._pieces[OutputChannel.REASONING])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The completed calls of the committed output."""
        return self._reader.calls

    @property
    def tool_diagnostics(self) -> ToolDiagnostics | None:
        """What had to be said of the committed calls; None where none are read."""
        return self._reader.diagnostics

    @property
    def matched_stop_string(self) -> str | None:
        """The stop string that ended the output."""
        return self._publisher.matched_stop_string if self._finish_reason is FinishReason.STOP_STRING else None

    @property
    def thinking_statistics(self) -> ThinkingStatistics | None:
        """The committed reasoning in tokens; None where none was ever open."""
        if not self._has_thought:
            return None
        counts = self._thinking
        return ThinkingStatistics(self._limit.budget, counts.num_model_tokens, counts.num_injected_tokens)

    @property
    def pending_control_tokens(self) -> tuple[int, ...]:
        """Tokens that come next without asking the model: its thinking budget is used up and it still thinks.

        Empty otherwise, and where they would leave no token for an answer.
        """
        if self._finish_reason is not None or not self._reader.is_thinking:
            return ()
        is_used_up = self._limit.num_left(self._thinking.num_model_tokens) == 0
        return self._limit.forced_end if is_used_up and len(self._limit.forced_end) < self.num_tokens_left else ()

    def num_model_tokens_allowed(self, num_left: int) -> int:
        """At most how many tokens the next round may take from the model, of `num_left` that are possible otherwise.

        A round never goes past the thinking budget; 0 where `pending_control_tokens` come first. Where the model may
        open its reasoning itself, a round ends with the budget at the latest that would begin with its first token.
        """
        num_left = min(num_left, self.num_tokens_left)
        if self.pending_control_tokens:
            return 0
        if self._reader.may_open_thinking and self._limit.budget is not None:
            return min(num_left, 1 + self._limit.budget)
        num_thinking = self._limit.num_left(self._thinking.num_model_tokens) if self._reader.is_thinking else None
        # A budget that is used up without room for the forced end bounds nothing any more: the output's limit does.
        return min(num_left, num_thinking) if num_thinking else num_left

    def check_thinking_capacity(self) -> None:
        """Raises ThinkingBudgetCapacity where the thinking budget leaves no room for an answer; at the beginning."""
        if self._reader.is_thinking:
            self._limit.check_capacity(self._budget.num_tokens)
        elif self._reader.may_open_thinking:
            self._limit.check_capacity(self._budget.num_tokens, num_opening_tokens=1)

    def fill_mask(self, words: NDArray[np.int32]) -> bool:
        """Writes the legal next tokens of a constrained output; False: there is none."""
        self._require_settled()
        return self._require_constraint().fill_mask(words)

    def fill_masks(self, drafts: Sequence[int], rows: NDArray[np.int32]) -> LookAhead:
        """Writes the legal tokens at each position of a chain of drafts, int32 [len(drafts) + 1, num_mask_words].

        Row i is what may follow the committed output and drafts[:i]. Nothing is accepted.
        """
        self._require_settled()
        return self._require_constraint().fill_masks(drafts, rows)

    def seed(self, prefix: Sequence[bytes | int]) -> None:
        """Lets the output continue a given beginning of its content, text and control tokens; before anything else.

        Its content is not published again. A tool call that it leaves open is, from its beginning, with the first
        commit: only as a whole do its pieces join to its arguments.
        """
        self._require_settled()
        if self._token_ids:
            raise ValueError("the output has begun")
        reader = self._reader.copy()
        events = reader.seed(prefix)
        deltas: list[PublishedDelta] = []
        Publisher(()).publish(events, deltas)
        self._unpublished = tuple(delta for delta in deltas if not isinstance(delta, OutputDelta))
        self._reader = reader

    def preview_model(self, tokens: Sequence[int]) -> OutputPreview:
        """Takes produced tokens (at least one) provisionally, up to what ends the output: an end token, a stop string,
        or the budget. Only an output that ends accepts fewer tokens than it was given.

        Raises InternalError, with nothing changed, if a token is not legal (the mask was not honoured) or if grammar
        and reader disagree.
        """
        self._require_settled()
        allowed = self.num_model_tokens_allowed(self.num_tokens_left)
        if not tokens or not allowed:
            raise ValueError(f"{len(tokens)} tokens to preview and {allowed} allowed")
        if allowed < min(len(tokens), self.num_tokens_left):
            raise ValueError(f"{len(tokens)} tokens to preview and {allowed} left to think")
        return self._preview(tokens, is_control=False)

    def preview_control(self, tokens: Sequence[int]) -> OutputPreview:
        """Takes the pending control tokens, all of them, provisionally. They count in the output's budget.

        Raises InternalError, with nothing changed, where the grammar does not take them.
        """
        self._require_settled()
        if not tokens or tuple(tokens) != self.pending_control_tokens:
            raise ValueError("these are not the control tokens that are due")
        return self._preview(tokens, is_control=True)

    def preview_terminal(self, reason: FinishReason) -> OutputPreview:
        """An end without another token: cancellation, or a budget of nothing."""
        self._require_settled()
        reader, publisher = self._reader.copy(), self._publisher.copy()
        deltas = list(self._unpublished)
        publisher.publish(reader.finish(is_complete=False), deltas)
        publisher.finish(deltas)
        preview = OutputPreview(0, tuple(deltas), reason)
        self._provisional = _Provisional(preview, (), reader, publisher, self._thinking, self._has_thought)
        return preview

    def commit_preview(self) -> tuple[PublishedDelta, ...]:
        """Makes the preview count and returns what to publish; nothing here can fail."""
        provisional = self._require_provisional()
        if self._constraint is not None and provisional.tokens:
            self._constraint.confirm()
        self._token_ids += provisional.tokens
        self._reader = provisional.reader
        self._publisher = provisional.publisher
        self._thinking = provisional.thinking
        self._has_thought = provisional.has_thought
        self._finish_reason = provisional.preview.finish_reason
        for channel, pieces in self._pieces.items():
            pieces += _texts(provisional.preview.deltas, channel)
        self._unpublished = ()
        self._provisional = None
        return provisional.preview.deltas

    def discard_preview(self) -> None:
        """Takes the preview back, if there is one."""
        if self._provisional is None:
            return
        if self._constraint is not None and self._provisional.tokens:
            self._constraint.discard()
        self._provisional = None

    def observe_constraint(self) -> ConstraintObservation | None:
        """What is known of the constraint at the committed output."""
        return None if self._constraint is None else self._constraint.observe(self._reader.branch)

    def _preview(self, tokens: Sequence[int], *, is_control: bool) -> OutputPreview:
        reachable = self._up_to_an_end(tokens)
        if self._constraint is not None:
            num_legal = self._constraint.preview(reachable)
            if num_legal < len(reachable):
                self._constraint.discard()
                raise InternalError(f"token {reachable[num_legal]} was produced and is not legal")
        try:
            self._provisional = self._read(reachable, is_control=is_control)
        except BaseException:
            if self._constraint is not None:
                self._constraint.discard()
            raise
        return self._provisional.preview

    def _up_to_an_end(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """The tokens up to the budget's end or an end token, included."""
        reachable = tuple(tokens[: self.num_tokens_left])
        for index, token in enumerate(reachable):
            if token in self._end_ids:
                return reachable[: index + 1]
        return reachable

    def _read(self, tokens: tuple[int, ...], *, is_control: bool) -> _Provisional:
        reader, publisher, thinking = self._reader.copy(), self._publisher.copy(), self._thinking
        has_thought = self._has_thought
        deltas = list(self._unpublished)
        reason: FinishReason | None = None
        num_model_tokens = 0
        num_accepted = 0
        for token in tokens:
            num_accepted += 1
            if token in self._end_ids:
                reason = FinishReason.STOP_TOKEN
                break
            was_thinking = reader.is_thinking
            # Stop strings are looked for in what the model says, not in what is put into its mouth.
            publisher.publish(reader.feed(token), deltas, is_searched=not is_control)
            num_model_tokens += was_thinking and reader.is_thinking
            has_thought |= reader.is_thinking
            if publisher.matched_stop_string is not None:
                reason = FinishReason.STOP_STRING
                break
        if reason is None and num_accepted == self.num_tokens_left:
            reason = self._budget.limit_reason
        if reason is not None:
            publisher.publish(reader.finish(is_complete=reason is FinishReason.STOP_TOKEN), deltas)
            publisher.finish(deltas)
        if publisher.matched_stop_string is not None:  # also in what was only told to be content by the end
            reason = FinishReason.STOP_STRING
        if is_control:
            thinking = _Thinking(thinking.num_model_tokens, thinking.num_injected_tokens + len(tokens))
        else:
            thinking = _Thinking(thinking.num_model_tokens + num_model_tokens, thinking.num_injected_tokens)
        preview = OutputPreview(num_accepted, tuple(deltas), reason)
        return _Provisional(preview, tokens[:num_accepted], reader, publisher, thinking, has_thought)

    def _require_constraint(self) -> ConstraintState:
        if self._constraint is None:
            raise ValueError("the output is not constrained")
        return self._constraint

    def _require_settled(self) -> None:
        if self._provisional is not None:
            raise ValueError("the preview is neither committed nor discarded")
        if self._finish_reason is not None:
            raise ValueError("the output has ended")

    def _require_provisional(self) -> _Provisional:
        if self._provisional is None:
            raise ValueError("there is no preview")
        return self._provisional


def _texts(deltas: Sequence[PublishedDelta], channel: OutputChannel) -> list[str]:
    return [delta.text for delta in deltas if isinstance(delta, OutputDelta) and delta.channel is channel]
