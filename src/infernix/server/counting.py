"""Counting the tokens of a prompt, beside the requests that generate: no constraint is looked at."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request

from infernix.errors import InfernixError
from infernix.messages import ChatPrompt
from infernix.server.engine_errors import FieldSources, api_error
from infernix.server.service import Service


async def count_tokens(request: Request, read: Callable[[Service, bytes], tuple[ChatPrompt, FieldSources]]) -> int:
    """The tokens of the prompt that `read`, on a worker thread, makes of the body. Raises ApiError."""
    service: Service = request.app.state.service
    data = await service.bodies.receive(request)

    def work() -> int:
        prompt, sources = read(service, data)
        try:
            return service.engine.count_tokens(prompt)
        except InfernixError as error:
            raise api_error(error, sources) from error

    service.count_gate.enter()
    # The thread goes on when the client goes away, and keeps its place until it is done.
    return await service.count_workers.run(work, finished=service.count_gate.leave)
