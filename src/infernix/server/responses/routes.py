"""`/v1/responses`, and what is kept of it."""

from __future__ import annotations

import json
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from infernix.server.api_error import ApiError, ErrorKind, invalid
from infernix.server.body_model import openapi_post, validation_error
from infernix.server.counting import count_tokens
from infernix.server.exchange import ProtocolFacts, answer_request
from infernix.server.responses.body import COUNT_IDLE_FIELDS, IDLE_FIELDS, INCLUDE, CountBody, ResponsesBody
from infernix.server.responses.request import read_call, read_count
from infernix.server.responses.store import StoredResponse
from infernix.server.service import Service
from infernix.server.sse import JsonResponse

FACTS = ProtocolFacts("responses", read_call)
router = APIRouter()


class _Query(BaseModel):
    """Parameters in the query, which come as texts."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class _GetQuery(_Query):
    """A response that is kept is not streamed again."""

    stream: Literal["false"] | None = None


class _ListQuery(_Query):
    after: Annotated[str, Field(max_length=256)] | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    order: Literal["asc", "desc"] = "desc"


QueryT = TypeVar("QueryT", bound=_Query)


@router.post("/v1/responses", openapi_extra=openapi_post(ResponsesBody, IDLE_FIELDS))
async def create_response(request: Request) -> Response:
    """A response, whole or as events."""
    return await answer_request(request, FACTS)


@router.post("/v1/responses/input_tokens", openapi_extra=openapi_post(CountBody, COUNT_IDLE_FIELDS))
async def count_input_tokens(request: Request) -> Response:
    """How many tokens the prompt of a response would have."""
    num_tokens = await count_tokens(request, read_count)
    return JsonResponse({"object": "response.input_tokens", "input_tokens": num_tokens})


@router.get("/v1/responses/{response_id}")
async def get_response(request: Request, response_id: str) -> Response:
    """A response that is kept, as it was sent."""
    _query(request, _GetQuery)
    return Response(_stored(request, response_id).body, media_type="application/json")


@router.delete("/v1/responses/{response_id}")
async def delete_response(request: Request, response_id: str) -> Response:
    """Forgets a response."""
    service: Service = request.app.state.service
    if not service.responses.delete(response_id):
        raise _not_found(response_id)
    return JsonResponse({"id": response_id, "object": "response", "deleted": True})


@router.get("/v1/responses/{response_id}/input_items")
async def list_input_items(request: Request, response_id: str) -> Response:
    """The items that a response was made from, those of the responses before it included."""
    query = _query(request, _ListQuery)
    stored = _stored(request, response_id)
    items = [json.loads(data) for data in stored.inputs]
    if query.order == "desc":
        items.reverse()
    if query.after is not None:
        ids = [item["id"] for item in items]
        if query.after not in ids:
            raise invalid("the response has no such item", "after", "item_not_found")
        items = items[ids.index(query.after) + 1 :]
    page = items[: query.limit]
    return JsonResponse(
        {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": len(page) < len(items),
        }
    )


def _query(request: Request, model: type[QueryT]) -> QueryT:
    """The parameters of the query; what may be included of items is never there."""
    values: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in ("include", "include[]"):
            values[name] = value
        elif not INCLUDE.accepts([value]):
            raise invalid(INCLUDE.reason, "include", "unsupported_parameter")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise validation_error(error) from None


def _stored(request: Request, response_id: str) -> StoredResponse:
    service: Service = request.app.state.service
    stored = service.responses.get(response_id)
    if stored is None:
        raise _not_found(response_id)
    return stored


def _not_found(response_id: str) -> ApiError:
    return ApiError(ErrorKind.NOT_FOUND, f"no response {response_id[:80]!r} is kept", code="response_not_found")
