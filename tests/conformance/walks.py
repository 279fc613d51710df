"""Random walks: `python -m tests.conformance.walks --data DIR [--walks N] [--seed S] [--json]`.

Over every schema of the real ones and of the official suite that compiles, and over a string for each expression of
the real ones: texts drawn token by token through the masks. Each finished text must be valid for an independent
validator, as it is written and as binary64 reads it, and its value must be accepted again in the published form. The
exit code is 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.conformance.cases import DRAFTS, SchemaCase, add_data_argument, maskbench_cases, pattern_cases, suite_cases
from tests.conformance.checking import shown, with_progress
from tests.conformance.languages import Language, SchemaCompiler
from tests.conformance.oracles import Oracle
from tests.conformance.published_form import PublishedForm
from tests.conformance.spelling import outside_reasons
from tests.conformance.walking import Manner, Walker

DEFAULT_WALKS = 25
PYTHON_SHARE = 0.2
"""The share of texts that python's `jsonschema` is asked about as well, where it may be."""


@dataclass
class WalkTally:
    """What the walks came to; `invalid` and `not_again` hold what is wrong."""

    num_schemas: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    invalid: list[dict[str, str]] = field(default_factory=list)
    not_again: list[dict[str, str]] = field(default_factory=list)
    broken: list[dict[str, str]] = field(default_factory=list)

    @property
    def num_wrong(self) -> int:
        """Invalid texts, values that are refused in the published form, and masks that contradict the matcher."""
        return len(self.invalid) + len(self.not_again) + len(self.broken)

    def as_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        return {
            "schemas": self.num_schemas,
            **self.counts,
            "invalid": self.invalid,
            "not_again": self.not_again,
            "broken": self.broken,
        }

    def add(self, other: WalkTally) -> None:
        """Takes the figures of another tally in."""
        self.num_schemas += other.num_schemas
        self.counts.update(other.counts)
        self.invalid += other.invalid
        self.not_again += other.not_again
        self.broken += other.broken

    def report(self) -> str:
        """The figures, for a reader."""
        lines = [f"{self.num_schemas} schemas", *(f"{count:7} {name}" for name, count in self.counts.most_common())]
        wrong = {
            "invalid texts": self.invalid,
            "values refused in the published form": self.not_again,
            "masks that contradict the matcher": self.broken,
        }
        for title, entries in wrong.items():
            lines.append(f"{title}: {len(entries)}")
            lines += [f"  {json.dumps(entry, ensure_ascii=False)}" for entry in entries]
        return "\n".join(lines)


def walk_cases(
    cases: Iterable[SchemaCase], compiler: SchemaCompiler, num_walks: int, seed: int = 0, progress: str = ""
) -> WalkTally:
    """`num_walks` walks over each schema that compiles; the same seed walks the same ways, whatever else is there."""
    tally = WalkTally()
    walker = Walker(compiler.vocabulary.vocabulary)
    for case in with_progress(cases, progress):
        language = compiler.compile(case.schema).language
        if language is None:
            continue
        tally.num_schemas += 1
        checker = TextChecker(case, language, tally)
        rng = Random(f"{seed} {case.name}")
        for _ in range(num_walks):
            try:
                text = walker.walk(language.grammar, Manner.random(rng), rng)
            except AssertionError as error:
                tally.broken.append({"schema": case.name, "what": shown(str(error))})
                continue
            if text is None:
                tally.counts["given up"] += 1
            else:
                checker.check(text, ask_python=rng.random() < PYTHON_SHARE)
    return tally


class TextChecker:
    """Judges finished texts of one schema."""

    def __init__(self, case: SchemaCase, language: Language, tally: WalkTally) -> None:
        self._case = case
        self._language = language
        self._tally = tally
        self._oracle = Oracle(case.schema)
        self._form = PublishedForm(self._oracle.document)

    def check(self, text: bytes, *, ask_python: bool) -> None:
        """Counts the text, or says what is wrong with it."""
        self._tally.counts["finished"] += 1
        try:
            decoded = text.decode()
            value = json.loads(decoded)
        except (ValueError, RecursionError) as error:
            self._tally.invalid.append(self._entry(text, f"not JSON: {error}"))
            return
        self._judge(text, value, self._exact_verdict(decoded), ask_python=ask_python)
        if outside_reasons(value):
            self._tally.counts["outside the published form"] += 1
        elif self._form.write(self._language.table, value).accepted is None:
            self._tally.not_again.append(self._entry(text, "published form"))

    def _exact_verdict(self, text: str) -> bool | None:
        try:
            return self._oracle.is_valid_text(text)
        except ValueError:  # deeper than the validator goes
            return None

    def _judge(self, text: bytes, value: Any, exact_verdict: bool | None, *, ask_python: bool) -> None:
        verdict = None if exact_verdict is None else self._oracle.verdict(value)
        if verdict is None:
            self._tally.counts["without a judge"] += 1
            return
        self._tally.counts[f"judged by {verdict.judge}"] += 1
        if not (verdict.is_valid and exact_verdict):
            reading = "exactly" if verdict.is_valid else "as binary64"
            self._tally.invalid.append(self._entry(text, f"{verdict.judge}, read {reading}"))
        elif ask_python and (second := self._oracle.python_verdict(value)) is not None:
            self._tally.counts[f"judged by {second.judge} too"] += 1
            if not second.is_valid:
                self._tally.invalid.append(self._entry(text, second.judge))

    def _entry(self, text: bytes, judge: str) -> dict[str, str]:
        return {"schema": self._case.name, "text": shown(text.decode("utf-8", "replace")), "judge": judge}


def main(arguments: Sequence[str] | None = None) -> int:
    """Walks over all collections and prints the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.walks", description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--walks", type=int, default=DEFAULT_WALKS, metavar="N", help="over each schema")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a report")
    options = parser.parse_args(arguments)
    cases = maskbench_cases(options.data)
    cases += [case for draft in DRAFTS for case in suite_cases(options.data, draft)]
    compiler = SchemaCompiler()
    tally = walk_cases(cases, compiler, options.walks, options.seed, progress="walks")
    patterns = pattern_cases(options.data)
    tally.add(walk_cases(patterns, compiler, max(options.walks // 5, 1), options.seed, progress="walks, patterns"))
    print(json.dumps(tally.as_dict(), ensure_ascii=False) if options.json else tally.report())
    return int(tally.num_wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
