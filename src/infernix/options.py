"""What a caller passes in: the constraint, the sampling parameters and the request options."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from infernix.errors import InvalidChoice, InvalidJsonSchema, InvalidOptions
from infernix.tools import ToolChoice, is_unicode

MAX_STOP_STRINGS = 16
MAX_STOP_STRING_CHARACTERS = 1024


class ConstraintKind(StrEnum):
    """The five forms a content constraint can have."""

    GRAMMAR = "grammar"
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"
    CHOICE = "choice"
    REGEX = "regex"


@runtime_checkable
class SchemaModel(Protocol):
    """A class that can say its JSON Schema, such as a pydantic model class."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class OutputConstraint:
    """The shape that the new content must have; a value that owns its source text.

    Use the constructors below. Nothing is parsed here: errors in the source come from preparing the request.
    """

    kind: ConstraintKind
    source: str = ""
    choices: tuple[str, ...] = ()
    ignore_keywords: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not isinstance(self.kind, ConstraintKind):
            raise InvalidOptions(f"expected a ConstraintKind, got {shown_value(self.kind)}", field="kind")
        _require_text(self.source, "source")
        if not isinstance(self.choices, tuple) or not all(isinstance(choice, str) for choice in self.choices):
            raise InvalidOptions("expected a tuple of strings", field="choices")
        names = self.ignore_keywords
        if not isinstance(names, frozenset) or not all(isinstance(name, str) for name in names):
            raise InvalidOptions("expected a frozenset of strings", field="ignore_keywords")
        if names and self.kind is not ConstraintKind.JSON_SCHEMA:
            raise InvalidOptions("only a JSON Schema has keywords", field="ignore_keywords")

    @classmethod
    def grammar(cls, text: str) -> OutputConstraint:
        """GBNF text whose entry rule is `root`."""
        return cls(ConstraintKind.GRAMMAR, _require_text(text, "grammar"))

    @classmethod
    def json_object(cls) -> OutputConstraint:
        """Any JSON object."""
        return cls(ConstraintKind.JSON_OBJECT)

    @classmethod
    def json_schema(
        cls, schema: str | bool | Mapping[str, Any] | type[SchemaModel], *, ignore_keywords: Iterable[str] = ()
    ) -> OutputConstraint:
        """A JSON Schema: its text, a parsed document, or a class with `model_json_schema()` (pydantic).

        A schema with a keyword that is not enforced is refused, unless the keyword is one of `ignore_keywords`: those
        have no effect. Enforced keywords cannot be ignored (InvalidOptions when the request is prepared).

        Raises InvalidJsonSchema for a document that JSON cannot express.
        """
        if isinstance(ignore_keywords, str) or not isinstance(ignore_keywords, Iterable):
            raise InvalidOptions("expected several names", field="ignore_keywords")
        ignored = frozenset(ignore_keywords)
        if isinstance(schema, str):
            return cls(ConstraintKind.JSON_SCHEMA, schema, ignore_keywords=ignored)
        document: object = _schema_of_class(schema) if isinstance(schema, type) else schema
        if not isinstance(document, Mapping | bool):
            raise InvalidJsonSchema(f"a schema is a JSON object or a boolean, not {type(schema).__name__}")
        try:
            text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidJsonSchema(f"the schema cannot be written as JSON: {error}") from error
        return cls(ConstraintKind.JSON_SCHEMA, text, ignore_keywords=ignored)

    @classmethod
    def choice(cls, choices: Iterable[str]) -> OutputConstraint:
        """Exactly one of these strings; the empty string is allowed, an empty list is not."""
        if isinstance(choices, str):
            raise InvalidChoice("choices are a list of strings, not one string")
        if not isinstance(choices, Iterable):
            raise InvalidChoice(f"choices are a list of strings, not {type(choices).__name__}")
        values = tuple(choices)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise InvalidChoice(f"a choice is a string, not {type(value).__name__}", index)
        return cls(ConstraintKind.CHOICE, choices=values)

    @classmethod
    def regex(cls, text: str) -> OutputConstraint:
        """A regular expression that the whole content matches."""
        return cls(ConstraintKind.REGEX, _require_text(text, "regex"))


def _schema_of_class(model: type) -> object:
    if not isinstance(model, SchemaModel):
        raise InvalidJsonSchema(f"the class {model.__name__} has no model_json_schema() that says its schema")
    try:
        return model.model_json_schema()
    except Exception as error:  # pydantic refuses types that JSON cannot express; a class may also do what it likes
        raise InvalidJsonSchema(f"{model.__name__}.model_json_schema() failed: {error}") from error


def _require_text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidOptions(f"expected text, not {type(value).__name__}", field=name)
    return value


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How the next token is drawn from the legal set. None: the model's own default.

    temperature   0..2; 0 takes the best legal token
    top_k         0 or more; 0 keeps the whole legal set
    top_p         0..1, cumulative probability kept
    min_p         0..1, least probability kept, relative to the best
    presence_penalty, frequency_penalty   -2..2, over the tokens generated so far
    seed          0..2**64-1; the same seed gives the same answer whatever else runs
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        _check_number("temperature", self.temperature, 0.0, 2.0)
        _check_number("top_p", self.top_p, 0.0, 1.0)
        _check_number("min_p", self.min_p, 0.0, 1.0)
        _check_number("presence_penalty", self.presence_penalty, -2.0, 2.0)
        _check_number("frequency_penalty", self.frequency_penalty, -2.0, 2.0)
        _check_integer("top_k", self.top_k, 0, 2**31 - 1)
        _check_integer("seed", self.seed, 0, 2**64 - 1)

    @classmethod
    def greedy(cls) -> SamplingOptions:
        """Always the best legal token, ties to the lower id."""
        return cls(temperature=0.0)


@dataclass(frozen=True, slots=True)
class SamplingParameters:
    """Sampling options with every field settled."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0


def resolve_sampling(
    options: SamplingOptions, defaults: SamplingParameters, *, constrained: bool
) -> SamplingParameters:
    """Caller's fields over the model's defaults.

    A content-constrained request drops the model's default penalties, because a language repeats its own structure
    by construction; penalties that the caller sets stay.
    """

    def pick(name: str) -> Any:
        chosen = getattr(options, name)
        if chosen is not None:
            return chosen
        if constrained and name in ("presence_penalty", "frequency_penalty"):
            return 0.0
        return getattr(defaults, name)

    return SamplingParameters(**{name: pick(name) for name in SamplingParameters.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Options of one generation request.

    max_new_tokens   output budget, 0 or more; 0 processes the prompt only
    constraint       the shape of the content, or None for free text
    sampling         how tokens are drawn
    tool_choice      how the prompt's tools may be called
    thinking_budget  tokens that the model may think before it is made to answer; None: as many as it likes

    Each of the following would break what a constraint promises, that of tool calls included, and is refused beside
    one:

    stop             up to MAX_STOP_STRINGS texts that end the output where they first come, in reasoning and content
    stop_token_ids   tokens that end the output, beside the model's own
    raw_output       the whole output is content: reasoning and tool calls stay in it as the model marks them
    publish_special_tokens   the spelling of control tokens is published too
    ignore_eos       the model's own end-of-sequence tokens do not end the output
    """

    max_new_tokens: int = 256
    constraint: OutputConstraint | None = None
    sampling: SamplingOptions = field(default_factory=SamplingOptions)
    tool_choice: ToolChoice = field(default_factory=ToolChoice)
    thinking_budget: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    raw_output: bool = False
    publish_special_tokens: bool = False
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        if self.max_new_tokens is None:
            raise InvalidOptions("expected an integer, got None", field="max_new_tokens")
        _check_integer("max_new_tokens", self.max_new_tokens, 0, 2**31 - 1)
        if self.constraint is not None and not isinstance(self.constraint, OutputConstraint):
            raise InvalidOptions(
                f"expected an OutputConstraint, got {shown_value(self.constraint)}", field="constraint"
            )
        if not isinstance(self.sampling, SamplingOptions):
            raise InvalidOptions(f"expected SamplingOptions, got {shown_value(self.sampling)}", field="sampling")
        if not isinstance(self.tool_choice, ToolChoice):
            raise InvalidOptions(f"expected a ToolChoice, got {shown_value(self.tool_choice)}", field="tool_choice")
        _check_integer("thinking_budget", self.thinking_budget, 0, 2**31 - 1)
        self._check_publication()

    def _check_publication(self) -> None:
        _check_stop_strings(self.stop)
        if not isinstance(self.stop_token_ids, tuple):
            raise InvalidOptions("expected a tuple of token ids", field="stop_token_ids")
        for token in self.stop_token_ids:
            if token is None:
                raise InvalidOptions("expected an integer, got None", field="stop_token_ids")
            _check_integer("stop_token_ids", token, 0, 2**31 - 1)
        for name in ("raw_output", "publish_special_tokens", "ignore_eos"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidOptions(f"expected true or false, got {shown_value(getattr(self, name))}", field=name)
        if self.raw_output and self.thinking_budget is not None:
            raise InvalidOptions("raw output has no thinking apart from the rest", field="thinking_budget")


def _check_stop_strings(stop: object) -> None:
    if not isinstance(stop, tuple) or not all(isinstance(text, str) for text in stop):
        raise InvalidOptions("expected a tuple of strings", field="stop")
    if len(stop) > MAX_STOP_STRINGS:
        raise InvalidOptions(f"{len(stop)} strings are more than {MAX_STOP_STRINGS}", field="stop")
    for text in stop:
        if not 1 <= len(text) <= MAX_STOP_STRING_CHARACTERS:
            raise InvalidOptions(f"a stop string has 1..{MAX_STOP_STRING_CHARACTERS} characters", field="stop")
        if not is_unicode(text):
            raise InvalidOptions("a stop string is Unicode: it holds a lone surrogate", field="stop")


def _check_number(name: str, value: float | None, low: float, high: float) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidOptions(f"expected a number, got {shown_value(value)}", field=name)
    if not low <= value <= high:
        raise InvalidOptions(f"{shown_value(value)} is outside {low:g}..{high:g}", field=name)


def _check_integer(name: str, value: int | None, low: int, high: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidOptions(f"expected an integer, got {shown_value(value)}", field=name)
    if not low <= value <= high:
        raise InvalidOptions(f"{shown_value(value)} is outside {low}..{high}", field=name)


def shown_value(value: object) -> str:
    """A value for a message. Python refuses to write out integers of thousands of digits."""
    if isinstance(value, int) and abs(value) > 10**40:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
