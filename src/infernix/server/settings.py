"""How a server is set up."""

from __future__ import annotations

import re
from dataclasses import dataclass

from infernix.errors import InvalidOptions

DEFAULT_MAX_BODY_BYTES = 4 << 20
_COUNTS = ("max_body_bytes", "max_pending_body_bytes", "max_outstanding", "max_stored_responses", "max_stored_bytes")
_MODEL_ID = re.compile(r"[!-~]{1,200}")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What the operator decides.

    model_id             the name under which clients ask for the model
    api_key              what clients must present, None: nothing
    max_body_bytes       a longer request body is refused
    max_pending_body_bytes   bodies that are being received, all together
    body_timeout_seconds     how long a client may take to send a body
    max_outstanding      requests that may be under way at once
    max_stored_responses     responses that are kept to be asked for again and continued
    max_stored_bytes     of them together
    keep_alive_seconds   silence in a stream after which a comment is sent
    send_seconds         how long a client may take none of a stream before it counts as gone
    shutdown_seconds     how long a stopping server lets answers finish before it cancels them
    cors_origins         origins of web pages that may call, none by default
    seed                 for requests that name none; None: a fresh one each
    """

    model_id: str
    api_key: str | None = None
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES
    max_pending_body_bytes: int = 64 << 20
    body_timeout_seconds: float = 30.0
    max_outstanding: int = 17
    max_stored_responses: int = 1000
    max_stored_bytes: int = 64 << 20
    keep_alive_seconds: float = 5.0
    send_seconds: float = 60.0
    shutdown_seconds: float = 10.0
    cors_origins: tuple[str, ...] = ()
    seed: int | None = None

    def __post_init__(self) -> None:
        if not _MODEL_ID.fullmatch(self.model_id):
            raise InvalidOptions("a name has 1..200 visible ASCII characters", field="model_id")
        if self.api_key is not None and not _MODEL_ID.fullmatch(self.api_key):
            raise InvalidOptions("a key has 1..200 visible ASCII characters", field="api_key")
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise InvalidOptions("expected a positive number", field=name)
        if self.seed is not None and not 0 <= self.seed < 2**64:
            raise InvalidOptions("expected 0..2**64-1", field="seed")
        for name in ("body_timeout_seconds", "keep_alive_seconds", "send_seconds", "shutdown_seconds"):
            if not 0 < getattr(self, name) <= 86400:
                raise InvalidOptions("expected seconds, more than 0 and at most a day", field=name)
