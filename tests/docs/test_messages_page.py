"""The page on messages names every field that a request may have, and the statuses as they are."""

from __future__ import annotations

import re

from docs.blocks import ROOT
from infernix.server.api_error import ErrorKind
from infernix.server.messages.body import COUNT_IDLE_FIELDS, IDLE_FIELDS, MIN_THINKING_BUDGET, MessagesBody
from infernix.server.messages.tool_fields import ToolField

PAGE = (ROOT / "docs" / "serving-messages.md").read_text(encoding="utf-8")


def test_every_field_is_on_the_page() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert set(COUNT_IDLE_FIELDS) | set(IDLE_FIELDS) | set(MessagesBody.model_fields) <= named
    # The callers of a tool are told by their names.
    assert set(ToolField.model_fields) - {"allowed_callers"} <= named


def test_every_status_is_on_the_page_with_its_type() -> None:
    told = {
        (int(status), kind)
        for statuses, kind in re.findall(r"^\| ([\d, ]+) \| `(\w+)`", PAGE, re.MULTILINE)
        for status in statuses.split(", ")
    }
    kinds = {(kind.value.anthropic_status, kind.value.anthropic_type) for kind in ErrorKind}
    assert told == kinds - {(499, "invalid_request_error")}  # which nobody is there to see


def test_the_bound_of_thinking_is_on_the_page() -> None:
    assert f"at least {MIN_THINKING_BUDGET} tokens" in PAGE
