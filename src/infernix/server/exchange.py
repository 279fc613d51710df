"""What all protocols do with a generation request: receive, prepare, submit, answer whole or in pieces, and keep books.

A protocol is three things: how a body becomes a `Call`, how results become a body, and how events become a stream.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from infernix.messages import ChatPrompt
from infernix.options import RequestOptions
from infernix.results import FinishReason, GenerationEvent, GenerationResult, GenerationStarted
from infernix.server.api_error import ApiError, ErrorKind
from infernix.server.engine_errors import FieldSources, api_error
from infernix.server.generation import Generation, cut_off_error, merged_batches
from infernix.server.metrics import Outcome
from infernix.server.served_engine import ServedHandle
from infernix.server.service import Service
from infernix.server.sse import EventStream, JsonResponse

ResultT = TypeVar("ResultT")
_logger = logging.getLogger("infernix.server")


class AnswerStream(Protocol):
    """Turns the events of one request into bytes. `index` is the number of the sample."""

    def started(self, index: int, started: GenerationStarted) -> Iterable[bytes]:
        """The sample has its place on the model."""

    def published(self, index: int, events: Sequence[GenerationEvent]) -> Iterable[bytes]:
        """What was published together."""

    def finished(self, index: int, result: GenerationResult) -> Iterable[bytes]:
        """The sample is at its end."""

    def ended(self, results: Sequence[GenerationResult]) -> Iterable[bytes]:
        """All samples are."""

    def failed(self, error: ApiError) -> Iterable[bytes]:
        """An error ends the stream; nothing follows."""


class Call(Protocol):
    """A request's body, understood.

    prompt    the conversation
    options   one for each sample
    sources   where the parts stand in the body
    is_streamed   whether the answer goes out in pieces
    """

    @property
    def prompt(self) -> ChatPrompt: ...

    @property
    def options(self) -> Sequence[RequestOptions]: ...

    @property
    def sources(self) -> FieldSources: ...

    @property
    def is_streamed(self) -> bool: ...

    def answer(
        self, results: Sequence[GenerationResult], published: Sequence[Sequence[GenerationEvent]]
    ) -> dict[str, Any]:
        """The whole answer. `published` is what each sample published, which tells the order of its parts."""

    def stream(self) -> AnswerStream:
        """A writer for this answer."""


@dataclass(frozen=True, slots=True)
class ProtocolFacts:
    """`name` is the label in metrics and logs. `read` turns a body and the request's id into a Call; it runs on a
    worker thread and raises ApiError."""

    name: str
    read: Callable[[Service, bytes, str], Call]


@dataclass(frozen=True, slots=True)
class _Submitted:
    call: Call
    handles: tuple[ServedHandle, ...]

    def close(self) -> None:
        for handle in self.handles:
            handle.close()


async def answer_request(request: Request, facts: ProtocolFacts) -> Response:
    """The response to a generation request. Raises ApiError for what fails before the response begins."""
    service: Service = request.app.state.service
    exchange = _Exchange(service, facts, request.state.request_id)
    try:
        data = await service.bodies.receive(request)
        exchange.take_slot()
        return await exchange.answer(request, data)
    except BaseException as error:
        exchange.settle_error(error)
        raise


class _Exchange:
    """One request from its body to its last byte; its slot is given back exactly once."""

    def __init__(self, service: Service, facts: ProtocolFacts, request_id: str) -> None:
        self._service = service
        self._facts = facts
        self._request_id = request_id
        self._started = time.monotonic()
        self._is_settled = False
        self._num_holders = 0

    def take_slot(self) -> None:
        """Raises ApiError where as many requests are under way as may be."""
        self._service.gate.enter()
        self._num_holders = 1

    def _let_go(self) -> None:
        self._num_holders -= 1
        if not self._num_holders:
            self._service.gate.leave()

    async def answer(self, request: Request, data: bytes) -> Response:
        """The response, or the ApiError that comes in its place."""
        watch = asyncio.ensure_future(_interruption(request, self._service.cut_off))
        try:
            submitted = await _unless(watch, self._submit(data))
            generations = [Generation(handle) for handle in submitted.handles]
            try:
                if submitted.call.is_streamed:
                    events = self._stream(submitted.call, generations)
                    first = await _unless(watch, anext(events))
                    return self._event_stream(first, events)
                return await _unless(watch, self._whole(submitted.call, generations))
            except BaseException:
                submitted.close()
                raise
        finally:
            watch.cancel()

    def _event_stream(self, first: bytes, events: AsyncGenerator[bytes, None]) -> EventStream:
        settings = self._service.settings
        return EventStream(
            first, events, keep_alive_seconds=settings.keep_alive_seconds, send_seconds=settings.send_seconds
        )

    async def _submit(self, data: bytes) -> _Submitted:
        service, facts = self._service, self._facts

        def work() -> _Submitted:
            call = facts.read(service, data, self._request_id)
            handles: list[ServedHandle] = []
            try:
                prepared = service.engine.prepare(call.prompt)
                for options in call.options:
                    handles.append(service.engine.submit(prepared, options))
            except Exception as error:
                for handle in handles:
                    handle.close()
                raise api_error(error, call.sources) from error
            return _Submitted(call, tuple(handles))

        # The thread goes on when the client goes away, and so does its part of the slot.
        self._num_holders += 1
        return await service.workers.run(work, abandon=_Submitted.close, finished=self._let_go)

    async def _whole(self, call: Call, generations: Sequence[Generation]) -> Response:
        published: list[list[GenerationEvent]] = [[] for _ in generations]
        async for index, events in merged_batches(generations, self._service.cut_off):
            published[index] += events or ()
        try:
            results = [_finished(generation) for generation in generations]
        except Exception as error:
            raise api_error(error, call.sources) from error
        body = call.answer(results, published)
        self.settle(results)
        return JsonResponse(body)

    async def _stream(self, call: Call, generations: Sequence[Generation]) -> AsyncGenerator[bytes, None]:
        """The stream's bytes. Errors before the first of them are raised, later ones are part of the stream."""
        writer = call.stream()
        results: dict[int, GenerationResult] = {}
        has_begun = False
        try:
            try:
                async for index, events in merged_batches(generations, self._service.cut_off):
                    if events is None:
                        results[index] = _finished(generations[index])
                        pieces = writer.finished(index, results[index])
                    else:
                        pieces = _written(writer, index, events)
                    chunk = b"".join(pieces)
                    if chunk:
                        has_begun = True
                        yield chunk
                in_order = [results[index] for index in range(len(generations))]
                chunk = b"".join(writer.ended(in_order))
                # Before the last bytes, after which nobody may ask for more.
                self.settle(in_order)
                yield chunk
            except Exception as error:
                failure = api_error(error, call.sources)
                self.settle_error(failure, cause=error, in_stream=has_begun)
                if not has_begun:
                    raise failure from error
                yield b"".join(writer.failed(failure))
        finally:
            for generation in generations:
                generation.close()
            self.settle_error(None)

    def settle(self, results: Sequence[GenerationResult]) -> None:
        """The request has its answer."""
        if not self._settle(Outcome.COMPLETED):
            return
        for result in results:
            self._service.metrics.count_result(result)
        self._write_log(Outcome.COMPLETED, None, [result.request_id for result in results])

    def settle_error(
        self, error: BaseException | None, *, cause: BaseException | None = None, in_stream: bool = False
    ) -> None:
        """The request ended in an error, or, without one, because the client went away; later calls do nothing."""
        outcome = _outcome_of(error)
        if not self._settle(outcome):
            return
        if in_stream:
            self._service.metrics.count_stream_failure()
        code = error.code if isinstance(error, ApiError) else None
        self._write_log(outcome, code, [])
        if isinstance(error, Exception) and not (isinstance(error, ApiError) and error.kind is not ErrorKind.INTERNAL):
            _logger.error("request %s failed", self._request_id, exc_info=cause or error)

    def _write_log(self, outcome: Outcome, code: str | None, numbers: list[int]) -> None:
        """Ties the id that the client was told to the numbers that the engine's own lines have."""
        self._service.write_log(
            "response",
            request_id=self._request_id,
            requests=numbers,
            protocol=self._facts.name,
            outcome=outcome.value,
            code=code,
            seconds=round(time.monotonic() - self._started, 4),
        )

    def _settle(self, outcome: Outcome) -> bool:
        if self._is_settled:
            return False
        self._is_settled = True
        if self._num_holders:
            self._let_go()
        self._service.metrics.count_request(self._facts.name, outcome, time.monotonic() - self._started)
        return True


def _written(writer: AnswerStream, index: int, events: Sequence[GenerationEvent]) -> Iterable[bytes]:
    if events and isinstance(events[0], GenerationStarted):
        yield from writer.started(index, events[0])
        events = events[1:]
    if events:
        yield from writer.published(index, events)


def _finished(generation: Generation) -> GenerationResult:
    """The result. An answer that the server itself cut off is no answer."""
    result = generation.result()
    if result.finish_reason is FinishReason.CANCELLED:
        raise ApiError(ErrorKind.UNAVAILABLE, "the request was cancelled", code="service_unavailable")
    return result


def _outcome_of(error: BaseException | None) -> Outcome:
    if isinstance(error, ApiError):
        if error.kind is ErrorKind.CLIENT_GONE:
            return Outcome.CANCELLED
        return Outcome.FAILED if error.kind in (ErrorKind.INTERNAL, ErrorKind.UNAVAILABLE) else Outcome.REJECTED
    return Outcome.FAILED if isinstance(error, Exception) else Outcome.CANCELLED


async def _interruption(request: Request, cut_off: asyncio.Event) -> ApiError:
    """Why nobody waits for the answer any more: the client is gone, or the server stops."""

    async def disconnection() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.ensure_future(disconnection()), asyncio.ensure_future(cut_off.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    if cut_off.is_set():
        return cut_off_error()
    return ApiError(ErrorKind.CLIENT_GONE, "the client is gone", code="client_disconnected")


async def _unless(watch: asyncio.Future[ApiError], work: Awaitable[ResultT]) -> ResultT:
    """The result of `work`, which is cancelled where the error that `watch` waits for comes first."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((watch, task), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise watch.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
