"""What all bodies have in common, whatever their protocol."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from infernix.server.body_model import Body, Items
from infernix.server.chat.body import ChatBody
from infernix.server.messages.body import CountBody as MessagesCountBody
from infernix.server.messages.body import MessagesBody
from infernix.server.responses.body import CountBody as ResponsesCountBody
from infernix.server.responses.body import ResponsesBody


class Numbers(Body):
    """A list in a body."""

    values: Items[int]


def test_of_a_list_only_the_first_wrong_item_is_told() -> None:
    with pytest.raises(ValidationError) as caught:
        Numbers.model_validate({"values": [1, "a", "b", *["c"] * 1000]})
    assert [error["loc"] for error in caught.value.errors()] == [("values", 1)]
    assert Numbers.model_validate({"values": [1, 2]}).values == [1, 2]


def test_other_threads_can_run_between_two_items() -> None:
    """They can where a function of Python's is called, and not inside of Pydantic."""
    num_calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal num_calls
        num_calls += event == "call"

    sys.setprofile(count)
    try:
        Numbers.model_validate({"values": [1] * 500})
    finally:
        sys.setprofile(None)
    assert num_calls >= 500


def lists(schema: Any) -> Iterator[dict[str, Any]]:
    """Every list in a core schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "list":
            yield schema
        for part in schema.values():
            yield from lists(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            yield from lists(part)


@pytest.mark.parametrize("model", [ChatBody, ResponsesBody, ResponsesCountBody, MessagesBody, MessagesCountBody])
def test_every_list_of_every_body_is_such_a_list(model: type[Body]) -> None:
    found = list(lists(model.__pydantic_core_schema__))
    assert len(found) >= 5
    assert all(
        (each.get("fail_fast") and each["items_schema"]["type"] == "function-before") or each.get("max_length") == 0
        for each in found
    )
