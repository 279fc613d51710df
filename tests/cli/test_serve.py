"""`infernix serve`: what it hands on, what it refuses, and how it ends."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import infernix.engine
import infernix.matching
from infernix.cli import exit_codes
from infernix.cli.main import main
from infernix.server import runner
from support.live_server import answering


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """In place of a model a scripted one, and in place of serving a look at what would be served."""
    seen: dict[str, Any] = {}

    class Loaded:
        @staticmethod
        def load(model: str | None, **options: Any) -> Any:
            seen.update(model=model, options=options)
            return answering(lambda said: said)

    def run(server: Any) -> None:
        seen["app"] = server._server.config.app
        seen["num_frozen"] = gc.get_freeze_count()

    monkeypatch.setattr(infernix.engine, "Engine", Loaded)
    monkeypatch.setattr(infernix.matching, "warm_kernels", lambda: None)
    monkeypatch.setattr(runner.HttpServer, "run", run)
    monkeypatch.delenv("INFERNIX_API_KEY", raising=False)
    return seen


def test_the_flags_reach_engine_and_server(
    served: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    flags = "--model dir --dtype float32 --threads 2 --max-context 500 --max-concurrency 3 --max-pending-requests 5"
    flags += " --cache-tokens 900 --pending-timeout-seconds 7 --grammar-cache-bytes 1000 --model-id mine --port 0"
    flags += (
        " --max-stored-responses 11 --max-stored-bytes 1212"
        f" --api-key k --seed 5 --max-body-bytes 999 --shutdown-seconds 3 --cors-origin http://a --request-log {log}"
    )
    assert main(["serve", *flags.split()]) == exit_codes.SUCCESS
    options = served["options"]
    assert (served["model"], options["dtype"]) == ("dir", "float32")
    assert (options["num_threads"], options["max_context"], options["max_concurrency"]) == (2, 500, 3)
    assert (options["max_pending_requests"], options["cache_tokens"]) == (5, 900)
    assert (options["pending_timeout_seconds"], options["grammar_cache_bytes"]) == (7.0, 1000)
    settings = served["app"].state.service.settings
    assert (settings.model_id, settings.api_key, settings.seed) == ("mine", "k", 5)
    assert (settings.max_outstanding, settings.max_body_bytes, settings.shutdown_seconds) == (8, 999, 3.0)
    assert settings.cors_origins == ("http://a",)
    assert (settings.max_stored_responses, settings.max_stored_bytes) == (11, 1212)
    line = capsys.readouterr().out
    assert line.startswith("serving scripted as mine at http://127.0.0.1:")
    assert line.endswith(" (3 at once, 5 may wait, 4000 tokens of context, with a key)\n")
    assert [json.loads(text)["event"] for text in log.read_text().splitlines()] == ["server_start", "server_stop"]


def test_what_is_not_given(served: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["serve", "--port", "0"]) == exit_codes.SUCCESS
    settings = served["app"].state.service.settings
    assert (settings.model_id, settings.api_key, settings.seed) == ("scripted", None, None)
    monkeypatch.setenv("INFERNIX_API_KEY", "from-the-environment")
    assert main(["serve", "--port", "0"]) == exit_codes.SUCCESS
    assert served["app"].state.service.settings.api_key == "from-the-environment"


def test_what_was_loaded_is_no_garbage_while_it_is_served(served: dict[str, Any]) -> None:
    assert main(["serve", "--port", "0"]) == exit_codes.SUCCESS
    assert served["num_frozen"] > 10_000
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--port 70000", "--port: 70000 is outside"),
        ("--host no.such.host.invalid", "--host: cannot listen at no.such.host.invalid"),
        ("--model-id a\u00e9", "--model-id: a name has"),
        ("--max-body-bytes 0", "--max-body-bytes: expected a positive number"),
        ("--max-stored-bytes 0", "--max-stored-bytes: expected a positive number"),
        ("--shutdown-seconds nan", "--shutdown-seconds: expected seconds"),
        ("--seed -1", "--seed: expected 0..2**64-1"),
        ("--request-log /no/such/folder/log", "--request-log: cannot write to"),
    ],
)
def test_wrong_flags_are_told_before_a_model_is_loaded(
    served: dict[str, Any], capsys: pytest.CaptureFixture[str], flags: str, message: str
) -> None:
    port = [] if "--port" in flags else ["--port", "0"]
    assert main(["serve", *port, *flags.split()]) == exit_codes.BAD_INPUT
    assert capsys.readouterr().err.startswith(f"infernix: error: {message}")
    assert served == {}


def test_an_address_that_is_taken(served: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1])]) == exit_codes.BAD_INPUT
    assert "Address already in use" in capsys.readouterr().err


def test_without_its_packages_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [
        name for name in sys.modules if name.partition(".")[0] == "uvicorn" or name.startswith("infernix.server")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve"]) == exit_codes.BAD_INPUT
    assert "pip install 'infernix[server]'" in capsys.readouterr().err


SCRIPT = """
import itertools, sys
sys.path[:0] = sys.argv[1:2]
import infernix.engine
from infernix.cli.main import main
from support.live_server import answering

num_asked = itertools.count()

def speak(said):
    # The model says what it was told; in the middle of "held back" it waits for a line on standard input.
    if said == "held back" and next(num_asked) == 3:
        sys.stdin.readline()
    return said

class Loaded:
    @staticmethod
    def load(model, **options):
        # So long that no machine gets to its end within the time that a test waits.
        return answering(speak, request_log=options["request_log"], max_context=10**7, cache_tokens=10**7)

infernix.engine.Engine = Loaded
sys.exit(main(["serve", "--port", "0", *sys.argv[2:]]))
"""


@contextmanager
def process(*flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its address."""
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, tests, *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as running:
        assert running.stdout is not None
        try:
            line = running.stdout.readline()
            yield running, line.split(" at ")[1].split()[0]
        finally:
            running.kill()


def body(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": "scripted", "messages": [{"role": "user", "content": text}], "enable_thinking": False, **fields}


def is_listening(url: str) -> bool:
    address = httpx.URL(url)
    try:
        socket.create_connection((address.host, address.port or 80)).close()
    except ConnectionRefusedError:
        return False
    except ConnectionResetError:  # taken, and closed with the listener
        pass
    return True


def test_sigterm_lets_what_is_under_way_finish(warmed_kernels: None) -> None:
    with process("--request-log", "-", "--shutdown-seconds", "60") as (running, url):
        held_back = body("held back", stream=True)
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=held_back, timeout=60) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("data: ")
            running.send_signal(signal.SIGTERM)
            while is_listening(url):
                pass
            assert running.stdin is not None
            running.stdin.write("\n")
            running.stdin.flush()
            assert [line for line in lines if line][-1] == "data: [DONE]"
        _, errors = running.communicate(timeout=60)
        assert running.returncode == exit_codes.SUCCESS
    events = [json.loads(line)["event"] for line in errors.splitlines()]
    assert events[0] == "server_start"
    assert {"request_start", "request_done", "response"} <= set(events)
    assert events[-1] == "server_stop"


def test_an_interrupt_cuts_off_what_does_not_finish_in_time_and_says_so(warmed_kernels: None) -> None:
    endless = body("a", stream=True, ignore_eos=True)
    with process("--shutdown-seconds", "1") as (running, url):
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=endless, timeout=60) as answer:
            lines = answer.iter_lines()
            assert next(lines).startswith("data: ")
            running.send_signal(signal.SIGINT)
            last = [line for line in lines if line][-1]
            assert json.loads(last.removeprefix("data: "))["error"]["code"] == "service_unavailable"
        running.communicate(timeout=60)
        assert running.returncode == exit_codes.SUCCESS
