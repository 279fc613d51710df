"""The page on responses names every field that a request may have, and the bounds as they are."""

from __future__ import annotations

import re

from docs.blocks import ROOT
from infernix.server.responses.body import IDLE_FIELDS, ResponsesBody
from infernix.server.settings import ServerSettings

PAGE = (ROOT / "docs" / "serving-responses.md").read_text(encoding="utf-8")


def test_every_field_is_on_the_page() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert set(IDLE_FIELDS) | set(ResponsesBody.model_fields) <= named


def test_the_bounds_of_what_is_kept_are_on_the_page() -> None:
    settings = ServerSettings("any")
    assert f"At most {settings.max_stored_responses:,} are\nkept" in PAGE
    assert f"{settings.max_stored_bytes >> 20} MiB" in PAGE
