"""Everything that Infernix raises on purpose.

    InfernixError
    ├── RequestError                  the request cannot be honoured; nothing was generated for it
    │   ├── InvalidOptions            a field has a value that it cannot have, or two fields exclude each other
    │   ├── InvalidPrompt             the prompt or a message cannot be rendered
    │   ├── ContextLengthExceeded     the prompt leaves no room for a single new token
    │   ├── ThinkingBudgetCapacity    the output budget has no room for the forced end of thinking
    │   ├── CacheCapacityExceeded     the engine's memory for tokens does not hold the request, even alone
    │   └── ConstraintError           the output constraint is at fault
    │       ├── InvalidGrammar        GBNF text that cannot be read
    │       ├── InvalidRegex          a regular expression that cannot be read, or asks for an unsupported feature
    │       ├── InvalidChoice         a choice list that cannot be used
    │       ├── InvalidJsonSchema     a document that is not a JSON Schema
    │       ├── UnsupportedJsonSchema     a schema that would not be enforced to the letter
    │       ├── UnsatisfiableJsonSchema   a schema that no value satisfies
    │       ├── InvalidToolConstraint tools, or the choice among them, that cannot be used
    │       ├── EmptyLanguage         a constraint to which no text belongs
    │       ├── ConstraintTooLarge    a named bound of the compiler or of the matcher was met
    │       └── ConstraintDeadEnd     no token of the vocabulary can continue the text
    ├── ModelLoadError                a model directory or a weight file cannot be used
    ├── EngineUnavailable             the engine cannot serve the request now, whatever is in it
    │   ├── Overloaded                as many requests as the engine takes are under way
    │   ├── QueueTimeout              the request's deadline passed before its turn came
    │   └── EngineClosed              the engine was closed, or stopped, before the request was done
    └── InternalError                 a defect of the engine or of a model, never of the request
        └── NonFiniteLogits           the model produced no finite score for a legal token

`code` is stable and meant for programs; `message` says what is wrong; the place is in the text and in its own
attribute (`location` for texts, `pointer` for schemas, `index` for choices). `source` says whether the content
constraint or the tools are at fault.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar


class InfernixError(Exception):
    """Base of all errors raised on purpose."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: `args` is the finished text, which a constructor would finish once more."""
        return _restored, (type(self), self.args), vars(self)


def _restored(error_class: type[InfernixError], args: tuple[Any, ...]) -> InfernixError:
    return error_class.__new__(error_class, *args)


class RequestError(InfernixError):
    """The request cannot be honoured as asked."""

    code = "invalid_request"


class InvalidOptions(RequestError):
    """A request option is out of range, or two options exclude each other; `field` names it, `reason` says why."""

    code = "invalid_options"

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.reason = message


class InvalidPrompt(RequestError):
    """The prompt or a message list cannot be rendered; `field` names another field of the ChatPrompt at fault."""

    code = "invalid_prompt"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class ContextLengthExceeded(RequestError):
    """The prompt fills the context: there is no position left to generate at."""

    code = "context_length_exceeded"


class ThinkingBudgetCapacity(RequestError):
    """The output budget has no room for the text that ends thinking and a token after it."""

    code = "thinking_budget_capacity_insufficient"


class CacheCapacityExceeded(RequestError):
    """The engine's memory for tokens does not hold the request, even with nothing else in it."""

    code = "cache_capacity_exceeded"


@dataclass(frozen=True, slots=True)
class TextLocation:
    """A place in a source text: `line` and `column` count from 1, in code points; `line_text` is the whole line."""

    line: int
    column: int
    line_text: str

    @classmethod
    def at(cls, text: str, offset: int) -> TextLocation:
        """The place of the code point at `offset` (0 <= offset <= len(text))."""
        line_start = text.rfind("\n", 0, offset) + 1
        line_end = text.find("\n", offset)
        return cls(
            line=text.count("\n", 0, offset) + 1,
            column=offset - line_start + 1,
            line_text=text[line_start : len(text) if line_end < 0 else line_end].removesuffix("\r"),
        )

    def excerpt(self, max_columns: int = 100) -> str:
        """The line with a caret under the place; a long line is cut to a window around it."""
        start = max(0, min(self.column - 1 - max_columns // 2, len(self.line_text) - max_columns))
        window = "".join(map(_visible, self.line_text[start : start + max_columns]))
        return f"{window}\n{' ' * (self.column - 1 - start)}^"


def _visible(character: str) -> str:
    """One column wide, and harmless: control characters move the caret, half a surrogate pair cannot be printed."""
    if character == "\t":
        return " "
    return "\ufffd" if unicodedata.category(character) in ("Cc", "Cs") else character


class ConstraintSource(StrEnum):
    """What a ConstraintError is about: the content constraint, or the tools and the choice among them."""

    CONSTRAINT = "constraint"
    TOOLS = "tools"


class ConstraintError(RequestError):
    """The output constraint cannot be used.

    `source` is what it is about; `pointer` a JSON Pointer (RFC 6901) into the schema, or into the list of tools, "" for
    the whole.
    """

    code = "invalid_constraint"
    source: ConstraintSource = ConstraintSource.CONSTRAINT
    pointer: str = ""


def _located(message: str, location: TextLocation) -> str:
    return f"{message} at line {location.line}, column {location.column}\n{location.excerpt()}"


class _TextConstraintError(ConstraintError):
    def __init__(self, message: str, location: TextLocation | None = None) -> None:
        super().__init__(message if location is None else _located(message, location))
        self.location = location


class InvalidGrammar(_TextConstraintError):
    """GBNF text that cannot be read or used; `location` is its place."""

    code = "invalid_grammar"


class InvalidRegex(_TextConstraintError):
    """A regular expression that cannot be read, or that uses an unsupported feature; `location` is its place."""

    code = "invalid_regex"


class InvalidChoice(ConstraintError):
    """A choice list that cannot be used; `index` is the offending entry where there is one."""

    code = "invalid_choice"

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message if index is None else f"{message} at entry {index}")
        self.index = index


class _SchemaError(ConstraintError):
    def __init__(self, message: str, pointer: str = "", *, location: TextLocation | None = None) -> None:
        super().__init__(f"{message} at {pointer or '/'}" if location is None else _located(message, location))
        self.pointer = pointer
        self.location = location


class InvalidJsonSchema(_SchemaError):
    """A document that is not a JSON Schema; `pointer` is a JSON Pointer (RFC 6901), "" for the root.

    For a text that is not JSON, `location` is the place instead.
    """

    code = "invalid_json_schema"


class UnsupportedJsonSchema(_SchemaError):
    """A schema with an assertion that would not be enforced to the letter; `pointer` names it."""

    code = "unsupported_json_schema"


class UnsatisfiableJsonSchema(_SchemaError):
    """A schema that no JSON value satisfies."""

    code = "unsatisfiable_json_schema"


class InvalidToolConstraint(ConstraintError):
    """Tools, or the choice among them, that cannot be used; `pointer` leads into the list of tools ("" for none)."""

    code = "invalid_tool_constraint"
    source = ConstraintSource.TOOLS

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(f"{message} at {pointer}" if pointer else message)
        self.pointer = pointer


class EmptyLanguage(ConstraintError):
    """The constraint can be read, but no text at all belongs to it."""

    code = "empty_language"


class ConstraintTooLarge(_TextConstraintError):
    """A bound was met; the message names the bound and its value, `location` the place where the source has one."""

    code = "constraint_too_large"


class ConstraintDeadEnd(ConstraintError):
    """The grammar can continue, but no token of this vocabulary can spell a continuation."""

    code = "constraint_dead_end"


class ModelLoadError(InfernixError):
    """A model directory or weight file is missing, incomplete, corrupt or of an unsupported kind."""

    code = "model_load_error"


class EngineUnavailable(InfernixError):
    """The engine cannot serve the request now; another time, or with another load, it may."""

    code = "engine_unavailable"


class Overloaded(EngineUnavailable):
    """As many requests as the engine takes are under way."""

    code = "server_overloaded"


class QueueTimeout(EngineUnavailable):
    """The request's deadline passed before its turn came."""

    code = "request_queue_timeout"


class EngineClosed(EngineUnavailable):
    """The engine was closed, or stopped after failures, before the request was done."""

    code = "engine_closed"


class InternalError(InfernixError):
    """A defect: of the engine, or of the model's numbers. Never the request's fault."""

    code = "internal_error"


class NonFiniteLogits(InternalError):
    """No legal token has a finite logit."""

    code = "non_finite_logits"
