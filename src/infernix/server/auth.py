"""The optional key that clients present."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from infernix.server.api_error import ApiError, ErrorKind


class KeyCheck:
    """Compares keys in a time that does not depend on where they differ, nor on their length."""

    def __init__(self, api_key: str | None) -> None:
        self._digest = None if api_key is None else _digest(api_key)

    def check(self, headers: Mapping[str, str]) -> None:
        """Accepts `Authorization: Bearer KEY` and `x-api-key: KEY`. Raises ApiError."""
        if self._digest is None:
            return
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        key = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        if not hmac.compare_digest(_digest(key), self._digest):
            raise ApiError(ErrorKind.UNAUTHENTICATED, "the API key is missing or wrong", code="invalid_api_key")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
