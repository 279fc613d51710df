"""`infernix generate` with tools and thinking, around an engine that is played."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infernix.cli import exit_codes
from infernix.cli.main import main
from infernix.errors import (
    ConstraintError,
    InvalidToolConstraint,
    UnsupportedJsonSchema,
)
from infernix.frontend.tools.selection import tool_error
from infernix.messages import ChatPrompt
from infernix.options import RequestOptions
from infernix.results import FinishReason, ThinkingStatistics, ToolDiagnostics, ToolFallback
from infernix.tools import ToolCall, ToolChoice, ToolDefinition, ToolEnforcement, ToolMode
from support.played_engine import PlayedStream, Stage, observation, thought

WEATHER = {"name": "get_weather", "description": "Says the weather.", "parameters": {"type": "object"}, "strict": True}
NOW = {"type": "function", "function": {"name": "现在"}}
CALLS = (ToolCall("get_weather", '{"city":\n"Paris"}'), ToolCall("现在", "{}"))
CALL_LINES = '{"name": "get_weather", "arguments": {"city": "Paris"}}\n{"name": "现在", "arguments": {}}\n'


@pytest.fixture
def chat(tmp_path: Path) -> list[str]:
    """The arguments that ask for a chat with two tools."""
    (tmp_path / "messages.json").write_text('[{"role": "user", "content": "Hi"}]')
    (tmp_path / "tools.json").write_text(json.dumps([WEATHER, NOW]))
    return ["generate", "--messages", str(tmp_path / "messages.json"), "--tools", str(tmp_path / "tools.json")]


def test_tools_and_their_choice_reach_the_engine(stage: Stage, chat: list[str]) -> None:
    how = ["--tool-choice", "required", "--no-parallel-tools", "--tool-enforcement", "automatic"]
    others = ["--no-thinking", "--thinking-budget", "0", "--continue-final", "--stop", "-", "--stop", "END"]
    assert main([*chat, *how, *others]) == 0
    prompt, options = stage.asked[0]
    tools = (
        ToolDefinition("get_weather", "Says the weather.", '{"type": "object"}', strict=True),
        ToolDefinition("现在"),
    )
    assert prompt == ChatPrompt([{"role": "user", "content": "Hi"}], tools, thinking=False, continue_final=True)
    choice = ToolChoice(ToolMode.REQUIRED, parallel=False, enforcement=ToolEnforcement.AUTOMATIC)
    assert options == RequestOptions(tool_choice=choice, thinking_budget=0, stop=("-", "END"))


@pytest.mark.parametrize(
    ("flags", "choice"),
    [
        ([], ToolChoice()),
        (["--tool-choice", "none"], ToolChoice(ToolMode.NONE)),
        (["--tool-choice", "现在"], ToolChoice.named("现在")),
        (["--no-parallel-tools"], ToolChoice(parallel=False)),
    ],
)
def test_tool_choices(stage: Stage, chat: list[str], flags: list[str], choice: ToolChoice) -> None:
    assert main([*chat, *flags]) == 0
    assert stage.asked[0][1].tool_choice == choice


@pytest.mark.parametrize(("flag", "thinking"), [([], None), (["--thinking"], True), (["--no-thinking"], False)])
def test_thinking_is_the_templates_affair_unless_it_is_said(
    stage: Stage, chat: list[str], flag: list[str], thinking: bool | None
) -> None:
    assert main([*chat, *flag]) == 0
    assert stage.asked[0][0].thinking is thinking


@pytest.mark.parametrize(
    ("content", "output"), [([], ""), (["Let me", " look."], "Let me look.\n"), (["Look:\n"], "Look:\n")]
)
def test_calls_are_lines_behind_the_content(
    stage: Stage, chat: list[str], content: list[Any], output: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    diagnostics = ToolDiagnostics(marker_seen=True, num_calls=2)
    stage.answers[0] = PlayedStream(content, calls=CALLS, diagnostics=diagnostics, constraint=observation())
    assert main(chat) == exit_codes.SUCCESS
    printed, errors = capfdbinary.readouterr()
    assert printed.decode() == output + CALL_LINES
    assert "tool calls: 2 complete" in errors.decode().splitlines()


def test_a_cut_answer_prints_the_complete_calls(
    stage: Stage, chat: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for calls, text in [(CALLS[1:], "1 complete"), ((), "none complete")]:
        stage.answers[0] = PlayedStream(
            [],
            calls=calls,
            finish_reason=FinishReason.OUTPUT_LIMIT,
            constraint=observation(complete=False, terminated=False),
            diagnostics=ToolDiagnostics(marker_seen=True, num_calls=len(calls)),
        )
        assert main(chat) == exit_codes.INCOMPLETE
        printed, errors = capfdbinary.readouterr()
        assert printed.count(b"\n") == len(calls)
        assert f"tool calls: {text}" in errors.decode().splitlines()


def test_the_report_tells_what_was_noticed_about_calls(
    stage: Stage, chat: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    diagnostics = ToolDiagnostics(True, 0, 1, 2, 3, ToolFallback.UNDECLARED_TOOL, was_recovered=True)
    stage.answers[0] = PlayedStream(["<tool_call>"], diagnostics=diagnostics)
    assert main(chat) == exit_codes.SUCCESS
    assert capfdbinary.readouterr().err.decode().splitlines()[3:] == [
        "tool calls: none complete",
        "            read although not written as asked",
        "            arguments empty and left out: 1",
        "            arguments not of the declared type: 2",
        "            arguments given twice with one value: 3",
        "            a call is printed as text: there is no tool of its name",
    ]


@pytest.mark.parametrize("is_shown", [True, False])
def test_reasoning_is_no_content(
    stage: Stage, chat: list[str], is_shown: bool, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    stage.answers[0] = PlayedStream([thought("h"), thought("m"), "Hi"], thinking=ThinkingStatistics(9, 9, 4))
    assert main([*chat, *["--show-reasoning"] * is_shown]) == 0
    printed, errors = capfdbinary.readouterr()
    lines = errors.decode().splitlines()
    assert printed == b"Hi"
    assert lines[1:-2] == (["hm"] if is_shown else []) + ["finished:   stop_token: the model ended its answer"]
    assert lines[-1] == "thinking:   9 tokens of 9 allowed; 4 put in to end it"


def test_reasoning_without_an_answer_ends_its_line(
    stage: Stage, chat: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    stage.answers[0] = PlayedStream([thought("hm")], FinishReason.OUTPUT_LIMIT, thinking=ThinkingStatistics(None, 2, 0))
    assert main([*chat, "--show-reasoning"]) == 0
    lines = capfdbinary.readouterr().err.decode().splitlines()
    assert (lines[1], lines[-1]) == ("hm", "thinking:   2 tokens")


@pytest.mark.parametrize("reason", list(FinishReason))
def test_every_end_has_a_name(stage: Stage, reason: FinishReason, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    stage.answers[0] = PlayedStream(["x"], reason)
    main(["generate", "--prompt", "x"])
    assert f"finished:   {reason.value}: ".encode() in capfdbinary.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--tool-choice", "auto"], "--tool-choice: there are no tools (--tools)"),
        (["--tool-enforcement", "basic"], "--tool-enforcement: there are no tools (--tools)"),
        (["--no-parallel-tools"], "--no-parallel-tools: there are no tools (--tools)"),
        (["--thinking"], "--thinking: a text to continue (--prompt) is no chat"),
        (["--no-thinking"], "--no-thinking: a text to continue (--prompt) is no chat"),
        (["--thinking-budget", "0"], "--thinking-budget: a text to continue (--prompt) is no chat"),
        (["--show-reasoning"], "--show-reasoning: a text to continue (--prompt) is no chat"),
        (["--continue-final"], "--continue-final: a text to continue (--prompt) is no chat"),
        (["--stop", ""], "--stop: a stop string has 1..1024 characters"),
    ],
)
def test_a_flag_without_a_meaning_is_refused(
    stage: Stage, flags: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "--prompt", "x", *flags]) == exit_codes.BAD_INPUT
    assert capfd.readouterr().err == f"infernix: error: {message}\n"
    assert stage.loaded_with == {}


def test_a_text_has_no_tools(stage: Stage, chat: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--prompt", "x", *chat[3:]]) == exit_codes.BAD_INPUT
    assert capfd.readouterr().err == "infernix: error: --tools: a text to continue (--prompt) is no chat\n"


def test_a_choice_that_is_no_tool_is_refused(stage: Stage, chat: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*chat, "--tool-choice", "get_time"]) == exit_codes.BAD_INPUT
    message = "'get_time' is neither auto, none, required nor the name of a tool"
    assert capfd.readouterr().err == f"infernix: error: --tool-choice: {message}\n"


@pytest.mark.parametrize(
    ("error", "file"),
    [
        (tool_error(UnsupportedJsonSchema("the keyword", "/x"), "f", 0), "tools.json"),
        (InvalidToolConstraint("the tool name 'f' comes twice", "/1/name"), "tools.json"),
        (InvalidToolConstraint("the text to continue holds a completed tool call"), None),
        (UnsupportedJsonSchema("the keyword", "/x"), "schema.json"),
    ],
)
def test_a_refusal_names_the_file_that_it_is_about(
    stage: Stage,
    chat: list[str],
    tmp_path: Path,
    error: ConstraintError,
    file: str | None,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "schema.json").write_text("{}")
    stage.answers[0] = error
    assert main([*chat, "--json-schema-file", str(tmp_path / "schema.json")]) == exit_codes.BAD_INPUT
    source = "" if file is None else f"{tmp_path / file}: "
    assert capfd.readouterr().err.splitlines()[1:] == [f"infernix: error: {source}{error}"]


def test_standard_input_is_one_file_with_tools_too(stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--messages", "-", "--tools", "-"]) == exit_codes.BAD_INPUT
    assert "only one of the files" in capfd.readouterr().err
