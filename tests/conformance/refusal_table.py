"""Why real schemas are refused, for docs/json-schema.md: `python -m tests.conformance.refusal_table REPORT`.

REPORT is what `python -m tests.conformance.maskbench --json` prints. The page's lines between the two marks are
replaced by a table made from it.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "json-schema.md"
BEGIN, END = "<!-- refusals -->", "<!-- end of refusals -->"

MIN_ROW_COUNT = 5
"""What is rarer has no row of its own."""
MAX_LINE_LENGTH = 140

# What a message says, as a row of the table.
_ROWS = (
    (r"the keyword '([^']+)' is not supported$", r"`\1`"),
    (r"the keyword '([^']+)' is not supported in (.*)", r"`\1` in \2, which has no such keyword"),
    (r"unknown keyword .*", "words that no specification and no list here knows"),
    (r"'[^']+' beside '\$ref' has no effect in .*", "assertions beside `$ref` before 2019-09"),
    (r"'(\$?id)' below the root .*", "`$id` (`id`) below the root"),
    (r"another dialect below the root .*", "`$schema` of another dialect below the root"),
    (
        r"the branches .* of the 'oneOf' are not proved .*",
        "`oneOf` whose branches are not proved to exclude each other",
    ),
    (r".* \(character \d+ of the pattern\)", "`pattern` outside the subset"),
)


def refusal_lines(num_schemas: int, refusals: Iterable[tuple[str, str]]) -> list[str]:
    """The page's lines about `num_schemas`, of which each one that is refused has a message and a pointer."""
    counts = Counter(_row(message.removesuffix(f" at {pointer}")) for message, pointer in refusals)
    num_compiled = num_schemas - counts.total()
    share = 100 * num_compiled / num_schemas
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rare = ", ".join(f"{row} {count}" for row, count in rows if count < MIN_ROW_COUNT)
    return [
        f"{num_compiled:,} of {num_schemas:,} compile ({share:.1f} %). The others, each by its first complaint:",
        "",
        "| refused because of | schemas |",
        "|---|---:|",
        *(f"| {row} | {count} |" for row, count in rows if count >= MIN_ROW_COUNT),
        *(["", *textwrap.wrap(f"Rarer ones: {rare}.", MAX_LINE_LENGTH)] if rare else []),
    ]


def _row(message: str) -> str:
    for expression, row in _ROWS:
        found = re.fullmatch(expression, message)
        if found:
            return found.expand(row)
    return message


def with_lines(page: str, lines: Sequence[str]) -> str:
    """The page with `lines` between the marks."""
    before, _, rest = page.partition(f"{BEGIN}\n")
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the page has no {BEGIN} … {END}")
    return "\n".join([f"{before}{BEGIN}", *lines, f"{END}{after}"])


def lines_between(page: str) -> list[str]:
    """The lines between the marks."""
    return page.partition(f"{BEGIN}\n")[2].partition(f"\n{END}")[0].split("\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrites the table of the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.refusal_table", description=__doc__)
    parser.add_argument("report", type=Path, metavar="REPORT")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    report: Mapping[str, object] = json.loads(options.report.read_text(encoding="utf-8"))
    num_schemas, refusals = report["schemas"], report["refusals"]
    assert isinstance(num_schemas, int)
    assert isinstance(refusals, list)
    lines = refusal_lines(num_schemas, [(refusal["message"], refusal["pointer"]) for refusal in refusals])
    options.page.write_text(with_lines(options.page.read_text(encoding="utf-8"), lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
