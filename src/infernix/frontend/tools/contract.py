"""What a request's tools mean, for the grammar that is generated and for the reader of what was generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ArgumentEncoding(StrEnum):
    """How an argument's value is written.

    TEXT     the characters of a string, as they are
    JSON     the text of a JSON value
    HINTED   free text: whether it is JSON or a string shows when it is complete
    """

    TEXT = "text"
    JSON = "json"
    HINTED = "hinted"


@dataclass(frozen=True, slots=True)
class ArgumentContract:
    """One argument; `hint` holds the JSON type names that its declaration admits, None: nothing is declared."""

    name: str
    encoding: ArgumentEncoding
    hint: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ToolContract:
    """One tool that may be called. A strict tool has no other arguments than these.

    `index` is its place among all declared tools, and `parameters` the text of a strict tool's JSON Schema; no grammar
    needs that of another.
    """

    name: str
    strict: bool
    arguments: Mapping[str, ArgumentContract]
    index: int = 0
    parameters: str = ""


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """The tools of one answer and how they may be called; no tools: none may be.

    required      at least one call, and nothing else
    parallel      more than one call is allowed
    constrained   a grammar enforces all this; otherwise the answer is free and read tolerantly
    """

    tools: tuple[ToolContract, ...]
    required: bool
    parallel: bool
    constrained: bool
