"""`infernix chat` around an engine that is played, with lines from a pipe and from a terminal."""

from __future__ import annotations

import io
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from infernix.cli import exit_codes
from infernix.cli.main import main
from infernix.errors import ContextLengthExceeded, InvalidGrammar
from infernix.messages import ChatPrompt, Message
from infernix.options import OutputConstraint, RequestOptions
from infernix.results import FinishReason
from infernix.tools import ToolCall, ToolChoice, ToolEnforcement, ToolMode
from support.played_engine import PlayedStream, Stage, observation, thought

CALLS = (ToolCall("add", '{"a": 1, "b": 2}'), ToolCall("now", "{}"))


def chat(monkeypatch: pytest.MonkeyPatch, lines: str | bytes, *flags: str) -> int:
    data = lines.encode() if isinstance(lines, str) else lines
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    return main(["chat", *flags])


def messages_of(request: tuple[Any, RequestOptions]) -> list[tuple[str, str]]:
    prompt, _ = request
    assert isinstance(prompt, ChatPrompt)
    return [(message.role, message.content) for message in prompt.messages if isinstance(message, Message)]


@pytest.fixture
def tools(tmp_path: Path) -> list[str]:
    (tmp_path / "tools.json").write_text(json.dumps([{"name": "add"}, {"name": "now"}]))
    return ["--tools", str(tmp_path / "tools.json")]


def test_each_line_is_answered_in_the_light_of_all_before(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    stage.answers = [PlayedStream([thought("hm"), "Hel", "lo."]), PlayedStream(["Fine.\n"]), PlayedStream([])]
    assert chat(monkeypatch, "Hi\n\n  \nAnd you?\nBye", "--system", "-Be brief.") == exit_codes.SUCCESS
    assert capfdbinary.readouterr() == (b"Hello.\nFine.\n\n", b"opening the model\n")
    assert [messages_of(request) for request in stage.asked] == [
        [("system", "-Be brief."), ("user", "Hi")],
        [("system", "-Be brief."), ("user", "Hi"), ("assistant", "Hello."), ("user", "And you?")],
        [
            *[("system", "-Be brief."), ("user", "Hi"), ("assistant", "Hello."), ("user", "And you?")],
            *[("assistant", "Fine.\n"), ("user", "Bye")],
        ],
    ]
    assert stage.asked[1][0].messages[2].reasoning == "hm"


def test_flags_reach_every_request(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chat(monkeypatch, "a\nb\n", "--regex", "[a-z]+", "--max-new", "7", "--no-thinking") == 0
    for prompt, options in stage.asked:
        assert prompt.thinking is False
        assert options == RequestOptions(7, OutputConstraint.regex("[a-z]+"))


def test_commands(stage: Stage, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert chat(monkeypatch, "a\n/reset\n/etc/passwd?\r\n/exit\nb\n", "--system", "S") == exit_codes.SUCCESS
    assert [messages_of(request) for request in stage.asked] == [
        [("system", "S"), ("user", "a")],
        [("system", "S"), ("user", "/etc/passwd?")],
    ]
    assert capfdbinary.readouterr().out == b"ok\nok\n"


def test_nothing_to_read_is_no_chat(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert chat(monkeypatch, "") == exit_codes.SUCCESS
    assert (stage.asked, capfdbinary.readouterr().out) == ([], b"")
    monkeypatch.setattr("sys.stdin", None)
    assert main(["chat"]) == exit_codes.BAD_INPUT


# Tools


def test_results_of_calls_are_typed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tools: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    stage.answers = [PlayedStream(["Let me see."], calls=CALLS), PlayedStream(["3 at noon."])]
    assert chat(monkeypatch, "1 + 2?\n3\n\nthanks\n", *tools) == exit_codes.SUCCESS
    output = b'Let me see.\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n{"name": "now", "arguments": {}}\n'
    assert capfdbinary.readouterr().out == output + b"3 at noon.\n3 at noon.\n"
    said = [("user", "1 + 2?"), ("assistant", "Let me see."), ("tool", "3"), ("tool", "")]
    assert [messages_of(request) for request in stage.asked] == [
        said[:1],
        said,
        [*said, ("assistant", "3 at noon."), ("user", "thanks")],
    ]
    history = stage.asked[1][0].messages
    assert history[1].tool_calls == CALLS
    assert [message.name for message in history[2:]] == ["add", "now"]
    assert [tool.name for tool in stage.asked[1][0].tools] == ["add", "now"]


@pytest.mark.parametrize(
    ("flags", "first", "second"),
    [
        (["--tool-choice", "add"], ToolChoice.named("add"), ToolChoice()),
        (
            ["--tool-choice", "required", "--no-parallel-tools", "--tool-enforcement", "automatic"],
            ToolChoice(ToolMode.REQUIRED, parallel=False, enforcement=ToolEnforcement.AUTOMATIC),
            ToolChoice(parallel=False, enforcement=ToolEnforcement.AUTOMATIC),
        ),
        (["--no-parallel-tools"], ToolChoice(parallel=False), ToolChoice(parallel=False)),
    ],
)
def test_a_call_is_required_once_for_each_question(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    tools: list[str],
    flags: list[str],
    first: ToolChoice,
    second: ToolChoice,
) -> None:
    stage.answers = [PlayedStream([], calls=CALLS[:1]), PlayedStream(["3"])]
    assert chat(monkeypatch, "1 + 2?\n3\nAgain?\n", *tools, *flags) == exit_codes.SUCCESS
    assert [options.tool_choice for _, options in stage.asked] == [first, second, first]


@pytest.mark.parametrize("rest", ["", "3\n", "/exit\nx\n", "3\n/exit\n"])
def test_the_chat_may_end_where_results_are_due(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tools: list[str], rest: str
) -> None:
    stage.answers = [PlayedStream([], calls=CALLS)]
    assert chat(monkeypatch, f"1 + 2?\n{rest}", *tools) == exit_codes.SUCCESS
    assert len(stage.asked) == 1


def test_standard_input_is_the_chat(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for flag in ("--tools", "--grammar-file", "--json-schema-file"):
        assert chat(monkeypatch, "x", flag, "-") == exit_codes.BAD_INPUT
        assert "standard input" in capfd.readouterr().err


# Ends that are none of the model's


def test_an_answer_that_was_cut_is_told(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cut = PlayedStream(['{"a'], FinishReason.OUTPUT_LIMIT, observation(complete=False, terminated=False))
    stage.answers = [cut, PlayedStream(["{}"], constraint=observation())]
    assert chat(monkeypatch, "a\nb\n", "--json-object") == exit_codes.INCOMPLETE
    output, errors = capfd.readouterr()
    assert output == '{"a\n{}\n'
    assert errors.splitlines()[1:] == ["finished:   output_limit: the output limit was reached (--max-new)"]
    assert messages_of(stage.asked[1])[1] == ("assistant", '{"a')


def test_an_interrupt_ends_the_answer_only(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cut = PlayedStream(["one", signal.SIGINT, "two"], constraint=observation(complete=False, terminated=False))
    stage.answers = [cut, PlayedStream([thought("hm"), signal.SIGINT, "x"]), PlayedStream(["fine"])]
    assert chat(monkeypatch, "a\nb\nc\n") == exit_codes.SUCCESS
    output, errors = capfd.readouterr()
    assert output == "one\n\nfine\n"
    assert errors.count("finished:   cancelled") == 2
    # The text stays; a question without any answer does not.
    assert messages_of(stage.asked[2]) == [("user", "a"), ("assistant", "one"), ("user", "c")]


def test_the_calls_of_an_interrupted_answer_are_not_made(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tools: list[str]
) -> None:
    stage.answers = [PlayedStream(["one", signal.SIGINT, "two"], calls=CALLS), PlayedStream(["fine"])]
    assert chat(monkeypatch, "a\nb\n", *tools) == exit_codes.SUCCESS
    assert messages_of(stage.asked[1]) == [("user", "a"), ("assistant", "one"), ("user", "b")]
    assert stage.asked[1][0].messages[1].tool_calls == ()


def test_an_error_ends_a_chat_from_a_pipe(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for error in (ContextLengthExceeded("too long"), InvalidGrammar("no rule named root")):
        stage.answers, stage.asked = [PlayedStream(["ok"]), error], []
        assert chat(monkeypatch, "a\nb\nc\n") == exit_codes.BAD_INPUT
        assert capfd.readouterr() == ("ok\n", f"opening the model\ninfernix: error: {error}\n")


def test_what_is_no_utf8_is_no_traceback(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chat(monkeypatch, b"\xff\n") == exit_codes.SUCCESS  # the engine, which is played here, refuses it
    assert messages_of(stage.asked[0]) == [("user", "\udcff")]


# On a terminal


class Terminal(io.TextIOWrapper):
    """Standard input that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_each_line_is_asked_for_and_errors_end_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tools: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    stage.answers = [
        PlayedStream([], calls=CALLS[:1]),
        PlayedStream(["3"]),
        ContextLengthExceeded("too long"),
        PlayedStream(["fine"]),
    ]
    monkeypatch.setattr("sys.stdin", Terminal(io.BytesIO(b"1 + 2?\n3\nwhy?\nbye\n")))
    assert main(["chat", *tools]) == exit_codes.SUCCESS
    output, errors = capfd.readouterr()
    assert output == '{"name": "add", "arguments": {"a": 1, "b": 2}}\n3\nfine\n'
    assert errors == "opening the model\n> result of add> > \ninfernix: error: too long\n> > "
    assert messages_of(stage.asked[3])[-2:] == [("assistant", "3"), ("user", "bye")]


def test_a_constraint_that_is_refused_ends_the_chat_on_a_terminal_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.answers = [InvalidGrammar("no rule named root")]
    monkeypatch.setattr("sys.stdin", Terminal(io.BytesIO(b"a\nb\n")))
    assert main(["chat"]) == exit_codes.BAD_INPUT
    assert len(stage.asked) == 1
