from __future__ import annotations

import pytest

from infernix.errors import (
    CacheCapacityExceeded,
    ConstraintError,
    ConstraintSource,
    ContextLengthExceeded,
    InvalidChoice,
    InvalidGrammar,
    InvalidJsonSchema,
    InvalidOptions,
    InvalidPrompt,
    InvalidToolConstraint,
    ThinkingBudgetCapacity,
    UnsupportedJsonSchema,
)
from infernix.server.api_error import Dialect, ErrorKind, dialect_of
from infernix.server.engine_errors import FieldSources, api_error

SOURCES = FieldSources(
    constraint="output_config.format.schema",
    tools=("tools/0/tools/0", "tools/0/tools/1"),
    tool_parameters="input_schema",
    options={"max_new_tokens": "max_tokens", "thinking_budget": "thinking.budget_tokens"},
    prompt="input",
    thinking="reasoning.effort",
)


def about_tools(error: ConstraintError) -> ConstraintError:
    error.source = ConstraintSource.TOOLS
    return error


@pytest.mark.parametrize(
    ("error", "param"),
    [
        (InvalidOptions("too much", field="max_new_tokens"), "max_tokens"),
        (InvalidOptions("no", field="stop"), "stop"),
        (InvalidPrompt("no"), "input"),
        (InvalidPrompt("no", field="thinking"), "reasoning.effort"),
        (InvalidPrompt("no", field="continue_final"), "input"),
        (ContextLengthExceeded("no"), "input"),
        (ThinkingBudgetCapacity("no"), "thinking.budget_tokens"),
        (InvalidGrammar("no"), "output_config.format.schema"),
        (InvalidJsonSchema("no", "/a~1b/0"), "output_config.format.schema/a~1b/0"),
        (InvalidChoice("no", 3), "output_config.format.schema/3"),
        (InvalidToolConstraint("no"), "tool_choice"),
        (InvalidToolConstraint("no", "/1/name"), "tools/0/tools/1/name"),
        (InvalidToolConstraint("no", "/7/name"), "tool_choice"),
        (about_tools(UnsupportedJsonSchema("no", "/0/parameters/x/y")), "tools/0/tools/0/input_schema/x/y"),
        (about_tools(UnsupportedJsonSchema("no", "/0/parameters")), "tools/0/tools/0/input_schema"),
        (CacheCapacityExceeded("no"), None),
    ],
)
def test_places(error: Exception, param: str | None) -> None:
    found = api_error(error, SOURCES)
    assert (found.kind, found.param) == (ErrorKind.INVALID, param)
    assert found.code == error.code  # type: ignore[attr-defined]


def test_a_request_without_a_constraint_has_no_place_for_one() -> None:
    assert api_error(InvalidGrammar("no"), FieldSources()).param is None


def test_fields_that_a_protocol_does_not_rename() -> None:
    assert api_error(ThinkingBudgetCapacity("no"), FieldSources()).param == "thinking_budget"
    assert api_error(InvalidPrompt("no", field="thinking"), FieldSources()).param == "messages"


def test_both_envelopes() -> None:
    error = api_error(InvalidOptions("too much", field="max_new_tokens"), SOURCES)
    assert Dialect.OPENAI.body(error, "req_1") == {
        "error": {
            "message": "max_tokens: too much",
            "type": "invalid_request_error",
            "param": "max_tokens",
            "code": "invalid_options",
        }
    }
    assert Dialect.ANTHROPIC.body(error, "req_1") == {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "max_tokens: too much",
            "details": {"error_code": "invalid_options"},
        },
        "request_id": "req_1",
    }


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("/v1/messages", Dialect.ANTHROPIC),
        ("/v1/messages/count_tokens", Dialect.ANTHROPIC),
        ("/v1/messagesx", Dialect.OPENAI),
        ("/v1/chat/completions", Dialect.OPENAI),
        ("/", Dialect.OPENAI),
    ],
)
def test_paths_have_dialects(path: str, dialect: Dialect) -> None:
    assert dialect_of(path) is dialect
