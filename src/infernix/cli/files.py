"""Reading the files that the command line names; `-` is standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from infernix.errors import InfernixError


class InputFileError(InfernixError):
    """A named file cannot be read, or does not hold what it should."""

    code = "input_file"


def display_name(path: str) -> str:
    """How messages call the file."""
    return "standard input" if path == "-" else path


def read_bytes(path: str) -> bytes:
    """The whole content of the file, or of standard input for `-`."""
    if path == "-" and sys.stdin is None:
        raise InputFileError("cannot read standard input: it is closed")
    if not path:
        raise InputFileError("the name of the file to read is empty")
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputFileError(f"cannot read {display_name(path)}: {error.strerror or error}") from error
    except ValueError as error:  # a NUL in the name
        raise InputFileError(f"cannot read {path!r}: {error}") from error


def read_text(path: str) -> str:
    """The content as UTF-8 text, line ends untouched."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputFileError(
            f"{display_name(path)} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}, line {line}"
        ) from error


def read_json(path: str) -> Any:
    """The content as a JSON document."""
    return parse_json(read_text(path), display_name(path))


def parse_json(text: str, name: str) -> Any:
    """The document that `text` is; `name` is what messages call it."""
    try:
        return json.loads(text, object_pairs_hook=_without_repetition, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputFileError(f"{name} is not JSON: {error.msg.removesuffix(' at')} at {place}") from error
    except RecursionError as error:
        raise InputFileError(f"{name} is nested too deeply") from error
    except ValueError as error:  # a name that comes twice, a number of thousands of digits
        raise InputFileError(f"{name} is not usable JSON: {error}") from error


def read_messages(path: str) -> list[dict[str, Any]]:
    """A JSON list of objects: what is in them is the chat template's affair."""
    document = read_json(path)
    if not isinstance(document, list):
        raise InputFileError(f"{display_name(path)}: expected a list of messages, got {json_type(document)}")
    for index, message in enumerate(document):
        if not isinstance(message, dict):
            raise InputFileError(
                f"{display_name(path)}: messages[{index}]: expected an object with role and content,"
                f" got {json_type(message)}"
            )
    return document


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name, value in pairs:
        if name in document:
            raise ValueError(f"the name {name[:40]!r} comes twice in one object")
        document[name] = value
    return document


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"it holds {name}")


def json_type(value: object) -> str:
    """What messages call the type of a parsed value."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
