"""`POST /v1/chat/completions`."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from infernix.server.body_model import openapi_post
from infernix.server.chat.body import IDLE_FIELDS, ChatBody
from infernix.server.chat.request import read_call
from infernix.server.exchange import ProtocolFacts, answer_request

FACTS = ProtocolFacts("chat", read_call)
router = APIRouter()


@router.post("/v1/chat/completions", openapi_extra=openapi_post(ChatBody, IDLE_FIELDS))
async def create_chat_completion(request: Request) -> Response:
    """A chat completion, whole or in chunks."""
    return await answer_request(request, FACTS)
