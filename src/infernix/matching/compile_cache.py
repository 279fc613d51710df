"""What the compiler remembers: grammars and failures, the least recently used ones going first."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeAlias
from weakref import WeakValueDictionary

from infernix.errors import ConstraintError, TextLocation
from infernix.matching.compiled import CompiledGrammar

Outcome: TypeAlias = CompiledGrammar | ConstraintError

# What an entry takes beside its grammar or its error's texts: a rough figure for small objects.
_ENTRY_BYTES = 1024
# All sizes are looked at again when this share of the number of entries was asked for.
_UNMEASURED_SHARE = 8


class CompileCache:
    """Outcomes by key, up to `max_bytes` of them; not safe for threads by itself.

    Grammars grow while they are used, so sizes are looked at again and again: of the entry that is asked for each
    time, of all of them now and then, which costs a constant number of looks for each time.

    A grammar that is dropped while somebody still uses it is not forgotten: who asks for it again gets the same one,
    which then counts as kept again.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._kept: OrderedDict[Hashable, Outcome] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}
        self._total_bytes = 0
        self._dropped: WeakValueDictionary[Hashable, CompiledGrammar] = WeakValueDictionary()
        self._num_unmeasured = 0

    def get(self, key: Hashable) -> Outcome | None:
        """What is known of `key`, which is now the most recently used one."""
        outcome = self._kept.get(key)
        if outcome is None:
            outcome = self._dropped.pop(key, None)
        if outcome is not None:
            self.put(key, outcome)
        return outcome

    def put(self, key: Hashable, outcome: Outcome) -> None:
        """Keeps an outcome and drops the least recently used ones beyond the budget."""
        self._kept[key] = outcome
        self._kept.move_to_end(key)
        self._num_unmeasured += 1
        if self._num_unmeasured * _UNMEASURED_SHARE >= len(self._kept):
            self._measure_all()
        else:
            self._measure(key, outcome)
        self._trim()

    @property
    def num_bytes(self) -> int:
        """What is kept, as large as it is now."""
        self._measure_all()
        return self._total_bytes

    @property
    def num_live_bytes(self) -> int:
        """Grammars that were dropped, but that somebody still uses."""
        return sum(grammar.num_bytes for grammar in self._dropped.values())

    def __len__(self) -> int:
        return len(self._kept)

    def _measure(self, key: Hashable, outcome: Outcome) -> None:
        size = _num_bytes(outcome)
        self._total_bytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size

    def _measure_all(self) -> None:
        for key, outcome in self._kept.items():
            self._measure(key, outcome)
        self._num_unmeasured = 0

    def _trim(self) -> None:
        while self._total_bytes > self.max_bytes and self._kept:
            key, outcome = self._kept.popitem(last=False)
            self._total_bytes -= self._sizes.pop(key)
            if isinstance(outcome, CompiledGrammar):
                self._dropped[key] = outcome


def _num_bytes(outcome: Outcome) -> int:
    if isinstance(outcome, CompiledGrammar):
        return _ENTRY_BYTES + outcome.num_bytes
    values = [*outcome.args, *vars(outcome).values()]
    values += [value.line_text for value in values if isinstance(value, TextLocation)]
    return _ENTRY_BYTES + sum(sys.getsizeof(value) for value in values if isinstance(value, str))
