"""Tools: what a caller declares, how the model may call them, and the calls that come back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from infernix.errors import InvalidToolConstraint

MAX_TOOL_NAME_CHARACTERS = 128
# They frame names in the models' own tool syntaxes, so no name can hold them.
_FRAMING_CHARACTERS = frozenset("<>\r\n")


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A function that the model may call.

    name          1..128 characters of any script, without `<`, `>` and line breaks
    description   for the model only: no grammar ever holds it
    parameters    the JSON Schema of the arguments, as text, so that numbers and the order of names stay as written
    strict        whether the arguments must satisfy the schema; otherwise only the framing of calls is enforced

    Raises InvalidToolConstraint for a name that cannot be.
    """

    name: str
    description: str = ""
    parameters: str = "{}"
    strict: bool = False

    def __post_init__(self) -> None:
        for label in ("name", "description", "parameters"):
            if not isinstance(getattr(self, label), str):
                raise InvalidToolConstraint(f"a tool's {label} is text, not {type(getattr(self, label)).__name__}")
            if not is_unicode(getattr(self, label)):
                raise InvalidToolConstraint(f"a tool's {label} is no Unicode: it holds a lone surrogate")
        if not isinstance(self.strict, bool):
            raise InvalidToolConstraint("a tool's 'strict' is true or false")
        if not 1 <= len(self.name) <= MAX_TOOL_NAME_CHARACTERS:
            raise InvalidToolConstraint(f"a tool's name has 1..{MAX_TOOL_NAME_CHARACTERS} characters")
        if not _FRAMING_CHARACTERS.isdisjoint(self.name):
            raise InvalidToolConstraint(f"the tool name {self.name!r} holds '<', '>' or a line break")

    @classmethod
    def of(
        cls, name: str, parameters: Mapping[str, Any] | None = None, *, description: str = "", strict: bool = False
    ) -> ToolDefinition:
        """A tool whose `parameters` are a parsed JSON Schema (None: no parameters are declared)."""
        try:
            text = json.dumps(parameters if parameters is not None else {}, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidToolConstraint(f"the parameters of {name!r} cannot be written as JSON: {error}") from error
        return cls(name, description, text, strict)


class ToolMode(StrEnum):
    """Whether tools may, must or must not be called."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


class ToolEnforcement(StrEnum):
    """BASIC constrains the framing and names of every call; AUTOMATIC only what the request asks for.

    Under AUTOMATIC an ordinary auto choice among non-strict tools generates freely and is read tolerantly.
    """

    BASIC = "basic"
    AUTOMATIC = "automatic"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """How the declared tools may be called in this turn.

    allowed_names   only these may be called; None: all. The declarations the model sees stay the same.
    parallel        False: at most one call
    """

    mode: ToolMode = ToolMode.AUTO
    allowed_names: tuple[str, ...] | None = None
    parallel: bool = True
    enforcement: ToolEnforcement = ToolEnforcement.BASIC

    def __post_init__(self) -> None:
        if not isinstance(self.mode, ToolMode):
            raise InvalidToolConstraint("a tool choice's mode is a ToolMode: auto, none or required")
        if not isinstance(self.enforcement, ToolEnforcement):
            raise InvalidToolConstraint("a tool choice's enforcement is a ToolEnforcement: basic or automatic")
        if not isinstance(self.parallel, bool):
            raise InvalidToolConstraint("a tool choice's 'parallel' is true or false")
        names = self.allowed_names
        if names is not None and not (isinstance(names, tuple) and all(isinstance(name, str) for name in names)):
            raise InvalidToolConstraint("a tool choice's allowed names are a tuple of names")

    @classmethod
    def named(cls, name: str) -> ToolChoice:
        """Exactly one call, of this tool."""
        return cls(ToolMode.REQUIRED, (name,), parallel=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call: the tool's name and the text of its arguments, a JSON object."""

    name: str
    arguments_json: str

    def arguments(self) -> dict[str, Any]:
        """The parsed arguments."""
        value: dict[str, Any] = json.loads(self.arguments_json)
        return value


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a call as it is generated.

    The first piece of call `index` carries its name; the `arguments` of all its pieces join to its arguments' JSON.
    """

    index: int
    name: str | None
    arguments: str


def is_unicode(text: str) -> bool:
    """Whether a string is free of lone surrogates, which UTF-8 cannot hold."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
