"""The packages stand in the order of the table in docs/structure.md, and none imports what stands above it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "infernix"
TABLE_ROW = re.compile(r"^\| (`[^|]*`) \|", re.MULTILINE)
# The package itself and `python -m infernix` give access to everything, so they stand above everything.
TOP = ("infernix", "infernix.__main__")


def read_layers() -> list[list[str]]:
    """The names in each row of the table, highest row first: packages, or modules that stand by themselves."""
    page = (ROOT / "docs" / "structure.md").read_text(encoding="utf-8")
    return [[name.strip("`/").removesuffix(".py") for name in row.split(", ")] for row in TABLE_ROW.findall(page)]


LAYERS = read_layers()
HEIGHT = {name: -place for place, names in enumerate(LAYERS) for name in names}
FILES = sorted(SOURCE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(path: Path) -> Iterator[str]:
    """What the file imports from this project, at its top, in functions and for type checkers alike."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def test_the_table_names_every_package_and_module_once() -> None:
    present = {layer_of(module_name(path)) for path in FILES if module_name(path) not in TOP}
    assert sorted(name for names in LAYERS for name in names) == sorted(present)


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_nothing_is_imported_from_above(path: Path) -> None:
    module = module_name(path)
    names = [name for name in imported_names(path) if name.split(".")[0] == "infernix"]
    if module not in TOP:
        assert [name for name in names if HEIGHT[layer_of(name)] > HEIGHT[layer_of(module)]] == []


def test_imports_between_modules_are_found() -> None:
    found = {layer_of(name) for path in (SOURCE / "engine").glob("*.py") for name in imported_names(path)}
    assert {"frontend", "program", "models", "matching", "options"} <= found
