"""Mutation: `python -m tests.conformance.mutation --data DIR [--mutants N] [--seed S] [--json]`.

Valid values, from the collections and from random walks, with one part changed so that exactly one assertion fails,
in the eyes of a validator. In every order of members, none of them may be accepted. Counted by the keyword of the
assertion and by the keywords on the way to it. The exit code is 1 where one is accepted, or where an enforced keyword
was never broken.
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
from tests.conformance.keyword_schemas import KEYWORD_CASES
from tests.conformance.languages import Language, SchemaCompiler
from tests.conformance.mutants import mutants
from tests.conformance.oracles import Failure, Oracle
from tests.conformance.published_form import PublishedForm
from tests.conformance.schema_walk import SchemaWalk
from tests.conformance.spelling import outside_reasons, published_value
from tests.conformance.walking import Manner, Walker

ENFORCED = (
    *("type", "const", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxLength", "pattern", "properties", "required", "additionalProperties"),
    *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "$ref", "allOf", "anyOf", "oneOf"),
)
"""Keywords that assert something: each is to be broken at least once, by itself or on the way to what it holds."""

DEFAULT_MUTANTS = 4
NUM_WALKS = 3
MAX_CANDIDATES = 200


@dataclass
class MutationTally:
    """What the mutants came to: refused ones by keyword, and those that were accepted."""

    num_schemas: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    on_the_way: Counter[str] = field(default_factory=Counter)
    orders_untried: int = 0
    accepted: list[dict[str, str]] = field(default_factory=list)

    def count(self, keyword: str) -> int:
        """How many mutants broke `keyword` or something below it."""
        return self.refused[keyword] + self.on_the_way[keyword]

    @property
    def never_broken(self) -> list[str]:
        """Enforced keywords without any mutant."""
        return [keyword for keyword in ENFORCED if not self.count(keyword)]

    def as_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        return {
            "schemas": self.num_schemas,
            "mutants": sum(self.refused.values()) + len(self.accepted),
            "refused": {keyword: self.refused[keyword] for keyword in sorted(self.refused)},
            "on_the_way": {keyword: self.on_the_way[keyword] for keyword in sorted(self.on_the_way)},
            "some_orders_untried": self.orders_untried,
            "accepted": self.accepted,
            "never_broken": self.never_broken,
        }

    def report(self) -> str:
        """The figures, for a reader."""
        keywords = sorted(self.refused.keys() | self.on_the_way.keys() | set(ENFORCED))
        return "\n".join(
            [
                f"{self.num_schemas} schemas; mutants refused, and how many of them beyond the keyword:",
                *(f"{self.refused[name]:7} {self.on_the_way[name]:7}  {name}" for name in keywords),
                f"{sum(self.refused.values()):7} in all, {self.orders_untried} of them not in every order",
                f"never broken: {', '.join(self.never_broken) or 'none'}",
                f"accepted mutants: {len(self.accepted)}",
                *(f"  {json.dumps(entry, ensure_ascii=False)}" for entry in self.accepted),
            ]
        )


def mutate_cases(
    cases: Iterable[SchemaCase], compiler: SchemaCompiler, num_mutants: int, seed: int = 0, progress: str = ""
) -> MutationTally:
    """Up to `num_mutants` for each keyword of each schema that compiles and that the judge can read."""
    tally = MutationTally()
    walker = Walker(compiler.vocabulary.vocabulary)
    for case in with_progress(cases, progress):
        language = compiler.compile(case.schema).language
        oracle = Oracle(case.schema)
        if language is None or oracle.rust is None:
            continue
        tally.num_schemas += 1
        rng = Random(f"{seed} {case.name}")
        values = valid_values(case, language, oracle, walker, rng)
        _mutate(case, language, oracle, values, num_mutants, rng, tally)
    return tally


def valid_values(case: SchemaCase, language: Language, oracle: Oracle, walker: Walker, rng: Random) -> list[Any]:
    """The valid instances of a case, and what a few walks find."""
    values = [instance.value for instance in case.instances]
    for _ in range(NUM_WALKS):
        text = walker.walk(language.grammar, Manner.random(rng), rng)
        if text is not None:
            values.append(json.loads(text))
    return [value for value in values if not outside_reasons(value) and oracle.rust.is_valid(value)]


def _mutate(
    case: SchemaCase,
    language: Language,
    oracle: Oracle,
    values: list[Any],
    num_mutants: int,
    rng: Random,
    tally: MutationTally,
) -> None:
    walk = SchemaWalk(oracle.document)
    form = PublishedForm(oracle.document)
    candidates: dict[str, list[Any]] = {}
    for value in values:
        for keyword, mutant in mutants(walk, value):
            candidates.setdefault(keyword, []).append(mutant)
    for keyword in sorted(candidates):
        chosen = candidates[keyword]
        rng.shuffle(chosen)
        num_found = 0
        for mutant in map(published_value, chosen[:MAX_CANDIDATES]):
            failures = oracle.failures(mutant)
            if len(failures) != 1 or outside_reasons(mutant):
                continue
            broken, on_the_way = broken_keyword(failures[0])
            if keyword != broken and keyword not in on_the_way:
                continue
            writing = form.write(language.table, mutant)
            if writing.accepted is None:
                tally.refused[broken] += 1
                tally.on_the_way.update(on_the_way)
                tally.orders_untried += writing.gave_up
            else:
                text = shown(writing.accepted.decode("utf-8", "replace"))
                tally.accepted.append({"schema": case.name, "keyword": broken, "text": text})
            num_found += 1
            if num_found == num_mutants:
                break


def broken_keyword(failure: Failure) -> tuple[str, set[str]]:
    """The keyword that fails, and the others on the way to it.

    A value where a false schema stands breaks the keyword that holds the false schema.
    """
    on_the_way = {step for step in failure.path if step in ENFORCED}
    if failure.keyword != "false":
        return failure.keyword, on_the_way - {failure.keyword}
    holder = next((str(step) for step in reversed(failure.path) if step in ENFORCED), "false")
    return holder, on_the_way - {holder}


def main(arguments: Sequence[str] | None = None) -> int:
    """Mutates over all collections and prints the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.mutation", description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--mutants", type=int, default=DEFAULT_MUTANTS, metavar="N", help="by schema and keyword")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a report")
    options = parser.parse_args(arguments)
    cases = [*KEYWORD_CASES, *maskbench_cases(options.data), *pattern_cases(options.data)]
    cases += [case for draft in DRAFTS for case in suite_cases(options.data, draft)]
    tally = mutate_cases(cases, SchemaCompiler(), options.mutants, options.seed, progress="mutation")
    print(json.dumps(tally.as_dict(), ensure_ascii=False) if options.json else tally.report())
    return int(bool(tally.accepted or tally.never_broken))


if __name__ == "__main__":
    raise SystemExit(main())
