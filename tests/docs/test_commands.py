"""Every command and every Python example of README.md and docs/ is run, and shows what the page shows."""

from __future__ import annotations

import functools
import importlib.util
import io
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import infernix.engine.engine
import infernix.models
from docs.blocks import PAGES, ROOT, Block, Command, blocks, commands
from docs.stand_in import STAND_IN, thinking_model
from infernix.cli.main import main

ALL_BLOCKS = [block for page in PAGES for block in blocks(page) if not block.needs_server]
CONSOLE_BLOCKS = [block for block in ALL_BLOCKS if block.language == "console"]
PYTHON_BLOCKS = [block for block in ALL_BLOCKS if block.language == "python"]
pytestmark = pytest.mark.usefixtures("warmed_kernels")
DECIMAL = re.compile(r"\d+\.\d+")

open_model_once = functools.cache(infernix.models.open_model)


@pytest.fixture(autouse=True)
def at_the_project_root_with_one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is opened once for all examples; one that thinks is a stand-in."""
    monkeypatch.chdir(ROOT)

    def open_model(model: Any, *, device: str, dtype: str, progress: Callable[[str], None] | None = None) -> Any:
        return thinking_model() if model == STAND_IN else open_model_once(model, device="cpu")

    monkeypatch.setattr(infernix.engine.engine, "open_model", open_model)


@pytest.mark.real_model
@pytest.mark.parametrize("block", CONSOLE_BLOCKS, ids=str)
def test_a_console_block_shows_what_happens(
    block: Block, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    exit_code = 0
    for command in commands(block):
        if command.text == "echo $?":
            assert command.shown == (str(exit_code),), block
            continue
        exit_code = run(command, monkeypatch)
        output, errors = (stream.decode().rstrip("\n").splitlines() for stream in capfdbinary.readouterr())
        if command.shown or exit_code:
            shown_errors = command.shown[len(output) :]
            assert list(command.shown[: len(output)]) == output, f"{block}: {command.text}"
            assert masked(shown_errors) in (masked(errors), ()), f"{block}: {command.text}"


@pytest.mark.real_model
@pytest.mark.parametrize("block", PYTHON_BLOCKS, ids=str)
def test_a_python_block_prints_what_is_shown(block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile("\n".join(block.lines), str(block), "exec"), {"__name__": "example"})
    printed = capsys.readouterr().out.rstrip("\n")
    assert printed == "\n".join(block.output or ()), block


def test_pages_have_examples() -> None:
    assert len(CONSOLE_BLOCKS) >= 10
    assert len(PYTHON_BLOCKS) >= 3


def test_only_blocks_that_say_so_run_with_the_stand_in() -> None:
    for block in CONSOLE_BLOCKS + PYTHON_BLOCKS:
        assert block.has_stand_in == any(STAND_IN in line for line in block.lines), block


def test_local_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_structure_page_names_files_that_exist() -> None:
    named = re.findall(r"`([a-z_]+/[a-z_]+\.py)`", (ROOT / "docs" / "structure.md").read_text(encoding="utf-8"))
    assert len(named) >= 8
    assert [path for path in named if not (ROOT / "src" / "infernix" / path).exists()] == []


def run(command: Command, monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs one command as a shell would; those of Infernix run in this process, so that the model is opened once.

    Benchmarks take minutes: their modules must exist, their own tests run them.
    """
    feed, _, text = command.text.rpartition(" | ")
    if feed:
        data = subprocess.run(["bash", "-c", feed], check=True, capture_output=True).stdout
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    words = shlex.split(text)
    if words[0] == "make":
        words = made_command(words[1])
    if words[:2] == ["python", "-m"]:
        assert importlib.util.find_spec(words[2]) is not None, command.text
        return 0
    if words[0] == "infernix":
        try:
            return main(words[1:])
        except SystemExit as exit_request:
            return int(exit_request.code or 0)
    assert words[0] in ("cat",), f"no test knows how to run {command.text!r}"
    return subprocess.run(words, check=False).returncode


def made_command(target: str) -> list[str]:
    """What `make TARGET` runs in the end; only `demo` is run, the other targets must just exist."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    plan = subprocess.run(
        ["make", "--dry-run", target], check=True, capture_output=True, text=True, env=environment
    ).stdout.splitlines()
    return shlex.split(plan[-1].removeprefix(".venv/bin/")) if target == "demo" else ["cat", os.devnull]


def masked(lines: Iterable[str]) -> tuple[str, ...]:
    """Seconds and rates, which only standard error has, differ from run to run."""
    return tuple(DECIMAL.sub("#", line) for line in lines)
