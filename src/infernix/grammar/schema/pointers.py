"""Places in a document: JSON Pointers (RFC 6901) and the local references of JSON Schema."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BAD_TILDE = re.compile(r"~(?![01])")
_ARRAY_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)


class Place(NamedTuple):
    """A place as steps down from a parent. The pointer's text is made only when asked for: long names above many
    places would otherwise be copied into each."""

    parent: Place | None = None
    steps: tuple[str, ...] = ()

    def at(self, *steps: str) -> Place:
        """The place below this one."""
        return tuple.__new__(Place, (self, steps))  # what Place(self, steps) comes to, in half the time

    @property
    def pointer(self) -> str:
        """The JSON Pointer, "" for the root."""
        groups: list[tuple[str, ...]] = []
        place: Place | None = self
        while place is not None:
            groups.append(place.steps)
            place = place.parent
        return "".join("/" + step.replace("~", "~0").replace("/", "~1") for group in reversed(groups) for step in group)


def parse_reference(reference: str) -> tuple[str, ...] | None:
    """The steps of a local reference (`#`, `#/…`), percent and tilde escapes decoded; None if it is not local.

    ValueError where the escapes are malformed.
    """
    if reference != "#" and not reference.startswith("#/"):
        return None
    if _BAD_PERCENT.search(reference):
        raise ValueError("a percent sign without two hexadecimal digits")
    try:
        pointer = unquote_to_bytes(reference[1:]).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("percent escapes that are not UTF-8") from None
    if _BAD_TILDE.search(pointer):
        raise ValueError("a tilde without 0 or 1")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def array_index(step: str, length: int) -> int | None:
    """The element that `step` names in an array of `length` elements, or None."""
    if not _ARRAY_INDEX.fullmatch(step) or len(step) > len(str(length)):
        return None
    return int(step) if int(step) < length else None
