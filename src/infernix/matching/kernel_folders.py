"""Folders of compiled kernels that no version of the sources has used for a long time."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

UNUSED_DAYS = 30

_FOLDER = re.compile(r"kernels-[0-9a-f]{16}")


def remove_unused_folders(current: Path, now: float) -> None:
    """Removes the folders beside `current`, the one in use, that were last used UNUSED_DAYS before `now` or earlier.

    now: seconds since the epoch. A folder's time of change says when it was used last: each process that looks for
    kernels there tries to write. Whoever loses a folder in spite of that compiles again. What cannot be read or removed
    stays.
    """
    try:
        folders = [path for path in current.parent.iterdir() if path != current and _FOLDER.fullmatch(path.name)]
    except OSError:
        return
    for folder in folders:
        try:
            # A link is not followed: what it leads to is not ours.
            is_unused = not folder.is_symlink() and folder.stat().st_mtime <= now - UNUSED_DAYS * 86400
        except OSError:
            continue
        if is_unused:
            shutil.rmtree(folder, ignore_errors=True)
