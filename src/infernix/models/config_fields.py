"""Typed access to the fields of a JSON object, with complaints that name the file and the field."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from infernix.errors import ModelLoadError
from infernix.options import shown_value

_LARGEST_FLOAT = sys.float_info.max


class ConfigFields:
    """The members of one JSON object of the file `source`; `prefix` is the path to that object, with its dot.

    A member that is null counts as absent. Every reader raises ModelLoadError where the value is of another kind, or
    missing without a default.
    """

    def __init__(self, document: Mapping[str, Any], source: Path, prefix: str = "") -> None:
        self._document = document
        self._source = source
        self._prefix = prefix

    def __contains__(self, name: str) -> bool:
        return self._document.get(name) is not None

    def fail(self, name: str, message: str) -> NoReturn:
        """Raises ModelLoadError about the member `name`."""
        raise ModelLoadError(f"{self._source}: {self._prefix}{name}: {message}")

    def value(self, name: str) -> Any:
        """The member as it stands, or None."""
        return self._document.get(name)

    def count(self, name: str, default: int | None = None, *, largest: int | None = None) -> int:
        """A positive integer, up to `largest`."""
        value = self._document.get(name, default)
        value = default if value is None else value
        if value is None:
            self.fail(name, "missing")
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.fail(name, f"expected a positive integer, got {shown_value(value)}")
        if largest is not None and value > largest:
            self.fail(name, f"{shown_value(value)} is more than the {largest} that are supported")
        return value

    def index(self, name: str) -> int:
        """An integer of at least 0."""
        value = self._document.get(name)
        if value is None:
            self.fail(name, "missing")
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.fail(name, f"expected an integer of at least 0, got {shown_value(value)}")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A positive finite number."""
        value = self._document.get(name)
        value = default if value is None else value
        if value is None:
            self.fail(name, "missing")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LARGEST_FLOAT:
            self.fail(name, f"expected a positive number, got {shown_value(value)}")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """A truth value."""
        value = self._document.get(name)
        value = default if value is None else value
        if not isinstance(value, bool):
            self.fail(name, f"expected true or false, got {shown_value(value)}")
        return value

    def text(self, name: str, default: str | None) -> str | None:
        """A string, or `default`."""
        value = self._document.get(name)
        value = default if value is None else value
        if value is not None and not isinstance(value, str):
            self.fail(name, f"expected a string, got {shown_value(value)}")
        return value

    def texts(self, name: str, length: int) -> tuple[str, ...] | None:
        """A list of `length` strings, or None where there is none."""
        value = self._document.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != length or not all(isinstance(item, str) for item in value):
            self.fail(name, f"expected a list of {length} strings, got {shown_value(value)}")
        return tuple(value)

    def indices(self, name: str, end: int) -> tuple[int, ...] | None:
        """A list of different integers in 0..end-1, at least one, or None where there is none."""
        value = self._document.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not value or any(isinstance(item, bool) for item in value):
            self.fail(name, f"expected a list of integers, got {shown_value(value)}")
        if any(not isinstance(item, int) or not 0 <= item < end for item in value) or len(set(value)) < len(value):
            self.fail(name, f"expected different integers in 0..{end - 1}, got {shown_value(value)}")
        return tuple(value)

    def inner(self, name: str) -> ConfigFields | None:
        """An object, or None where there is none."""
        value = self._document.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.fail(name, f"expected an object, got {shown_value(value)}")
        return ConfigFields(value, self._source, f"{self._prefix}{name}.")
