"""The official JSON Schema test suite: `python -m tests.conformance.suite --data DIR [--json]`.

Of every group, both drafts: the schema is refused, or each test is accepted exactly if the suite calls it valid.
A group refused because no value satisfies it is compared too. The exit code is 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from tests.conformance.cases import DRAFTS, add_data_argument, suite_cases
from tests.conformance.checking import Tally, check_cases
from tests.conformance.languages import SchemaCompiler, set_aside_other_objects


def summary(tally: Tally) -> dict[str, Any]:
    """The figures of the suite, for JSON."""
    figures = tally.as_dict()
    return {
        "groups": figures.pop("schemas"),
        "compiled": figures.pop("compiled"),
        "refused": sum(tally.refused.values()),
        "wrong": [*figures.pop("wrong_acceptances"), *figures.pop("wrong_refusals")],
        "refused_by_keyword": figures.pop("refused"),
        **figures,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs both drafts and prints the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.suite", description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a report")
    options = parser.parse_args(arguments)
    cases = [case for draft in DRAFTS for case in suite_cases(options.data, draft)]
    compiler = SchemaCompiler()
    set_aside_other_objects()
    tally = check_cases(cases, compiler, trust_labels=True, progress="suite")
    print(json.dumps(summary(tally), ensure_ascii=False) if options.json else tally.report())
    return int(tally.num_wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
