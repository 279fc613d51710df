"""`POST /v1/messages` and `POST /v1/messages/count_tokens`."""

from __future__ import annotations

import re

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from infernix.server.api_error import invalid
from infernix.server.body_model import openapi_post
from infernix.server.counting import count_tokens
from infernix.server.exchange import ProtocolFacts, answer_request
from infernix.server.messages.body import COUNT_IDLE_FIELDS, IDLE_FIELDS, CountBody, MessagesBody
from infernix.server.messages.request import read_call, read_count
from infernix.server.sse import JsonResponse

OLDEST_VERSION = "2023-06-01"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
FACTS = ProtocolFacts("messages", read_call)
router = APIRouter()


@router.post("/v1/messages", openapi_extra=openapi_post(MessagesBody, IDLE_FIELDS))
async def create_message(request: Request) -> Response:
    """A message, whole or as a stream of events."""
    _check_version(request)
    return await answer_request(request, FACTS)


@router.post("/v1/messages/count_tokens", openapi_extra=openapi_post(CountBody, COUNT_IDLE_FIELDS))
async def count_message_tokens(request: Request) -> Response:
    """How many tokens a prompt has."""
    _check_version(request)
    return JsonResponse({"input_tokens": await count_tokens(request, read_count)})


def _check_version(request: Request) -> None:
    """The version may be left out. Those before the oldest have other forms; what a later one adds to a body is refused
    by its field. Raises ApiError.
    """
    version = request.headers.get("anthropic-version", OLDEST_VERSION)
    if not _DATE.fullmatch(version) or version < OLDEST_VERSION:
        raise invalid(f"expected {OLDEST_VERSION} or a later date, got {version[:40]!r}", "anthropic-version")
