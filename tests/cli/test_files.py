from __future__ import annotations

import io
from pathlib import Path

import pytest

from infernix.cli.arguments import refuse_shared_input
from infernix.cli.files import InputFileError, read_bytes, read_json, read_messages, read_text


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"cannot read .*nowhere: No such file or directory"):
        read_bytes(str(tmp_path / "nowhere"))
    with pytest.raises(InputFileError, match="Is a directory"):
        read_bytes(str(tmp_path))
    with pytest.raises(InputFileError, match="null"):
        read_bytes("a\0b")


def test_text_that_is_not_utf8_names_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "latin1.gbnf"
    path.write_bytes(b"ok\nab\xe9")
    with pytest.raises(InputFileError, match="byte 0xe9 at offset 5, line 2"):
        read_text(str(path))


def test_line_ends_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a\r\nb\r")
    assert read_text(str(path)) == "a\r\nb\r"


def test_json_errors_have_a_place(tmp_path: Path) -> None:
    path = tmp_path / "messages.json"
    path.write_text('[\n {"role": }]')
    with pytest.raises(InputFileError, match="is not JSON: Expecting value at line 2, column 11"):
        read_json(str(path))
    path.write_text('["open')
    with pytest.raises(InputFileError, match="is not JSON: Unterminated string starting at line 1, column 2"):
        read_json(str(path))
    path.write_text("[" * 200_000)
    with pytest.raises(InputFileError, match="is nested too deeply"):
        read_json(str(path))


def test_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'["\xc3\xa9"]')))
    assert read_json("-") == ["é"]


def test_standard_input_serves_one_file_only() -> None:
    refuse_shared_input("-", None, "file")
    with pytest.raises(InputFileError, match="only one"):
        refuse_shared_input("-", None, "-")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"hello"', "expected a list of messages, got a string"),
        ('{"role": "user", "content": "a"}', "expected a list of messages, got an object"),
        ("null", "expected a list of messages, got null"),
        ("true", "expected a list of messages, got a boolean"),
        ("[1, 2, 3]", r"messages\[0\]: expected an object with role and content, got a number"),
        ('[{"role": "user"}, [] ]', r"messages\[1\]: expected an object with role and content, got a list"),
        ('[{"role": "user", "role": "system"}]', "the name 'role' comes twice in one object"),
        ("[" + "9" * 5000 + "]", "is not usable JSON"),
    ],
)
def test_messages_are_a_list_of_objects(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "messages.json"
    path.write_text(text)
    with pytest.raises(InputFileError, match=f"messages.json.*{message}"):
        read_messages(str(path))


def test_closed_standard_input_and_empty_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputFileError, match="standard input: it is closed"):
        read_bytes("-")
    with pytest.raises(InputFileError, match="is empty"):
        read_bytes("")
