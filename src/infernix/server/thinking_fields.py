"""Whether to think, which several fields of a body may say."""

from __future__ import annotations

from collections.abc import Mapping

from infernix.server.api_error import invalid


def thinks(effort: str | None) -> bool | None:
    """What a reasoning effort says: each but none is thinking."""
    return None if effort is None else effort != "none"


def agreed_thinking(asked: Mapping[str, bool | None]) -> tuple[bool | None, str | None]:
    """Whether to think, and the first of the fields that say so; twice None where none of them is given.

    Raises ApiError for fields that contradict each other.
    """
    given = {field: value for field, value in asked.items() if value is not None}
    if len(set(given.values())) > 1:
        raise invalid(f"{' and '.join(given)} contradict each other", next(iter(given)), "invalid_value")
    for field, value in given.items():
        return value, field
    return None, None
