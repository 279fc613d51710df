from __future__ import annotations

import os
from pathlib import Path

import pytest

from infernix.matching.kernel_folders import UNUSED_DAYS, remove_unused_folders

NOW = 1_800_000_000.0
OLD = NOW - UNUSED_DAYS * 86400
CURRENT = "kernels-0123456789abcdef"
OTHER = "kernels-fedcba9876543210"


def make(base: Path, name: str, last_used: float) -> Path:
    folder = base / name
    folder.mkdir()
    (folder / "kernel.nbi").write_bytes(b"compiled")
    os.utime(folder, (last_used, last_used))
    return folder


def test_only_folders_that_were_not_used_for_long_go(tmp_path: Path) -> None:
    current = make(tmp_path, CURRENT, OLD)
    unused = make(tmp_path, OTHER, OLD)
    recent = make(tmp_path, "kernels-00000000000000aa", OLD + 1)
    remove_unused_folders(current, NOW)
    assert not unused.exists()
    assert (current / "kernel.nbi").exists()
    assert (recent / "kernel.nbi").exists()


@pytest.mark.parametrize("name", ["kernels", "kernels-0123", "kernels-0123456789abcdeg", "x" + OTHER, OTHER + ".py"])
def test_what_has_another_name_stays(tmp_path: Path, name: str) -> None:
    other = make(tmp_path, name, OLD)
    remove_unused_folders(make(tmp_path, CURRENT, NOW), NOW)
    assert (other / "kernel.nbi").exists()


def test_links_and_what_they_lead_to_stay(tmp_path: Path) -> None:
    elsewhere = make(tmp_path, "elsewhere", OLD)
    base = tmp_path / "cache"
    base.mkdir()
    (base / OTHER).symlink_to(elsewhere)
    remove_unused_folders(base / CURRENT, NOW)
    assert (base / OTHER / "kernel.nbi").exists()


def test_nothing_to_look_at(tmp_path: Path) -> None:
    remove_unused_folders(tmp_path / "absent" / CURRENT, NOW)
    assert list(tmp_path.iterdir()) == []
