"""Test data that lives beside the project and is not part of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROJECT_ROOT = Path(__file__).resolve().parents[2]
DIRECTORY_VARIABLE = "INFERNIX_SHARED_DATA"


def shared_data(relative: str = "") -> Path:
    """The path of a file or folder of the test data.

    The data folder is `$INFERNIX_SHARED_DATA`, or else `../shared/data` beside the project root. Where the path does
    not exist, the calling test is skipped; under CI (`$CI` set) it fails instead, so that nothing goes unchecked there.
    """
    root = Path(os.environ.get(DIRECTORY_VARIABLE) or PROJECT_ROOT.parent / "shared" / "data")
    path = root / relative
    if path.exists():
        return path
    message = f"test data {path} is absent; set {DIRECTORY_VARIABLE} to the folder that holds it"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
