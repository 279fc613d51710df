"""Telling what a caller said from what a template says, in a rendered conversation.

A caller's string may spell a control token. Rendered and tokenised as one text, that spelling would become the token,
and a user could end a turn or speak as the system. So strings that could have a part in such a spelling are rendered
between random marks, which tell afterwards what stems from a caller.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of rendered text; `is_said` tells that it stems from a caller."""

    text: str
    is_said: bool


class Marks:
    """What stands before and after a caller's string; nobody can guess it, and no template has a reason to touch it."""

    def __init__(self, spellings: Iterable[str]) -> None:
        """`spellings` are those of the control tokens."""
        secret = secrets.token_hex(16)
        self.opening, self.closing = f"\ue000{secret}\ue001", f"\ue001{secret}\ue000"
        self._spellings = tuple(spellings)
        self._edges = frozenset(spelling[0] for spelling in self._spellings).union(
            spelling[-1] for spelling in self._spellings
        )

    def enclose(self, text: str) -> str:
        """The string between marks."""
        return f"{self.opening}{text}{self.closing}"

    def is_harmless(self, text: str) -> bool:
        """Whether a string can be no part of a control token's spelling: not all of one, not its beginning or end, not
        a piece of its middle between what the template says.
        """
        return self._edges.isdisjoint(text) and not any(text in spelling for spelling in self._spellings)

    def secure(self, text: str) -> str:
        """The string between marks, or as it is if it is harmless."""
        return self.enclose(text) if text and not self.is_harmless(text) else text

    def split(self, marked: str) -> list[Region] | None:
        """The regions of a rendering with marks, empty ones left out; None where marks do not alternate."""
        regions: list[Region] = []
        is_said = False
        for part in re.split(f"({self.opening}|{self.closing})", marked):
            if part in (self.opening, self.closing):
                if is_said == (part == self.opening):
                    return None
                is_said = not is_said
            elif part:
                regions.append(Region(part, is_said))
        return None if is_said else regions


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with all its strings and names changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(name): map_strings(item, change) for name, item in value.items()}
    return [map_strings(item, change) for item in value] if isinstance(value, list) else value
