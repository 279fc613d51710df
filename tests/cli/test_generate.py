"""`infernix generate` around an engine that is played: what goes where, and the exit codes."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from infernix.cli import exit_codes
from infernix.cli.main import main
from infernix.errors import (
    ConstraintDeadEnd,
    InfernixError,
    InvalidGrammar,
    NonFiniteLogits,
)
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import ConstraintObservation, FinishReason
from support.played_engine import PlayedStream, Stage, observation


def test_content_goes_to_standard_output_and_nothing_else_does(
    stage: Stage, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    stage.answers[0] = PlayedStream(['{"na', 'me": "Zoë"}'], constraint=observation())
    assert main(["generate", "--prompt", "x", "--json-object"]) == exit_codes.SUCCESS
    output, errors = capfdbinary.readouterr()
    assert output == '{"name": "Zoë"}'.encode()
    assert errors.decode().splitlines() == [
        "opening the model",
        "finished:   stop_token: the model ended its answer",
        "tokens:     7 in the prompt (0.25 s), 3 generated (4.0 tokens/s)",
        "constraint: complete, terminated; compiled grammar built",
        "            4 mask positions; prepare 10.5 ms, masks 2.0 ms, matcher 0.1 ms",
    ]


def test_the_request_is_what_the_flags_say(stage: Stage, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Ça va?"}]
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    flags = ["--regex", "a|b", "--max-new", "9", "--greedy", "--model", "dir", "--device", "cpu", "--dtype", "int8"]
    assert main(["generate", "--messages", str(path), *flags, "--threads", "2", "--max-context", "64"]) == 0
    assert stage.asked == [
        (
            ChatPrompt(messages),
            RequestOptions(
                max_new_tokens=9, constraint=OutputConstraint.regex("a|b"), sampling=SamplingOptions.greedy()
            ),
        )
    ]
    del stage.loaded_with["progress"]
    assert stage.loaded_with == {
        "model": "dir",
        "device": "cpu",
        "dtype": "int8",
        "num_threads": 2,
        "max_context": 64,
        "max_concurrency": 1,
        "ngram_draft_tokens": 0,
        "ngram_min_match": 12,
        "speculation": "none",
        "draft_tokens": None,
        "draft_model": None,
    }


def test_the_drafts_are_what_the_flags_say(stage: Stage) -> None:
    flags = ["--spec", "dflash", "--draft-tokens", "5", "--draft-model", "there", "--ngram-draft-tokens", "7"]
    assert main(["generate", "--prompt", "x", *flags]) == 0
    told = {name: stage.loaded_with[name] for name in ("speculation", "draft_tokens", "draft_model")}
    assert told == {"speculation": "dflash", "draft_tokens": 5, "draft_model": "there"}
    assert stage.loaded_with["ngram_draft_tokens"] == 7


def test_defaults(stage: Stage) -> None:
    assert main(["generate", "--prompt", "x"]) == 0
    assert stage.asked == [("x", RequestOptions(max_new_tokens=256))]
    del stage.loaded_with["progress"]
    assert stage.loaded_with == {
        "model": None,
        "device": "auto",
        "dtype": "auto",
        "num_threads": 1,
        "max_context": None,
        "max_concurrency": 1,
        "ngram_draft_tokens": 0,
        "ngram_min_match": 12,
        "speculation": "none",
        "draft_tokens": None,
        "draft_model": None,
    }


def test_token_ids_are_printed_on_request(stage: Stage, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    main(["generate", "--prompt", "x", "--print-token-ids"])
    output, errors = capfdbinary.readouterr()
    assert (output, errors.decode().splitlines()[1]) == (b"ok", "token ids:  5 6 2")


@pytest.mark.parametrize(
    ("constraint", "reason", "code"),
    [
        (None, FinishReason.OUTPUT_LIMIT, 0),
        (observation(complete=False, terminated=False), FinishReason.OUTPUT_LIMIT, 3),
        (observation(complete=False, terminated=False), FinishReason.CONTEXT_CAPACITY, 3),
        (observation(complete=True, terminated=False), FinishReason.OUTPUT_LIMIT, 0),
    ],
)
def test_exit_code_says_whether_the_shape_was_reached(
    stage: Stage,
    constraint: ConstraintObservation | None,
    reason: FinishReason,
    code: int,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    stage.answers[0] = PlayedStream(["{"], finish_reason=reason, constraint=constraint)
    assert main(["generate", "--prompt", "x"]) == code
    errors = capfdbinary.readouterr().err.decode()
    assert f"finished:   {reason.value}: " in errors
    assert ("NOT complete" in errors) == (code == 3)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InvalidGrammar("no rule named root"), 2, "infernix: error: no rule named root\n"),
        (NonFiniteLogits("no finite score"), 1, "infernix: internal error: no finite score\n"),
    ],
)
def test_a_refused_request(
    stage: Stage, error: InfernixError, code: int, message: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    stage.answers[0] = error
    assert main(["generate", "--prompt", "x"]) == code
    assert capfdbinary.readouterr() == (b"", b"opening the model\n" + message.encode())


def test_an_error_in_the_middle_keeps_what_was_written(stage: Stage, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    stage.answers[0] = PlayedStream(["begun", ConstraintDeadEnd("nothing can follow")])
    assert main(["generate", "--prompt", "x"]) == 2
    output, errors = capfdbinary.readouterr()
    assert output == b"begun"
    assert errors.endswith(b"infernix: error: nothing can follow\n")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--model", "missing"], "there is no model at missing"),
        (["--max-new", "-1"], "--max-new: -1 is outside"),
        (["--temperature", "9"], "--temperature: 9.0 is outside 0..2"),
        (["--grammar-file", "nowhere.gbnf"], "cannot read nowhere.gbnf: No such file or directory"),
    ],
)
def test_bad_input_is_one_line(
    stage: Stage, flags: list[str], message: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["generate", "--prompt", "x", *flags]) == exit_codes.BAD_INPUT
    output, errors = capfdbinary.readouterr()
    assert output == b""
    assert errors.decode().startswith(f"infernix: error: {message}")
    assert errors.count(b"\n") == 1


def test_a_closed_output_ends_quietly(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as closed_pipe:
        monkeypatch.setattr("sys.stdout", closed_pipe)
        assert main(["generate", "--prompt", "x"]) == exit_codes.OUTPUT_CLOSED
    assert capfdbinary.readouterr().err == b"opening the model\n"


def test_a_full_disk_is_one_line(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert main(["generate", "--prompt", "x"]) == exit_codes.BAD_INPUT
    errors = capfdbinary.readouterr().err.decode().splitlines()
    assert errors[1:] == ["infernix: error: [Errno 28] No space left on device"]


def test_interrupt_ends_between_tokens_with_a_report(stage: Stage, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    before = signal.getsignal(signal.SIGINT)
    stage.answers[0] = PlayedStream(["one", signal.SIGINT, "two"])
    assert main(["generate", "--prompt", "x"]) == exit_codes.INTERRUPTED
    output, errors = capfdbinary.readouterr()
    assert output == b"one"
    assert b"finished:   cancelled" in errors
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_ends_at_once(stage: Stage, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    stage.answers[0] = PlayedStream(["one", signal.SIGINT, "two"])
    played = stage.answers[0]
    assert isinstance(played, PlayedStream)
    played.cancel = lambda: signal.raise_signal(signal.SIGINT)  # type: ignore[method-assign]
    assert main(["generate", "--prompt", "x"]) == exit_codes.INTERRUPTED
    assert capfdbinary.readouterr().err == b"opening the model\ninfernix: interrupted\n"


def test_token_ids_and_texts_are_no_messages(stage: Stage, tmp_path: Path) -> None:
    for text in ("[1, 2]", '"hello"'):
        (tmp_path / "messages.json").write_text(text)
        assert main(["generate", "--messages", str(tmp_path / "messages.json")]) == exit_codes.BAD_INPUT
    assert stage.asked == []


def test_without_standard_output_nothing_is_generated(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert main(["generate", "--prompt", "x"]) == exit_codes.OUTPUT_CLOSED
    assert stage.asked == []
    assert capfd.readouterr().err == "infernix: error: standard output is closed\n"


def test_without_standard_error_the_report_does_not_reach_the_output(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr("sys.stderr", None)
    assert main(["generate", "--prompt", "x"]) == exit_codes.SUCCESS
    sys.stderr.close()
    assert capfdbinary.readouterr().out == b"ok"


@pytest.mark.parametrize("flag", ["--max-new", "--threads", "--seed"])
def test_a_flag_given_twice_is_refused_even_where_it_has_a_default(
    stage: Stage, capfd: pytest.CaptureFixture[str], flag: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["generate", "--prompt", "x", flag, "1", flag, "2"])
    assert caught.value.code == exit_codes.BAD_INPUT
    assert f"argument {flag}: given twice" in capfd.readouterr().err
