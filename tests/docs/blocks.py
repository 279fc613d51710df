"""The fenced blocks of a Markdown page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@dataclass(frozen=True)
class Block:
    """A fenced block; `output` is the text block that follows it at once, if one does.

    Of the word behind its language two are known. `stand-in`: the block runs with a model that is written down.
    `server`: it speaks to one that is running.
    """

    page: Path
    line: int
    language: str
    lines: tuple[str, ...]
    output: tuple[str, ...] | None = None
    has_stand_in: bool = False
    needs_server: bool = False

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command after a `$ ` prompt, and the lines shown under it."""

    text: str
    shown: tuple[str, ...]


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of the page, in order."""
    found: list[Block] = []
    start = 0
    lines = page.read_text(encoding="utf-8").splitlines()
    last_end = -1
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if not start:
            start = number + 1
            language, _, rest = line[3:].strip().partition(" ")
            continue
        body = tuple(lines[start:number])
        follows = found and not any(text.strip() for text in lines[last_end + 1 : start - 1])
        if language == "text" and follows and found[-1].language == "python":
            python = found.pop()
            found.append(replace(python, output=body))
        else:
            found.append(
                Block(page, start, language, body, has_stand_in=rest == "stand-in", needs_server=rest == "server")
            )
        start, last_end = 0, number
    assert not start, f"{page.name}: the fence of line {start} is not closed"
    return found


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block; a backslash at a line's end joins the next one."""
    pending = list(block.lines)
    while pending:
        text = pending.pop(0)
        assert text.startswith("$ "), f"{block}: expected a command, found {text!r}"
        while text.endswith("\\"):
            text = text[:-1].rstrip() + " " + pending.pop(0).strip()
        shown: list[str] = []
        while pending and not pending[0].startswith("$ "):
            shown.append(pending.pop(0))
        yield Command(text[2:], tuple(shown))
