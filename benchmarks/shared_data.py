"""Grammars that lie beside the project and are not part of it."""

from __future__ import annotations

import os
from pathlib import Path

DIRECTORY_VARIABLE = "INFERNIX_SHARED_DATA"


class MissingData(Exception):
    """A file that a case needs is not on this machine."""


def read_shared_data(relative: str) -> str:
    """A text of the data folder: `$INFERNIX_SHARED_DATA`, or `../shared/data` beside the project."""
    root = os.environ.get(DIRECTORY_VARIABLE) or Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(root) / relative
    if not path.is_file():
        raise MissingData(f"{relative} is absent; set {DIRECTORY_VARIABLE} to the folder that holds it")
    return path.read_text(encoding="utf-8")
