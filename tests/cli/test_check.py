"""`infernix check` on real constraints."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

import infernix.matching
from infernix.cli.main import main

Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("warmed_kernels")


def feed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.mark.parametrize(
    "flags",
    [
        ["--regex", "[0-9]{3}"],
        ["--regex", ""],
        ["--choice", "", "--choice", "yes"],
        ["--json-object"],
    ],
)
def test_accepted(flags: list[str], capsys: Output) -> None:
    assert main(["check", *flags]) == 0
    assert capsys.readouterr() == ("accepted\n", "")


@pytest.mark.parametrize(
    ("flag", "source", "place"),
    [
        ("--grammar-file", 'root ::= "a" nowhere', "line 1, column 14"),
        ("--grammar-file", 'root ::= "a"\nx ::= (', "line 2, column 7"),
        ("--json-schema-file", '{"properties": {"a": {"type": 3}}}', "/properties/a/type"),
        ("--json-schema-file", '{"uniqueItems": true}', "/uniqueItems"),
    ],
)
def test_refused_and_where(flag: str, source: str, place: str, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, source)
    assert main(["check", flag, "-"]) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("infernix: error: standard input: ")
    assert place in errors


def test_a_keyword_is_ignored_by_name_unless_it_is_enforced(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    source = '{"type": "string", "format": "date"}'
    feed(monkeypatch, source)
    assert main(["check", "--json-schema-file", "-", "--ignore-keyword", "format"]) == 0
    assert capsys.readouterr() == ("accepted\n", "")
    feed(monkeypatch, source)
    assert main(["check", "--json-schema-file", "-", "--ignore-keyword", "type"]) == 2
    message = "infernix: error: --ignore-keyword: 'type' is enforced and cannot be ignored\n"
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize("model", [[], pytest.param(["--model", "smollm2"], marks=pytest.mark.real_model)])
def test_compiling_the_kernels_is_announced(model: list[str], capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(infernix.matching, "warm_kernels", lambda progress: progress("compiling"))
    assert main(["check", "--regex", "a", *model]) == 0
    assert capsys.readouterr() == ("accepted\n", "compiling\n")


def test_a_wrong_constraint_waits_for_no_kernels(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(infernix.matching, "warm_kernels", lambda progress: pytest.fail("warmed"))
    assert main(["check", "--regex", "("]) == 2


def test_refused_regex(capsys: Output) -> None:
    assert main(["check", "--regex", "ab(?=c)"]) == 2
    first, *excerpt = capsys.readouterr().err.splitlines()
    assert first == "infernix: error: lookahead is not supported at line 1, column 3"
    assert excerpt == ["ab(?=c)", "  ^"]


@pytest.mark.parametrize("flag", ["--grammar-file", "--json-schema-file", "--regex"])
def test_ten_thousand_levels_end_in_an_error(flag: str, tmp_path: Path, capsys: Output) -> None:
    depth = 10_000
    source = {
        "--grammar-file": f'root ::= {"(" * depth}"a"{")" * depth}',
        "--json-schema-file": f"{'{' + chr(34) + 'items' + chr(34) + ':'}" * depth + "true" + "}" * depth,
        "--regex": "(" * depth + "a" + ")" * depth,
    }[flag]
    path = tmp_path / "source"
    path.write_text(source)
    assert main(["check", flag, source if flag == "--regex" else str(path)]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("infernix: error: ")
    assert len(errors) < 1000


def test_a_text_that_belongs(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "answer.json"
    path.write_text('{"a": ["é", 1.5e3, {}]}')
    assert main(["check", "--json-object", "--text", str(path)]) == 0
    assert capsys.readouterr().out == f"accepted\n{path} belongs to the language\n"


def test_a_text_that_leaves_the_language(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    feed(monkeypatch, "12a4")
    assert main(["check", "--regex", r"\d{2,3}", "--text", "-"]) == 1
    assert capsys.readouterr() == (
        "accepted\nstandard input leaves the language at byte 2 (line 1, column 3)\n12a4\n  ^\n"
        "could stand there: '0'..'9', or the end of the text\n",
        "",
    )


def test_a_text_that_ends_early(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    feed(monkeypatch, '{"a"')
    assert main(["check", "--json-object", "--text", "-"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == [
        "standard input ends too early, at byte 4 (line 1, column 5)",
        '{"a"',
        "    ^",
        r"could follow: '\t', '\n', '\r', ' ' or ':'",
    ]


def test_characters_beyond_ascii_are_named_whole(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    feed(monkeypatch, "é")
    assert main(["check", "--regex", "[à-ä漢]", "--text", "-"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "could stand there: 'à'..'ä' or '漢'"


def test_text_is_not_judged_under_a_grammar_that_names_tokens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Output
) -> None:
    feed(monkeypatch, 'root ::= ("a" | Token(3))*')
    text = tmp_path / "text"
    text.write_text("a")
    assert main(["check", "--grammar-file", "-", "--text", str(text)]) == 2
    assert "the grammar names tokens" in capsys.readouterr().err


def test_an_unreadable_text_is_an_error_before_anything_else(capsys: Output) -> None:
    assert main(["check", "--regex", "a", "--text", "nowhere"]) == 2
    assert capsys.readouterr() == ("", "infernix: error: cannot read nowhere: No such file or directory\n")


def test_one_standard_input_for_two_files(capsys: Output) -> None:
    assert main(["check", "--grammar-file", "-", "--text", "-"]) == 2
    assert "only one of the files" in capsys.readouterr().err


@pytest.mark.real_model
@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ('root ::= "a" Token(200) | ExcludeToken(300)', 0, ""),
        ('root ::= "a" Token(2)', 2, "ends the sequence"),
        ('root ::= "a" Token(1)', 2, "control token"),
        ("root ::= Token(49152)", 2, "out of range"),
        ('root ::= "a" nowhere', 2, "line 1, column 14"),
    ],
)
def test_a_model_s_vocabulary_is_met_without_its_weights(
    source: str, code: int, message: str, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(monkeypatch, source)
    assert main(["check", "--grammar-file", "-", "--model", "smollm2"]) == code
    assert message in capsys.readouterr().err


def test_a_model_that_is_not_there(capsys: Output) -> None:
    assert main(["check", "--regex", "a", "--model", "/nowhere"]) == 2
    assert capsys.readouterr().err.startswith("infernix: error: /nowhere: no such model directory")


def test_what_the_output_cannot_encode_is_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "text"
    path.write_text("é")
    with open(os.dup(1), "w", encoding="ascii") as output:
        monkeypatch.setattr("sys.stdout", output)
        assert main(["check", "--regex", "ü", "--text", str(path)]) == 1
    assert b"could stand there: '\\xfc'" in capfdbinary.readouterr().out
