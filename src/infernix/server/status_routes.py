"""What is served, and how it is doing."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from infernix.server.api_error import ApiError, ErrorKind
from infernix.server.service import Service
from infernix.server.sse import JsonResponse

OPEN_PATHS = frozenset({"/health"})
"""Paths that need no key."""

router = APIRouter()
_STARTED = int(time.time())


@router.get("/health")
async def health(request: Request) -> Response:
    """Whether requests are taken: 200, or 503."""
    service: Service = request.app.state.service
    if not service.engine.is_available:
        raise ApiError(ErrorKind.UNAVAILABLE, "the engine has stopped", code="service_unavailable")
    return JsonResponse({"status": "ok"})


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Prometheus' text format."""
    service: Service = request.app.state.service
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/models")
async def models(request: Request) -> Response:
    """The list of models: one."""
    return JsonResponse({"object": "list", "data": [_model(request.app.state.service)]})


@router.get("/v1/models/{model_id:path}")
async def model(request: Request, model_id: str) -> Response:
    """The model by its name."""
    service: Service = request.app.state.service
    check_model(service, model_id)
    return JsonResponse(_model(service))


def check_model(service: Service, model_id: str) -> None:
    """Raises ApiError for another name than the served model's."""
    if model_id != service.settings.model_id:
        raise ApiError(
            ErrorKind.NOT_FOUND,
            f"the model {model_id[:80]!r} does not exist; {service.settings.model_id!r} is served here",
            code="model_not_found",
            param="model",
        )


def _model(service: Service) -> dict[str, Any]:
    return {
        "id": service.settings.model_id,
        "object": "model",
        "created": _STARTED,
        "owned_by": "infernix",
        "max_context": service.engine.max_context,
    }
