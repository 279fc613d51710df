from __future__ import annotations

import pytest

from infernix.server.api_error import ApiError
from infernix.server.thinking_fields import agreed_thinking, thinks


def test_efforts() -> None:
    assert [thinks(effort) for effort in (None, "none", "minimal", "high")] == [None, False, True, True]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"a": None, "b": None}, (None, None)),
        ({"a": None, "b": False}, (False, "b")),
        ({"a": True, "b": None, "c": True}, (True, "a")),
    ],
)
def test_fields_that_agree(asked: dict[str, bool | None], found: tuple[bool | None, str | None]) -> None:
    assert agreed_thinking(asked) == found


def test_fields_that_differ() -> None:
    with pytest.raises(ApiError) as caught:
        agreed_thinking({"a": None, "b": False, "c": True})
    assert (caught.value.param, caught.value.code) == ("b", "invalid_value")
    assert caught.value.message == "b and c contradict each other"
