"""The text of a custom tool's call, while the JSON around it is still coming."""

from __future__ import annotations

import json
import re

_OPENING = re.compile(r'\s*\{\s*"input"\s*:\s*"')
# Whole characters and escapes; half a surrogate pair waits for its other half.
_COMPLETE = re.compile(
    r'(?:[^"\\]|\\["\\/bfnrt]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*+'
)


class CustomInput:
    """Reads the pieces of `{"input": "..."}` and gives the pieces of its text."""

    def __init__(self) -> None:
        self._pending = ""
        self._is_open = False

    def feed(self, piece: str) -> str:
        """The text that has become known; joined over all pieces it is the input."""
        self._pending += piece
        if not self._is_open:
            opening = _OPENING.match(self._pending)
            if opening is None:
                return ""
            self._is_open = True
            self._pending = self._pending[opening.end() :]
        found = _COMPLETE.match(self._pending)
        assert found is not None  # it matches nothing, too
        self._pending = self._pending[found.end() :]
        text: str = json.loads(f'"{found[0]}"', strict=False)
        return text
