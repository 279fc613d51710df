"""What masks cost, against the other engines: `python -m benchmarks.masks --help`.

Progress goes to standard error; standard output gets one JSON object with `--json`, a table without it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import measurement
from benchmarks.cases import CASES, Case
from benchmarks.engines import ENGINES, Engine
from benchmarks.measurement import Effort, Samples, TokenizedCase
from benchmarks.shared_data import MissingData
from benchmarks.vocabularies import VOCABULARIES, BenchmarkVocabulary


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    options = _parse(arguments)
    vocabulary = VOCABULARIES[options.vocabulary]()
    # A library that asks for threads of its own would take the other engines' time.
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    engines: list[Engine] = []
    for name in options.engines:
        _progress(f"{name}: taking in {vocabulary.vocabulary.num_tokens:,} tokens")
        engines.append(ENGINES[name](vocabulary))
    # Collections between rounds need not look at the vocabularies again.
    gc.collect()
    gc.freeze()
    effort = measurement.QUICK if options.quick else measurement.FULL
    rows = measure_cases(options.cases, engines, vocabulary, effort)
    result = {
        "machine": describe_machine(),
        "vocabulary": {
            "name": vocabulary.name,
            "title": vocabulary.title,
            "num_tokens": vocabulary.vocabulary.num_tokens,
        },
        "versions": {engine.name: engine.version for engine in engines},
        "setup_seconds": {engine.name: round(engine.setup_seconds, 2) for engine in engines},
        "quick": options.quick,
        "rows": rows,
    }
    if options.json:
        print(json.dumps(result))
    else:
        print("\n".join(table(rows)))
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    def names(known: Iterable[str]) -> Any:
        known = list(known)

        def parse(text: str) -> list[str]:
            chosen = [name for name in text.split(",") if name]
            unknown = [name for name in chosen if name not in known]
            if unknown or not chosen:
                raise argparse.ArgumentTypeError(f"{', '.join(unknown) or 'nothing'} is not among {', '.join(known)}")
            return chosen

        return parse

    parser = argparse.ArgumentParser(prog="python -m benchmarks.masks", description="Measures masks of all engines.")
    parser.add_argument("--quick", action="store_true", help="shorter texts, fewer rounds: within two minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--engines", type=names(ENGINES), default=list(ENGINES), help="separated by commas")
    parser.add_argument("--cases", type=names(CASES), default=list(CASES), help="separated by commas")
    parser.add_argument("--vocabulary", choices=list(VOCABULARIES), default="qwen")
    return parser.parse_args(arguments)


def measure_cases(
    names: Sequence[str], engines: Sequence[Engine], vocabulary: BenchmarkVocabulary, effort: Effort
) -> list[dict[str, Any]]:
    """The rows of all cases, the engines of one case one after the other."""
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(names, 1):
        begin = time.perf_counter()
        try:
            case = CASES[name]()
        except MissingData as error:
            rows += [_row(name, name, engine, reason=f"not run: {error}") for engine in engines]
            continue
        rows += measure_case(case, engines, vocabulary, effort)
        _progress(f"[{number}/{len(names)}] {name}: {time.perf_counter() - begin:.1f} s")
    return rows


def measure_case(
    case: Case, engines: Sequence[Engine], vocabulary: BenchmarkVocabulary, effort: Effort
) -> list[dict[str, Any]]:
    """One row for each engine. Engines take turns, so that what else the machine does meets all of them."""
    texts = measurement.cut([vocabulary.encode(text) for text in case.texts], effort.max_tokens)
    tokenized = TokenizedCase(case, texts, [vocabulary.encode(text) for text in case.outside])

    def spell(token: int) -> str:
        return vocabulary.vocabulary.token_bytes[token].decode(errors="replace")

    trials = {engine.name: measurement.try_out(engine, tokenized, spell, effort.trial_seconds) for engine in engines}
    samples = {name: Samples() for name, trial in trials.items() if trial.reason is None}
    left = dict.fromkeys(samples, effort.round_seconds)
    for _ in range(effort.num_rounds):
        for engine in engines:
            if left.get(engine.name, 0.0) <= 0.0:
                continue
            begin = time.perf_counter()
            usable = [texts[index] for index in trials[engine.name].usable]
            try:
                measurement.measure_round(engine, case, usable, samples[engine.name])
            except Exception as error:
                trials[engine.name].reason = f"failed: {type(error).__name__}: {error}"[:200]
                del samples[engine.name], left[engine.name]
            else:
                left[engine.name] -= time.perf_counter() - begin

    rows = []
    for engine in engines:
        trial = trials[engine.name]
        figures = None
        if engine.name in samples:
            figures = measurement.summary(samples[engine.name], [texts[index] for index in trial.usable])
        note = "; ".join(trial.notes) if trial.reason is None else ""
        rows.append(_row(case.name, case.title, engine, figures, reason=trial.reason, note=note))
    return rows


def _row(
    name: str,
    title: str,
    engine: Engine,
    figures: dict[str, Any] | None = None,
    *,
    reason: str | None = None,
    note: str = "",
) -> dict[str, Any]:
    return {
        "case": name,
        "title": title,
        "engine": engine.name,
        **(figures or measurement.EMPTY_SUMMARY),
        "reason": reason,
        "note": note or None,
    }


def describe_machine() -> dict[str, Any]:
    """What the figures depend on."""
    processor = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "processor": processor,
        "num_cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lines for people."""
    lines = [
        f"{'case':18}{'engine':11}{'compile':>9}{'+100':>9} | {'cold':>8}{'p99':>8}{'unknown':>8} | "
        f"{'warm':>7}{'p50':>7}{'p99':>7}{'max':>8} | {'accept':>7}{'warm':>6} | {'ahead':>8}{'warm':>7} | {'KiB':>7}",
        f"{'':29}{'ms':>9}{'ms':>9} | {'us':>8}",
    ]
    for row in rows:
        begin = f"{row['case']:18}{row['engine']:11}"
        if row["reason"] is not None:
            lines.append(f"{begin} {row['reason']}")
            continue
        cold, unknown, warm = row["cold_us"], row["unknown_us"], row["warm_us"]
        kept = None if row["kept_bytes"] is None else row["kept_bytes"] / 1024
        lines.append(
            f"{begin}{row['compile_ms']:9.1f}{row['first_100_ms']:9.1f} | "
            f"{cold['mean']:8.1f}{cold['p99']:8.1f}{_figure(unknown and unknown['mean'], 8)} | "
            f"{warm['mean']:7.1f}{warm['p50']:7.1f}{warm['p99']:7.1f}{warm['max']:8.1f} | "
            f"{_figure(row['accept_us']['cold'], 7, 2)}{_figure(row['accept_us']['warm'], 6, 2)} | "
            f"{_figure(row['lookahead15_us']['cold'], 8)}{_figure(row['lookahead15_us']['warm'], 7)} | "
            f"{_figure(kept, 7, 0)}" + (f"  {row['note']}" if row["note"] else "")
        )
    return lines


def _figure(value: float | None, width: int, num_digits: int = 1) -> str:
    return f"{'–':>{width}}" if value is None else f"{value:{width}.{num_digits}f}"


def _progress(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
