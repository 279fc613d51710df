"""Random schemas: `python -m tests.conformance.fuzz [--schemas N] [--seed S] [--json]`.

Of every random schema that compiles: random instances are accepted exactly if a validator calls them valid, and texts
drawn through the masks are valid. What disagrees is made smaller before it is reported. As many schemas with something
wrong in them are compiled or refused, by errors that are meant. The exit code is 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Any

from tests.conformance.cases import Instance, SchemaCase
from tests.conformance.checking import Tally, check_case, with_progress
from tests.conformance.corruption import corrupted_cases
from tests.conformance.languages import SchemaCompiler
from tests.conformance.oracles import Oracle
from tests.conformance.published_form import PublishedForm
from tests.conformance.random_schemas import RandomSchemas, loops_in_place
from tests.conformance.shrinking import shrink
from tests.conformance.spelling import outside_reasons, published_value
from tests.conformance.walking import Manner, Walker
from tests.conformance.walks import TextChecker, WalkTally

NUM_INSTANCES = 12
NUM_WALKS = 2


@dataclass
class FuzzTally:
    """What the random schemas came to."""

    checks: Tally = field(default_factory=Tally)
    walks: WalkTally = field(default_factory=WalkTally)
    smallest: list[dict[str, Any]] = field(default_factory=list)

    @property
    def num_wrong(self) -> int:
        """Disagreements of either kind."""
        return self.checks.num_wrong + self.walks.num_wrong

    def as_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        return {"checks": self.checks.as_dict(), "walks": self.walks.as_dict(), "smallest": self.smallest}

    def report(self) -> str:
        """The figures, for a reader."""
        smallest = [json.dumps(entry, ensure_ascii=False) for entry in self.smallest]
        return "\n".join([self.checks.report(), self.walks.report(), f"made smaller: {len(smallest)}", *smallest])


def random_cases(num_schemas: int, seed: int) -> Iterator[SchemaCase]:
    """Random schemas with instances that a validator has labelled; none that refer to themselves in place."""
    for index in range(num_schemas):
        draw = RandomSchemas(Random(f"{seed} {index}"))
        document = draw.document()
        text = json.dumps(document)
        oracle = Oracle(text)
        if loops_in_place(document) or oracle.rust is None:
            continue
        values = [draw.instance(document) for _ in range(NUM_INSTANCES)]
        instances = [
            Instance(value, bool(oracle.rust.is_valid(published_value(value))), json.dumps(value)) for value in values
        ]
        yield SchemaCase(f"seed {seed}, schema {index}: {text}", text, tuple(instances))


def fuzz(num_schemas: int, compiler: SchemaCompiler, seed: int = 0, progress: str = "") -> FuzzTally:
    """Checks and walks `num_schemas` random schemas, and as many corrupted ones."""
    tally = FuzzTally()
    walker = Walker(compiler.vocabulary.vocabulary)
    cases = chain(random_cases(num_schemas, seed), corrupted_cases(num_schemas, seed))
    for case in with_progress(cases, progress):
        num_wrong = len(tally.checks.wrong_acceptances) + len(tally.checks.wrong_refusals)
        language = check_case(case, compiler, tally.checks).language
        if len(tally.checks.wrong_acceptances) + len(tally.checks.wrong_refusals) > num_wrong:
            tally.smallest.append(smallest(case, compiler))
        if language is not None:
            tally.walks.num_schemas += 1
            checker = TextChecker(case, language, tally.walks)
            rng = Random(case.name)
            for _ in range(NUM_WALKS):
                text = walker.walk(language.grammar, Manner.random(rng), rng)
                if text is None:
                    tally.walks.counts["given up"] += 1
                else:
                    checker.check(text, ask_python=True)
    return tally


def smallest(case: SchemaCase, compiler: SchemaCompiler) -> dict[str, Any]:
    """The first disagreement of a case, made smaller while it stays one of the same kind."""
    schema = json.loads(case.schema)
    for instance in case.instances:
        wrongly = disagreement(schema, instance.value, compiler)
        if wrongly is not None:

            def shows(smaller: Any, value: Any, wrongly: str = wrongly) -> bool:
                return disagreement(smaller, value, compiler) == wrongly

            schema, value = shrink(schema, instance.value, shows)
            return {"wrongly": wrongly, "schema": schema, "value": value}
    return {"not in the compact layout": case.name}


def disagreement(schema: Any, value: Any, compiler: SchemaCompiler) -> str | None:
    """Whether a value is wrongly "accepted" or "refused"; None where the compiler is right or nobody can tell."""
    text = json.dumps(schema)
    oracle = Oracle(text)
    if not oracle.is_well_formed or oracle.rust is None or loops_in_place(schema):
        return None
    outcome = compiler.compile(text)
    if outcome.language is None and not (outcome.refusal and outcome.refusal.is_unsatisfiable):
        return None
    table = None if outcome.language is None else outcome.language.table
    is_accepted = PublishedForm(schema).write(table, value).accepted is not None
    if is_accepted == oracle.rust.is_valid(published_value(value)) or (not is_accepted and outside_reasons(value)):
        return None
    return "accepted" if is_accepted else "refused"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzzes and prints the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.fuzz", description=__doc__)
    parser.add_argument("--schemas", type=int, default=3000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a report")
    options = parser.parse_args(arguments)
    tally = fuzz(options.schemas, SchemaCompiler(), options.seed, progress="fuzz")
    print(json.dumps(tally.as_dict(), ensure_ascii=False) if options.json else tally.report())
    return int(tally.num_wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
