"""The table of refusals: rows by reason, and its place on the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.refusal_table import BEGIN, END, MIN_ROW_COUNT, lines_between, main, refusal_lines, with_lines

REFUSALS = [
    *[("the keyword 'format' is not supported at /a at /format", "/a at /format")] * MIN_ROW_COUNT,
    *[("unknown keyword 'foo' at /foo", "/foo")] * 3,
    *[("unknown keyword 'formt', did you mean 'format'? at /formt", "/formt")] * 3,
    ("the keyword 'const' is not supported in draft-04 at /const", "/const"),
    ("lookahead is not supported (character 1 of the pattern) at /pattern", "/pattern"),
    ("something else", ""),
]
LINES = [
    "87 of 101 compile (86.1 %). The others, each by its first complaint:",
    "",
    "| refused because of | schemas |",
    "|---|---:|",
    "| words that no specification and no list here knows | 6 |",
    "| `format` | 5 |",
    "",
    "Rarer ones: `const` in draft-04, which has no such keyword 1, `pattern` outside the subset 1, something else 1.",
]


def test_refusals_are_counted_by_reason() -> None:
    assert refusal_lines(101, REFUSALS) == LINES


def test_without_rare_reasons_there_is_no_line_about_them() -> None:
    assert refusal_lines(10, REFUSALS[:5])[-1] == "| `format` | 5 |"


def test_the_table_is_put_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\nlines\n{END}\nafter\n", encoding="utf-8")
    report = tmp_path / "report.json"
    refusals = [{"message": message, "pointer": pointer} for message, pointer in REFUSALS]
    report.write_text(json.dumps({"schemas": 101, "refusals": refusals}), encoding="utf-8")
    assert main([str(report), "--page", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text == "\n".join(["before", BEGIN, *LINES, END, "after", ""])
    assert lines_between(text) == LINES


def test_a_page_without_marks_is_left_alone() -> None:
    with pytest.raises(ValueError, match="refusals"):
        with_lines("no marks", LINES)
