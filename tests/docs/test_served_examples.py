"""The examples that speak to a server: each is run against one with the embedded model, and shows what comes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from docs.blocks import PAGES, Block, blocks
from infernix.engine import Engine
from infernix.server.api_error import ErrorKind
from infernix.server.chat.body import IDLE_FIELDS, ChatBody
from support.live_server import live_server

SERVED = [block for page in PAGES for block in blocks(page) if block.needs_server]
WRITTEN_ADDRESS = "http://127.0.0.1:8000"
PAGE = next(page for page in PAGES if page.name == "serving.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.real_model


@pytest.fixture(scope="module")
def address(warmed_kernels: None) -> Iterator[str]:
    with (
        Engine.load(num_threads=2, max_context=2048, max_concurrency=2) as engine,
        live_server(engine, model_id="smollm2") as server,
    ):
        yield server.url


@pytest.mark.parametrize("block", [block for block in SERVED if block.language == "python"], ids=str)
def test_a_python_block_prints_what_is_shown(block: Block, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(block.lines)
    assert WRITTEN_ADDRESS in code
    namespace: dict[str, Any] = {"__name__": "example"}
    exec(compile(code.replace(WRITTEN_ADDRESS, address), str(block), "exec"), namespace)
    namespace["client"].close()
    assert capsys.readouterr().out.rstrip("\n") == "\n".join(block.output or ())


@pytest.mark.parametrize("block", [block for block in SERVED if block.language == "console"], ids=str)
def test_a_curl_command_shows_what_comes(block: Block, address: str) -> None:
    lines = list(block.lines)
    end = next(index for index, line in enumerate(lines) if line.endswith("'"))
    assert lines[0].startswith("$ ")
    response = curled(shlex.split("\n".join(lines[: end + 1])[2:].replace(WRITTEN_ADDRESS, address)))
    assert_shown(json.loads("\n".join(lines[end + 1 :])), response.json())


def curled(words: list[str]) -> httpx.Response:
    """What curl would send; the pages use a handful of its flags."""
    assert words.pop(0) == "curl"
    headers: dict[str, str] = {}
    url, data = "", None
    while words:
        match words.pop(0):
            case "-s" | "-N" | "-sN":
                pass
            case "-H":
                name, _, value = words.pop(0).partition(": ")
                headers[name] = value
            case "-d":
                data = words.pop(0)
            case word:
                assert word.startswith("http"), word
                url = word
    return httpx.request("GET" if data is None else "POST", url, headers=headers, content=data, timeout=60)


def assert_shown(shown: Any, found: Any) -> None:
    """Three dots stand for whatever comes, in the place of a value or at the end of a text."""
    if isinstance(shown, dict):
        assert list(shown) == list(found)
        for name, value in shown.items():
            assert_shown(value, found[name])
    elif isinstance(shown, list):
        assert len(shown) == len(found)
        for item, other in zip(shown, found, strict=True):
            assert_shown(item, other)
    elif isinstance(shown, str) and shown.endswith("..."):
        assert str(found).startswith(shown.removesuffix("..."))
    else:
        assert shown == found


def test_there_are_examples() -> None:
    assert {block.language for block in SERVED} == {"python", "console"}
    assert len(SERVED) >= 6


def test_every_field_is_on_the_page() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert set(IDLE_FIELDS) | set(ChatBody.model_fields) <= named


def test_every_status_is_on_the_page() -> None:
    told = {int(status) for status in re.findall(r"^\| (\d{3}) \|", PAGE, re.MULTILINE)}
    assert told == {kind.value.status for kind in ErrorKind} - {499}  # which nobody is there to see
