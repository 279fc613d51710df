"""`infernix serve`: the engine behind HTTP, until it is told to stop."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from infernix.cli import exit_codes
from infernix.cli.arguments import Once, add_model_arguments, model_options
from infernix.errors import InfernixError, InvalidOptions

if TYPE_CHECKING:
    from infernix.engine import Engine
    from infernix.engine.request_log import JsonLinesLog
    from infernix.server.settings import ServerSettings

API_KEY_VARIABLE = "INFERNIX_API_KEY"
_EXTRA_MODULES = frozenset({"fastapi", "prometheus_client", "pydantic", "pydantic_core", "starlette", "uvicorn"})


class MissingExtra(InfernixError):
    """Packages that only the server needs are not installed."""

    code = "missing_extra"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command's own parser."""
    parser = commands.add_parser(
        "serve",
        help="serve the model over HTTP, as OpenAI's and Anthropic's clients expect it",
        description="Serves the model over HTTP until it gets SIGTERM or Ctrl-C. One line on standard output says what"
        " is served and where, as soon as requests are taken.",
        allow_abbrev=False,
    )
    add_model_arguments(parser)
    parser.add_argument(
        "--model-id", metavar="NAME", action=Once, help="what clients call the model (default: its own name)"
    )
    _add_network_arguments(parser)
    _add_engine_arguments(parser)
    parser.set_defaults(run=run)


def _add_network_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("network")
    group.add_argument("--host", action=Once, default="127.0.0.1", help="address to listen at (default 127.0.0.1)")
    group.add_argument("--port", type=int, action=Once, default=8000, help="(default 8000; 0: any free one)")
    group.add_argument(
        "--api-key",
        metavar="KEY",
        action=Once,
        help=f"what clients must present (default: ${API_KEY_VARIABLE}, if set)",
    )
    group.add_argument(
        "--cors-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="a web origin that may call; repeat the flag",
    )
    group.add_argument("--max-body-bytes", **_number(4 << 20, "the longest body of a request"))
    group.add_argument(
        "--max-stored-responses",
        **_number(1000, "responses of /v1/responses that are kept to be asked for and continued"),
    )
    group.add_argument("--max-stored-bytes", **_number(64 << 20, "of them together"))
    group.add_argument("--shutdown-seconds", **_number(10.0, "how long answers may go on after SIGTERM"))
    group.add_argument(
        "--request-log", metavar="FILE", action=Once, help="append a JSON line for each event ('-': standard error)"
    )


def _add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("engine")
    group.add_argument("--max-concurrency", **_number(4, "requests that run together"))
    group.add_argument("--max-pending-requests", **_number(16, "requests that may wait beside them"))
    group.add_argument("--pending-timeout-seconds", **_number(30.0, "how long a request may wait"))
    group.add_argument(
        "--cache-tokens", metavar="N", type=int, action=Once, help="tokens that there is memory for, of all requests"
    )
    group.add_argument("--grammar-cache-bytes", **_number(256 << 20, "compiled grammars that are kept"))
    group.add_argument("--seed", metavar="N", type=int, action=Once, help="for requests without one (default: random)")


def _number(default: int | float, text: str) -> dict[str, Any]:
    """How argparse takes a number: an integer, or seconds, which have a default with a point."""
    kind: type = type(default)
    metavar, shown = ("N", f"{default}") if kind is int else ("S", f"{default:g}")
    return {"metavar": metavar, "type": kind, "action": Once, "default": default, "help": f"{text} (default {shown})"}


def run(arguments: argparse.Namespace) -> int:
    """Returns when the server was told to stop."""
    try:
        from infernix.server.app import build_app
        from infernix.server.runner import HttpServer, address_of, listen
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA_MODULES:
            raise
        raise MissingExtra("the server's packages are not installed: pip install 'infernix[server]'") from error
    with contextlib.ExitStack() as closing:
        # What can be wrong with the flags is known before the model has been loaded.
        settings = _settings(arguments)
        listener = closing.enter_context(listen(arguments.host, arguments.port))
        log = closing.enter_context(_request_log(arguments.request_log))
        engine = closing.enter_context(_load(arguments, log))
        closing.enter_context(_loaded_for_good())
        settings = replace(settings, model_id=settings.model_id if arguments.model_id else engine.model_name)
        app = build_app(engine, settings, log)
        server = HttpServer(app, settings, listener)
        print(
            f"serving {engine.model_name} as {settings.model_id} at {address_of(listener)} ({arguments.max_concurrency}"
            f" at once, {arguments.max_pending_requests} may wait, {engine.max_context} tokens of context"
            f"{'' if settings.api_key is None else ', with a key'})",
            flush=True,
        )
        write_log = app.state.service.write_log
        write_log("server_start", model=settings.model_id, max_concurrency=arguments.max_concurrency)
        closing.callback(write_log, "server_stop")
        server.run()
    return exit_codes.SUCCESS


def _load(arguments: argparse.Namespace, log: JsonLinesLog | None) -> Engine:
    # Imported here, so that a wrong flag is answered at once: PyTorch takes seconds to load.
    from infernix.engine import Engine
    from infernix.matching import warm_kernels

    engine = Engine.load(
        arguments.model,
        **model_options(arguments),
        max_concurrency=arguments.max_concurrency,
        max_pending_requests=arguments.max_pending_requests,
        pending_timeout_seconds=arguments.pending_timeout_seconds,
        cache_tokens=arguments.cache_tokens,
        grammar_cache_bytes=arguments.grammar_cache_bytes,
        request_log=log,
    )
    # A request would wait for them, and its deadline would pass.
    warm_kernels()
    return engine


@contextlib.contextmanager
def _loaded_for_good() -> Iterator[None]:
    """What is there now will stay: looking through all of it for garbage would hold up every thread each time."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _settings(arguments: argparse.Namespace) -> ServerSettings:
    from infernix.server.settings import ServerSettings

    return ServerSettings(
        model_id=arguments.model_id or "model",
        api_key=arguments.api_key or os.environ.get(API_KEY_VARIABLE) or None,
        max_body_bytes=arguments.max_body_bytes,
        max_outstanding=arguments.max_concurrency + arguments.max_pending_requests,
        max_stored_responses=arguments.max_stored_responses,
        max_stored_bytes=arguments.max_stored_bytes,
        shutdown_seconds=arguments.shutdown_seconds,
        cors_origins=tuple(arguments.cors_origin),
        seed=arguments.seed,
    )


@contextlib.contextmanager
def _request_log(path: str | None) -> Iterator[JsonLinesLog | None]:
    from infernix.engine.request_log import JsonLinesLog

    if path is None:
        yield None
    elif path == "-":
        yield JsonLinesLog(sys.stderr)
    else:
        try:
            file = open(path, "a", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise InvalidOptions(f"cannot write to {path}: {error.strerror}", field="request_log") from error
        with file:
            yield JsonLinesLog(file)
