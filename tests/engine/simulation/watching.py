"""A Program that tells of every call, before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from infernix.program.program import Program

Hook = Callable[[str, bool], None]
"""Hears the name of a call, and whether it has been made or is about to be."""


class WatchedProgram:
    """Everything is the Program's own. What `hook` raises comes out of the call that it was told of."""

    def __init__(self, program: Program, hook: Hook) -> None:
        self._program = program
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._program, name)
        if not callable(value):
            return value

        def watched(*arguments: Any, **options: Any) -> Any:
            self._hook(name, False)
            result = value(*arguments, **options)
            self._hook(name, True)
            return result

        return watched

    @property
    def pool(self) -> Any:
        return self._program.pool
