"""The typed form of a request's body: every field known, every value of its type, everything else refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    GetPydanticSchema,
    ValidationError,
)
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from infernix.server.api_error import ApiError, invalid
from infernix.server.json_body import RawJson, RawPath, read_json_object


class Body(BaseModel):
    """Base of all parts of request bodies."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )


def _raw_schema(_source: Any, _handler: Any) -> CoreSchema:
    return core_schema.is_instance_schema(
        RawJson,
        metadata={"pydantic_js_functions": [_any_schema]},
    )


def _any_schema(_schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
    return {"type": ["object", "boolean"]}


def _items(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    schema = cast(dict[str, Any], handler(source))
    # Pydantic never lets go of Python's interpreter lock, a call of a function of Python's does.
    items = core_schema.no_info_before_validator_function(_unchanged, schema["items_schema"])
    return cast(CoreSchema, {**schema, "items_schema": items, "fail_fast": True})


def _unchanged(value: Any) -> Any:
    return value


ItemT = TypeVar("ItemT")

Items = Annotated[list[ItemT], GetPydanticSchema(_items)]
"""A list, of whose wrong items only the first is told: nobody reads a report on each of a hundred thousand. Other
threads go on while a long one is read."""

RawJsonField = Annotated[RawJson, GetPydanticSchema(_raw_schema)]
"""A JSON Schema, as the text that the client sent; the body's raw paths must lead to it."""


def schema_text(schema: RawJson | None) -> str | None:
    """The schema as it was sent; None where there is none, also where null, which stays a text too, stands for it."""
    return None if schema is None or schema.text == "null" else schema.text


@dataclass(frozen=True, slots=True)
class IdleField:
    """A field that is honoured only with values that ask for nothing.

    accepts   whether a value does so (null always does)
    reason    what is told where it does not, with the field to use instead where there is one
    shape     JSON Schema of the accepted values, for the OpenAPI document
    code      of the refusal
    """

    accepts: Callable[[object], bool]
    reason: str
    shape: Mapping[str, Any]
    code: str = "unsupported_parameter"


def any_text(reason: str = "expected a string") -> IdleField:
    """A field whose strings are for the client's own books."""
    return IdleField(lambda value: isinstance(value, str), reason, {"type": "string"})


def any_object(reason: str = "expected an object") -> IdleField:
    """A field whose objects are for the client's own books."""
    return IdleField(lambda value: isinstance(value, dict), reason, {"type": "object"})


def only(*values: object, reason: str) -> IdleField:
    """A field that may have these values."""
    # True == 1 in Python, and false is not 0 in JSON.
    known = [(type(value), value) for value in values]
    return IdleField(lambda value: (type(value), value) in known, reason, {"enum": [*values, None]})


def never(reason: str, code: str = "unsupported_parameter") -> IdleField:
    """A field of something that is not done here; only null, which asks for nothing, may stand there."""
    return IdleField(lambda value: False, reason, {"type": "null"}, code)


_OWN_CODES = frozenset({"tool_type_not_supported"})

BodyT = TypeVar("BodyT", bound=Body)


def read_body(
    data: bytes, model: type[BodyT], *, raw_paths: Sequence[RawPath] = (), idle: Mapping[str, IdleField] | None = None
) -> BodyT:
    """The body as an instance of `model`, without its idle fields. Raises ApiError with the path of what is wrong."""
    document = read_json_object(data, raw_paths)
    for name, field in (idle or {}).items():
        value = document.pop(name, None)
        if value is not None and not field.accepts(value):
            raise invalid(field.reason, name, field.code)
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise validation_error(error) from None


def validation_error(error: ValidationError) -> ApiError:
    """The first thing that is wrong, by its place."""
    details = error.errors(include_url=False, include_context=True, include_input=False)
    # An unknown field is the likeliest cause of whatever else is found.
    first = next((detail for detail in details if detail["type"] == "extra_forbidden"), details[0])
    param = field_path(first["loc"])
    return invalid(_reason(first), param or None, _code(first))


def field_path(loc: Sequence[str | int]) -> str:
    """`messages[0].content`; the names of alternatives, which stand in angle brackets, are no fields."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not part.startswith("<"):
            path += f".{part[:80]}" if path else part[:80]
    return path


def _reason(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        return "unknown field"
    if detail["type"] == "missing":
        return "missing"
    message = detail["msg"]
    return message[:1].lower() + message[1:]


def _code(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        return "unknown_parameter"
    if detail["type"] in _OWN_CODES:
        return detail["type"]
    return "missing_required_parameter" if detail["type"] == "missing" else "invalid_value"


def openapi_post(model: type[Body], idle: Mapping[str, IdleField]) -> dict[str, Any]:
    """`openapi_extra` of a route that reads its body itself: the JSON Schema of the body, idle fields included."""
    schema = model.model_json_schema()
    schema["properties"] |= {name: {"anyOf": [dict(field.shape), {"type": "null"}]} for name, field in idle.items()}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def tag_by(member: str, tags: Mapping[str, str]) -> Callable[[object], str | None]:
    """For a Discriminator: the tag of what an object says in `member`; None, which is refused, for everything else."""

    def tag(value: object) -> str | None:
        kind = value.get(member) if isinstance(value, dict) else None
        return tags.get(kind) if isinstance(kind, str) else None

    return tag
