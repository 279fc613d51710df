"""The smallest schema and instance that still show something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

MAX_TRIES = 3000

_Path = tuple[str | int, ...]


def shrink(schema: Any, value: Any, shows: Callable[[Any, Any], bool]) -> tuple[Any, Any]:
    """Takes parts away as long as `shows(schema, value)` stays true, in at most MAX_TRIES questions."""
    both: Any = [schema, value]
    tries = 0
    progress = True
    while progress:
        progress = False
        # Larger parts come first; a path into a part that is gone leads nowhere.
        for path in list(_paths(both)):
            for smaller in _without(both, path):
                tries += 1
                if tries > MAX_TRIES:
                    return both[0], both[1]
                if shows(*smaller):
                    both, progress = smaller, True
                    break
    return both[0], both[1]


def _paths(both: Any) -> Iterator[_Path]:
    """To all parts, level by level; of an array from its end, so that numbers stay right when elements go."""
    level: list[tuple[_Path, Any]] = [((index,), both[index]) for index in (0, 1)]
    while level:
        following: list[tuple[_Path, Any]] = []
        for path, part in level:
            yield path
            if isinstance(part, dict):
                following += [((*path, name), item) for name, item in part.items()]
            elif isinstance(part, list):
                following += [((*path, index), part[index]) for index in reversed(range(len(part)))]
        level = following


def _without(both: Any, path: _Path) -> Iterator[Any]:
    """Documents without the part at `path`, or with less in its place."""
    part = both
    for step in path:
        try:
            part = part[step]
        except (LookupError, TypeError):
            return
    if len(path) > 1:
        yield _changed(both, path, lambda parent, step: parent.pop(step))
    simpler: list[Any] = []
    if isinstance(part, dict | list):
        items = part.values() if isinstance(part, dict) else part
        simpler = [item for item in items if isinstance(item, dict | list)]
        simpler += [first for item in simpler if isinstance(item, list) for first in item[:2]]
    elif isinstance(part, str):
        simpler = [part[: len(part) // 2], part[1:], part[:-1]] if part else []
    elif isinstance(part, int | float) and not isinstance(part, bool) and part not in (0, 1):
        simpler = [0, 1]
    for item in simpler:

        def replace(parent: Any, step: Any, item: Any = item) -> None:
            parent[step] = item

        yield _changed(both, path, replace)


def _changed(document: Any, path: _Path, change: Callable[[Any, Any], Any]) -> Any:
    copy = document.copy()
    if len(path) == 1:
        change(copy, path[0])
    else:
        copy[path[0]] = _changed(document[path[0]], path[1:], change)
    return copy
