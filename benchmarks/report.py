"""Writes docs/performance.md from what `benchmarks.masks --json` printed: `python -m benchmarks.report`.

Nothing on that page is written by hand. Why Infernix is not ahead somewhere is kept in REASONS below.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

INTRODUCTION = """\
What a mask costs, against xgrammar and llguidance doing the same work in the same process. Each engine is called
through its own interface, on one thread, with no cache between two compilations; what it knows of the vocabulary alone
stays. The engines take turns, and a figure is the median over the rounds. The texts of a case are what a model would
plausibly write, at most 400 tokens; quantiles are over their positions.

- A *cold* row is met on the first way through the texts after a fresh compilation, an *unknown* one had to be worked
  out then; a *warm* row is met on a later way through the same texts.
- Compilation goes from the source text to where masks can be asked for. For the 5,000-state automaton Infernix starts
  from the finished automaton, llguidance from three expressions. Compilation and the first 100 tokens are added up from
  the medians of their calls.
- Look-ahead is 16 masks along 15 drafts, and back.
- *Kept* memory is what an engine itself says. For Infernix it is the grammar's tables and all different rows that the
  texts met."""
Row = dict[str, Any]

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
RESULTS = Path(__file__).parent / "results" / "masks"
OURS = "infernix"

REASONS: dict[tuple[str, str], str] = {
    ("*", "compile + first 100 tokens"): (
        "a row that is not known yet takes a walk over the vocabulary, 15 to 30 µs on the large one, and the first text"
        " of a grammar meets many such rows; later texts find them"
    ),
    **{
        (case, "compile + first 100 tokens"): (
            "most of it is the way from the schema to its grammar, which is Python and looks at every branch of a union"
        )
        for case in ("tools_50", "tools_400", "deep_any_of")
    },
    ("required_200", "warm p50"): (
        "a short row is copied in less time than the Python around the copy takes, where the other engine is one call"
    ),
    ("choice_1000", "warm p99"): (
        "nearly every position has a row of its own, and one that was not copied for a while comes from a farther"
        " cache: the same row again and again takes 1.3 µs everywhere"
    ),
}
"""Why Infernix is not ahead, by (case, comparison); a case of "*" stands for all cases."""

COMPARISONS: dict[str, Callable[[Row], float]] = {
    "warm p50": lambda row: row["warm_us"]["p50"],
    "warm p99": lambda row: row["warm_us"]["p99"],
    "compile + first 100 tokens": lambda row: row["first_100_ms"],
}
_UNITS = {"warm p50": "µs", "warm p99": "µs", "compile + first 100 tokens": "ms"}

_EVERYDAY = (
    "json_object",
    "flat_5_fields",
    "nested",
    "array_of_objects",
    "recursive",
    "enums",
    "string_pattern",
    "max_length_100",
    "max_length_8000",
    "number_range",
    "free_form_objects",
    "deep_any_of",
)
# Warm p50 and p99 in µs, mean of a row that has to be worked out in µs, compilation in ms; on the larger vocabulary.
_BUDGETS: dict[str, tuple[float, float, float, float]] = {
    **dict.fromkeys(_EVERYDAY, (3, 6, 60, 5)),
    "required_200": (3, 6, 150, 50),
    "optional_200": (3, 6, 150, 50),
    "gbnf_60_rules": (3, 6, 500, 20),
    "gbnf_c": (3, 6, 500, 20),
    "gbnf_json": (3, 6, 500, 20),
    "regex_url": (3, 6, 150, 20),
    "choice_1000": (3, 6, 30, 30),
    "automaton_5000": (5, 10, 500, 100),
    "tools_50": (3, 6, 100, 100),
    "tools_400": (3, 6, 100, 100),
}
_BUDGET_MIN_TOKENS = 200_000
_MAX_ROW_US = 5000.0
_MAX_ACCEPT_US = (5.0, 1.0)
_MAX_LOOK_AHEAD_US = (300.0, 40.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=f"Writes {PAGE.name}.")
    parser.add_argument(
        "results",
        nargs="*",
        type=Path,
        default=sorted(RESULTS.glob("*.json")),
        help="what benchmarks.masks --json printed, one a file; default: those in benchmarks/results/masks",
    )
    parser.add_argument("--output", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    if not options.results:
        parser.error(f"no results in {RESULTS}")
    results = [json.loads(path.read_text(encoding="utf-8")) for path in options.results]
    options.output.write_text(page(results), encoding="utf-8")
    print(f"wrote {options.output}", file=sys.stderr)
    return 0


def page(results: Sequence[dict[str, Any]]) -> str:
    """The whole page."""
    lines = [
        "# Performance",
        "",
        "<!-- Written by `python -m benchmarks.report`; do not edit. -->",
        "",
        INTRODUCTION,
        "",
        "```sh",
        "pip install -e '.[test,bench]'",
    ]
    for result in results:
        quick = " --quick" if result["quick"] else ""
        name = result["vocabulary"]["name"]
        output = f"benchmarks/results/masks/{name}.json"
        lines.append(f"python -m benchmarks.masks{quick} --json --vocabulary {name} > {output}")
    lines += ["python -m benchmarks.report", "```", ""]
    for result in results:
        lines += _result(result)
    return "\n".join(lines).rstrip() + "\n"


def _result(result: dict[str, Any]) -> list[str]:
    machine, vocabulary = result["machine"], result["vocabulary"]
    engines = list(result["versions"])
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    setup = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in result["setup_seconds"].items())
    cases: dict[str, dict[str, Row]] = {}
    for row in result["rows"]:
        cases.setdefault(row["case"], {})[row["engine"]] = row
    system = f"{machine['system']}; {machine['processor']}, {machine['num_cores']} cores"
    return [
        f"## {vocabulary['title']}, {vocabulary['num_tokens']:,} tokens",
        "",
        f"{versions}; Python {machine['python']}, {system}, load average {machine['load_average']} at the end."
        f" Taking in the vocabulary, once: {setup}.",
        "",
        *_warm_table(cases, engines),
        *_cold_table(cases, engines),
        *_other_table(cases, engines),
        *_behind(cases),
        *(_over_budget(cases) if vocabulary["num_tokens"] >= _BUDGET_MIN_TOKENS else []),
        *_remarks(cases),
    ]


def _warm_table(cases: dict[str, dict[str, Row]], engines: list[str]) -> list[str]:
    head = ["", *(f"{name} p50 / p99" for name in engines), *(f"{name}" for name in engines)]
    lines = ["### Warm rows in µs; compilation and the first 100 tokens in ms", "", *_head(head)]
    for rows in cases.values():
        cells = [_title(rows)]
        cells += [_pair(rows.get(name), "warm_us", "p50", "p99") for name in engines]
        cells += [_cell(rows.get(name), "first_100_ms") for name in engines]
        lines.append(_line(cells))
    return [*lines, ""]


def _cold_table(cases: dict[str, dict[str, Row]], engines: list[str]) -> list[str]:
    head = ["", f"{OURS}, unknown rows: mean", *(f"{name} mean / p99" for name in engines), *engines]
    lines = ["### Cold rows in µs; compilation alone in ms", "", *_head(head)]
    for rows in cases.values():
        ours = rows.get(OURS)
        unknown = ours and ours["unknown_us"]
        cells = [_title(rows), _number(unknown["mean"]) if unknown else "–"]
        cells += [_pair(rows.get(name), "cold_us", "mean", "p99") for name in engines]
        cells += [_cell(rows.get(name), "compile_ms") for name in engines]
        lines.append(_line(cells))
    return [*lines, ""]


def _other_table(cases: dict[str, dict[str, Row]], engines: list[str]) -> list[str]:
    head = ["", *(f"{name} accept" for name in engines), *(f"{name} look-ahead" for name in engines)]
    head += [f"{name} KiB" for name in engines]
    lines = ["### Accept and look-ahead in µs, cold / warm; kept memory", "", *_head(head)]
    for rows in cases.values():
        cells = [_title(rows)]
        cells += [_pair(rows.get(name), "accept_us", "cold", "warm") for name in engines]
        cells += [_pair(rows.get(name), "lookahead15_us", "cold", "warm") for name in engines]
        for name in engines:
            row = rows.get(name)
            cells.append("–" if row is None or row["kept_bytes"] is None else f"{row['kept_bytes'] / 1024:,.0f}")
        lines.append(_line(cells))
    return [*lines, ""]


def behind(cases: dict[str, dict[str, Row]]) -> list[tuple[Row, str, float, Row, float]]:
    """Where another engine's figure is better: (our row, comparison, our figure, its row, its figure)."""
    found = []
    for rows in cases.values():
        ours = rows.get(OURS)
        if ours is None or ours["reason"] is not None:
            continue
        for comparison, figure in COMPARISONS.items():
            for name, other in rows.items():
                if name != OURS and other["reason"] is None and figure(other) < figure(ours):
                    found.append((ours, comparison, figure(ours), other, figure(other)))
    return found


def _behind(cases: dict[str, dict[str, Row]]) -> list[str]:
    lines = ["### Where Infernix is not ahead", ""]
    failed = [rows[OURS] for rows in cases.values() if OURS in rows and rows[OURS]["reason"] is not None]
    lines += [f"- {row['title']}: not measured: {row['reason']}" for row in failed]
    for ours, comparison, figure, other, better in behind(cases):
        reason = REASONS.get((ours["case"], comparison)) or REASONS.get(("*", comparison)) or "not explained yet"
        unit = _UNITS[comparison]
        lines.append(
            f"- {ours['title']}, {comparison}: {_number(figure)} {unit} against {_number(better)} {unit} of"
            f" {other['engine']}: {reason}."
        )
    if len(lines) == 2:
        lines.append("Nowhere in warm p50, warm p99, and compilation with the first 100 tokens.")
    else:
        lines[1:1] = [
            "",
            "Compared are warm p50, warm p99, and compilation with the first 100 tokens, with each engine.",
        ]
    return [*lines, ""]


def over_budget(row: Row) -> list[str]:
    """Which of Infernix's own limits a row exceeds, with the figures."""
    if row["reason"] is not None or row["case"] not in _BUDGETS:
        return []
    p50, p99, unknown, compile_ms = _BUDGETS[row["case"]]
    limits = [
        ("warm p50", row["warm_us"]["p50"], p50, "µs"),
        ("warm p99", row["warm_us"]["p99"], p99, "µs"),
        ("unknown rows", (row["unknown_us"] or {}).get("mean"), unknown, "µs"),
        ("slowest row", row["cold_us"]["max"], _MAX_ROW_US, "µs"),
        ("compilation", row["compile_ms"], compile_ms, "ms"),
        ("cold accept", row["accept_us"]["cold"], _MAX_ACCEPT_US[0], "µs"),
        ("warm accept", row["accept_us"]["warm"], _MAX_ACCEPT_US[1], "µs"),
    ]
    if row["case"] in _EVERYDAY:
        limits += [
            ("cold look-ahead", row["lookahead15_us"]["cold"], _MAX_LOOK_AHEAD_US[0], "µs"),
            ("warm look-ahead", row["lookahead15_us"]["warm"], _MAX_LOOK_AHEAD_US[1], "µs"),
        ]
    return [
        f"{name} {_number(figure)} {unit} (limit {limit:g})"
        for name, figure, limit, unit in limits
        if figure is not None and figure > limit
    ]


def _over_budget(cases: dict[str, dict[str, Row]]) -> list[str]:
    lines = ["### Over Infernix's own limits", ""]
    for rows in cases.values():
        exceeded = over_budget(rows[OURS]) if OURS in rows else []
        if exceeded:
            lines.append(f"- {_title(rows)}: {', '.join(exceeded)}.")
    return [*lines, ""] if len(lines) > 2 else []


def _remarks(cases: dict[str, dict[str, Row]]) -> list[str]:
    lines = ["### What an engine could not do, or did otherwise", ""]
    for rows in cases.values():
        for name, row in rows.items():
            remark = row["reason"] or (row["note"] and f"{row['note']}: measured on the other texts")
            if remark:
                lines.append(f"- {row['title']}, {name}: {remark}")
    return [*lines, ""] if len(lines) > 2 else []


def _title(rows: dict[str, Row]) -> str:
    title: str = next(iter(rows.values()))["title"]
    return title


def _cell(row: Row | None, key: str) -> str:
    return "–" if row is None or row[key] is None else _number(row[key])


def _pair(row: Row | None, key: str, first: str, second: str) -> str:
    if row is None or row[key] is None or row[key][first] is None:
        return "–"
    return f"{_number(row[key][first])} / {_number(row[key][second])}"


def _number(value: float) -> str:
    """Three significant digits are all that such a measurement has."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _head(cells: Sequence[str]) -> list[str]:
    return [_line(cells), _line(["---", *["---:"] * (len(cells) - 1)])]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
