"""The small files of a model directory: texts and JSON objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from infernix.errors import ModelLoadError


def read_text(path: Path) -> str:
    """The UTF-8 text in the file. Raises ModelLoadError, naming the file, where there is none."""
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors put a byte order mark first
    except FileNotFoundError:
        raise ModelLoadError(f"{path}: file is missing") from None
    except UnicodeDecodeError as error:
        raise ModelLoadError(f"{path}: not UTF-8 at byte {error.start}") from error
    except OSError as error:
        raise ModelLoadError(f"{path}: cannot be read: {error.strerror}") from error


def read_json_object(path: Path) -> dict[str, Any]:
    """The object that the file holds. Raises ModelLoadError, naming the file, where there is none."""
    try:
        document = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ModelLoadError(f"{path}: not JSON: {error.msg.removesuffix(' at')} at {place}") from error
    except (ValueError, RecursionError) as error:
        raise ModelLoadError(f"{path}: not usable JSON: {error}") from error
    if not isinstance(document, dict):
        raise ModelLoadError(f"{path}: expected a JSON object, got {type(document).__name__}")
    return document
