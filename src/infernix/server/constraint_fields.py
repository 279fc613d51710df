"""The constraint fields that are the same on all protocols, and the rule that a request has one constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from infernix.options import OutputConstraint
from infernix.server.api_error import invalid
from infernix.server.body_model import Body, IdleField, Items, RawJsonField, never
from infernix.server.json_body import RawJson
from infernix.tools import ToolEnforcement

ToolConstraintsField = Literal["basic", "auto"] | None
"""`tool_constraints`: whether calls always have the form of one, or only what is asked for is enforced."""

SchemaName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""The name that a JSON Schema format of OpenAI's protocols has."""


class StructuredOutputs(Body):
    """`structured_outputs`: a constraint that no standard field has. Exactly one member."""

    grammar: str | None = None
    regex: str | None = None
    choice: Items[str] | None = None


class NamedSchema(Body):
    """A JSON Schema with the name that OpenAI's protocols ask for; `strict` switches nothing: a schema is enforced."""

    name: SchemaName
    description: str | None = None
    schema_: RawJsonField = Field(alias="schema")
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class SourcedConstraint:
    """A constraint and the field that its errors are about."""

    constraint: OutputConstraint
    field: str


def schema_constraint(schema: RawJson, field: str) -> SourcedConstraint:
    """A schema, with its numbers and the order of its names as they were sent."""
    return SourcedConstraint(OutputConstraint.json_schema(schema.text), field)


def json_object_constraint(field: str) -> SourcedConstraint:
    """Any JSON object."""
    return SourcedConstraint(OutputConstraint.json_object(), field)


def structured_constraint(outputs: StructuredOutputs | None) -> SourcedConstraint | None:
    """The constraint of `structured_outputs`. Raises ApiError unless it has exactly one member."""
    if outputs is None:
        return None
    given = [name for name in ("grammar", "regex", "choice") if getattr(outputs, name) is not None]
    if len(given) != 1:
        raise invalid("expected exactly one of grammar, regex and choice", "structured_outputs", "invalid_value")
    field = f"structured_outputs.{given[0]}"
    if outputs.grammar is not None:
        if not outputs.grammar:
            raise invalid("the grammar is empty", field, "invalid_grammar")
        return SourcedConstraint(OutputConstraint.grammar(outputs.grammar), field)
    if outputs.regex is not None:
        return SourcedConstraint(OutputConstraint.regex(outputs.regex), field)
    assert outputs.choice is not None
    return SourcedConstraint(OutputConstraint.choice(outputs.choice), field)


def one_constraint(*found: SourcedConstraint | None) -> SourcedConstraint | None:
    """The only one among those found. Raises ApiError for a second."""
    constraints = [constraint for constraint in found if constraint is not None]
    if len(constraints) > 1:
        fields = " and ".join(constraint.field for constraint in constraints)
        raise invalid(
            f"only one output constraint may be specified, not {fields}", constraints[1].field, "invalid_value"
        )
    return constraints[0] if constraints else None


def tool_enforcement(value: ToolConstraintsField) -> ToolEnforcement:
    """What `tool_constraints` asks for; basic where it is absent."""
    return ToolEnforcement.AUTOMATIC if value == "auto" else ToolEnforcement.BASIC


def refused_constraint_fields(schema_field: str) -> dict[str, IdleField]:
    """Fields by which other servers take a constraint. `schema_field` is the protocol's own field for a JSON Schema."""
    return {
        "guided_json": never(f"not known here: use {schema_field}"),
        "guided_regex": never("not known here: use structured_outputs.regex"),
        "guided_choice": never("not known here: use structured_outputs.choice"),
        "guided_grammar": never("not known here: use structured_outputs.grammar"),
        "grammar": never("not known here: use structured_outputs.grammar"),
        "json_schema": never(f"not known here: use {schema_field}"),
    }
