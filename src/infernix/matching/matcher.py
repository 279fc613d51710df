"""One request's place in its grammar, and the transaction around it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from infernix.matching.configurations import DEAD

if TYPE_CHECKING:
    from infernix.matching.compiled import CompiledGrammar

_TERMINATED = -1
# A row that nobody may read for its meaning still has to be safe to read: token 0 and nothing else.
_FILLER = 1
# A given text may be longer than one table has room for: after so many bytes it may go on in another.
_PREFIX_BYTES = 1 << 14


@dataclass(frozen=True, slots=True)
class LookAhead:
    """What looking ahead over a draft chain found.

    Rows 0 .. num_ready - 1 hold masks. Bit i of `dead_positions` is set where position i can be reached but no token
    is legal there. Rows from num_ready on are unreachable or dead and hold a filler.
    """

    num_ready: int
    dead_positions: int


class Companion(Protocol):
    """A rule that no context-free grammar can state, kept beside the matcher.

    It follows the accepted tokens through states that are values and never change, so the matcher's transaction is
    its own too. EOS is the grammar's business alone.
    """

    def start(self) -> Hashable:
        """The state before the first token."""
        ...

    def after(self, state: Hashable, token: int) -> Hashable | None:
        """The state after a token that the grammar takes, or None where the rule refuses it."""
        ...

    def clear(self, state: Hashable, row: NDArray[np.int32]) -> None:
        """Clears the bits of the tokens that `after` would refuse; `row` is the caller's own copy."""
        ...


class Matcher:
    """Follows one text token by token.

    The state is a path of configurations from the last committed position on, so looking ahead, taking back and
    pausing cost nothing and memory does not grow with the text. Not shared between requests or threads.
    """

    __slots__ = (
        "_companion",
        "_companion_states",
        "_eos_ids",
        "_epoch",
        "_grammar",
        "_marks",
        "_path",
        "_preview_begin",
    )

    def __init__(self, grammar: CompiledGrammar, companion: Companion | None = None) -> None:
        self._grammar = grammar
        self._eos_ids = grammar.vocabulary.eos_ids
        self._epoch = grammar.epoch
        self._path = [self._epoch.table.start]
        self._companion = companion
        # Beside `_path`, entry for entry; empty without a companion.
        self._companion_states: list[Hashable] = [] if companion is None else [companion.start()]
        self._marks: list[int] = []
        self._preview_begin: int | None = None

    @property
    def is_terminated(self) -> bool:
        """An EOS token was accepted: nothing can follow."""
        return self._path[-1] == _TERMINATED

    @property
    def may_end(self) -> bool:
        """The text so far belongs to the language."""
        return self.is_terminated or self._epoch.may_end(self._path[-1])

    def accept(self, token: int) -> bool:
        """Moves on by `token` if it is legal; otherwise says no and stays."""
        configuration, epoch = self._path[-1], self._epoch
        if token in self._eos_ids:
            following = _TERMINATED if configuration != _TERMINATED and epoch.may_end(configuration) else DEAD
        else:
            following = epoch.step(configuration, token) if configuration != _TERMINATED else DEAD
        if following == DEAD:
            return False
        is_provisional = bool(self._marks) or self._preview_begin is not None
        if self._companion is not None:
            state = self._companion_states[-1]
            if following != _TERMINATED:
                after = self._companion.after(state, token)
                if after is None:
                    return False
                state = after
            if not is_provisional:
                self._companion_states.clear()
            self._companion_states.append(state)
        if is_provisional:
            self._path.append(following)
        else:
            self._path[0] = following
            if epoch.is_full:
                self._leave_epoch()
        return True

    def _leave_epoch(self) -> None:
        """Goes on in another table than a full one, unless something provisional still refers to this one.

        Never called by `confirm`, which must not fail.
        """
        is_committed = not self._marks and self._preview_begin is None
        if is_committed and not self.is_terminated:
            self._path[0], self._epoch = self._grammar.move(self._path[0], self._epoch)

    def _keep(self, length: int) -> None:
        """Takes back what came after the first `length` positions."""
        del self._path[length:]
        del self._companion_states[length:]

    def accept_bytes(self, data: bytes) -> bool:
        """Moves on by the bytes of a given text, as a continuation's prefix; says no and stays where it leaves.

        RuntimeError with a companion: bytes alone do not tell it which tokens it has to follow.
        """
        if self.is_terminated or self._marks or self._preview_begin is not None:
            raise RuntimeError("a prefix is accepted before anything else")
        if self._companion is not None:
            raise RuntimeError("a companion follows tokens, not bytes")
        configuration, epoch = self._path[0], self._epoch
        text = np.frombuffer(data, np.uint8).copy()
        for begin in range(0, len(text), _PREFIX_BYTES):
            configuration = epoch.step_bytes(configuration, text, begin, min(begin + _PREFIX_BYTES, len(text)))
            if configuration == DEAD:
                return False
            if epoch.is_full:
                configuration, epoch = self._grammar.move(configuration, epoch)
        self._path[0], self._epoch = configuration, epoch
        return True

    def mark(self) -> int:
        """A position to come back to; history is kept until `rollback` to it."""
        self._marks.append(len(self._path) - 1)
        return len(self._marks) - 1

    def rollback(self, mark: int) -> None:
        """Back to where `mark` was set; it and all later marks are gone."""
        self._keep(self._marks[mark] + 1)
        del self._marks[mark:]

    def preview(self, tokens: Sequence[int]) -> int:
        """Accepts the longest legal prefix of `tokens`, to be confirmed or discarded; returns its length."""
        if self._preview_begin is not None:
            raise RuntimeError("a preview is pending already")
        if self._epoch.is_full:
            self._leave_epoch()
        self._preview_begin = len(self._path) - 1
        for count, token in enumerate(tokens):
            if not self.accept(token):
                return count
        return len(tokens)

    def confirm(self) -> None:
        """Makes the pending preview the committed state and drops what came before it."""
        if self._preview_begin is None:
            raise RuntimeError("no preview is pending")
        self._preview_begin = None
        if not self._marks:
            del self._path[:-1]
            del self._companion_states[:-1]

    def discard(self) -> None:
        """Takes the pending preview back."""
        if self._preview_begin is None:
            raise RuntimeError("no preview is pending")
        self._keep(self._preview_begin + 1)
        self._preview_begin = None

    def fill(self, row: NDArray[np.int32]) -> bool:
        """Writes the mask of the next token, int32 [num_mask_words]; False where no token is legal: a dead end.

        A terminated matcher has no next token; asking it is a RuntimeError.
        """
        configuration = self._open_position()
        is_alive = self._epoch.copy_row(configuration, row)
        if self._companion is None or not is_alive:
            return is_alive
        self._companion.clear(self._companion_states[-1], row)
        return bool(row.any())

    def _open_position(self) -> int:
        """The configuration whose next token is asked for."""
        if self._epoch.is_full:
            self._leave_epoch()
        configuration = self._path[-1]
        if configuration == _TERMINATED:
            raise RuntimeError("a terminated matcher has no next token")
        return configuration

    def look_ahead(self, drafts: Sequence[int], rows: NDArray[np.int32]) -> LookAhead:
        """Masks along a chain of drafts, int32 [len(drafts) + 1, num_mask_words]; the state stays as it was.

        Position i has the mask after drafts[:i]. The position of the first illegal draft is ready; those after it, and
        those after an EOS draft, are unreachable.
        """
        if self._preview_begin is not None:
            raise RuntimeError("a preview is pending: confirm or discard it before looking ahead")
        configuration = self._open_position()
        # Positions are values, so walking along the drafts takes nothing from the matcher's own state.
        companion_state = self._companion_states[-1] if self._companion is not None else None
        epoch, eos_ids, companion = self._epoch, self._eos_ids, self._companion
        num_ready = 0
        dead_positions = 0
        for position, (row, draft) in enumerate(zip_longest(rows[: len(drafts) + 1], drafts)):
            is_alive = epoch.copy_row(configuration, row, drafts, position)
            if companion is not None and is_alive:
                companion.clear(companion_state, row)
                is_alive = bool(row.any())
            if not is_alive:
                dead_positions = 1 << num_ready
                break
            num_ready += 1
            if draft is None or draft in eos_ids:
                break
            configuration = epoch.step(configuration, draft)
            if configuration == DEAD:
                break
            if companion is not None:
                companion_state = companion.after(companion_state, draft)
                if companion_state is None:
                    break
        rows[num_ready:] = 0
        rows[num_ready:, 0] = _FILLER
        return LookAhead(num_ready, dead_positions)
