"""What a tool, and the choice among tools, may be."""

from __future__ import annotations

import pytest

from infernix.errors import InvalidToolConstraint
from infernix.tools import ToolCall, ToolChoice, ToolDefinition, ToolMode


@pytest.mark.parametrize("name", ["f", "get weather", "现在", "x" * 128])
def test_names(name: str) -> None:
    assert ToolDefinition(name).name == name


@pytest.mark.parametrize("name", ["", "x" * 129, "a<b", "a>b", "a\nb", "\ud800"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(InvalidToolConstraint):
        ToolDefinition(name)


def test_texts_are_unicode() -> None:
    with pytest.raises(InvalidToolConstraint, match="description is no Unicode"):
        ToolDefinition("f", "a\udfff")


def test_parameters_that_json_cannot_express() -> None:
    with pytest.raises(InvalidToolConstraint, match="cannot be written as JSON"):
        ToolDefinition.of("f", {"default": float("nan")})


def test_a_named_choice_is_one_required_call() -> None:
    assert ToolChoice.named("f") == ToolChoice(ToolMode.REQUIRED, ("f",), parallel=False)


def test_arguments_of_a_call() -> None:
    assert ToolCall("f", '{"a": [1]}').arguments() == {"a": [1]}
