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
    text = read_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputFileError(
            f"{display_name(path)} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise InputFileError(f"{display_name(path)} is nested too deeply") from error
