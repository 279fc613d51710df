"""Real schemas and their instances: `python -m tests.conformance.maskbench --data DIR [--sample N] [--json]`.

Every schema compiles or is refused; of each that compiles, every instance is written in the published form, in three
layouts, and must be accepted exactly if a validator calls it valid: by its bytes, and token by token through the masks
of SmolLM2's vocabulary. The exit code is 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from tests.conformance.cases import add_data_argument, maskbench_cases
from tests.conformance.checking import check_cases
from tests.conformance.languages import SchemaCompiler, set_aside_other_objects


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the collection and prints the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.maskbench", description=__doc__)
    add_data_argument(parser)
    parser.add_argument("--sample", type=int, metavar="N", help="N schemas at random instead of all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a report")
    options = parser.parse_args(arguments)
    cases = maskbench_cases(options.data, options.sample, options.seed)
    compiler = SchemaCompiler()
    set_aside_other_objects()
    tally = check_cases(cases, compiler, progress="maskbench")
    print(json.dumps(tally.as_dict(), ensure_ascii=False) if options.json else tally.report())
    return int(tally.num_wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
