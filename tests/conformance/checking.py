"""One schema with its instances against the compiler, and the tally of many."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.cases import Instance, SchemaCase
from tests.conformance.languages import Language, Outcome, SchemaCompiler, peak_megabytes, percentiles
from tests.conformance.oracles import LABEL, Oracle, Verdict
from tests.conformance.published_form import PublishedForm
from tests.conformance.spelling import LAYOUTS, in_layout, outside_reasons, published_value

MAX_SHOWN_CHARACTERS = 300
NUM_SLOWEST = 10


@dataclass
class Tally:
    """What many schemas came to.

    `refused` counts schemas by keyword and `refusal_codes` by kind of error. `judges` says how many instances each
    oracle decided, `labels_overruled` how often a validator said otherwise than the collection. `outside` counts valid
    instances that no language of the engine holds, by reason. `malformed_compiled` are schemas that compile although
    the metaschema of their dialect refuses them, `well_formed_invalid` the reverse.
    """

    num_schemas: int = 0
    num_compiled: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    refusal_codes: Counter[str] = field(default_factory=Counter)
    refusals: list[dict[str, str]] = field(default_factory=list)
    instances: Counter[str] = field(default_factory=Counter)
    judges: Counter[str] = field(default_factory=Counter)
    labels_overruled: int = 0
    outside: Counter[str] = field(default_factory=Counter)
    wrong_acceptances: list[dict[str, str]] = field(default_factory=list)
    wrong_refusals: list[dict[str, str]] = field(default_factory=list)
    malformed_compiled: list[str] = field(default_factory=list)
    well_formed_invalid: list[dict[str, str]] = field(default_factory=list)
    times: list[tuple[float, str]] = field(default_factory=list)

    @property
    def num_wrong(self) -> int:
        """Wrong acceptances and wrong refusals, and schemas on which the compiler broke down."""
        broken = self.refusal_codes["crash"] + self.refusal_codes["timeout"]
        return len(self.wrong_acceptances) + len(self.wrong_refusals) + broken

    def as_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        return {
            "schemas": self.num_schemas,
            "compiled": self.num_compiled,
            "refused": dict(self.refused.most_common()),
            "wrong_acceptances": self.wrong_acceptances,
            "wrong_refusals": self.wrong_refusals,
            "compile_ms": percentiles([milliseconds for milliseconds, _ in self.times]),
            "refusal_codes": dict(self.refusal_codes),
            "refusals": self.refusals,
            "instances": dict(self.instances),
            "judges": dict(self.judges),
            "labels_overruled": self.labels_overruled,
            "outside": dict(self.outside),
            "malformed_compiled": self.malformed_compiled,
            "well_formed_invalid": self.well_formed_invalid,
            "slowest_ms": self.slowest(),
            "peak_megabytes": peak_megabytes(),
        }

    def slowest(self) -> list[tuple[str, float]]:
        """The schemas that took longest, with milliseconds."""
        return [(name, round(time, 1)) for time, name in sorted(self.times, reverse=True)[:NUM_SLOWEST]]

    def report(self) -> str:
        """The figures, for a reader."""
        share = 100 * self.num_compiled / max(self.num_schemas, 1)
        times = percentiles([milliseconds for milliseconds, _ in self.times])
        lines = [
            f"schemas             {self.num_schemas}",
            f"compiled            {self.num_compiled} ({share:.1f} %)",
            f"refused             {sum(self.refused.values())}: {_listed(self.refusal_codes)}",
            *(f"  {count:4} {keyword}" for keyword, count in self.refused.most_common()),
            f"instances           {_listed(self.instances)}",
            f"decided by          {_listed(self.judges)}; {self.labels_overruled} labels overruled",
            f"outside by decision {_listed(self.outside) or 'none'}",
            f"compile ms          {', '.join(f'{name} {value:.2f}' for name, value in times.items())}",
            f"peak memory         {peak_megabytes()} MiB",
            "slowest             " + ", ".join(f"{name} {value} ms" for name, value in self.slowest()),
            *_list_of("compiled although malformed", self.malformed_compiled),
            *_list_of("refused as malformed although well formed", self.well_formed_invalid),
            *_list_of("wrong acceptances", self.wrong_acceptances),
            *_list_of("wrong refusals", self.wrong_refusals),
            *_list_of("broken down", [item for item in self.refusals if item["code"] in ("crash", "timeout")]),
        ]
        return "\n".join(lines)


def check_cases(
    cases: Iterable[SchemaCase], compiler: SchemaCompiler, *, trust_labels: bool = False, progress: str = ""
) -> Tally:
    """Compiles every schema and compares every instance.

    The judge of an instance is a validator, or with `trust_labels` the collection itself. `progress` is a name to
    report progress under, on standard error.
    """
    tally = Tally()
    for case in with_progress(cases, progress):
        check_case(case, compiler, tally, trust_labels=trust_labels)
    return tally


def check_case(case: SchemaCase, compiler: SchemaCompiler, tally: Tally, *, trust_labels: bool = False) -> Outcome:
    """Compiles one schema and compares its instances."""
    outcome = compiler.compile(case.schema)
    oracle = Oracle(case.schema)
    tally.num_schemas += 1
    tally.times.append((outcome.milliseconds, case.name))
    refusal = outcome.refusal
    if refusal is None:
        tally.num_compiled += 1
        if oracle.is_well_formed is False:
            tally.malformed_compiled.append(case.name)
    else:
        tally.refused[refusal.keyword] += 1
        tally.refusal_codes[refusal.code] += 1
        place = {"code": refusal.code, "pointer": refusal.pointer, "keyword": refusal.keyword}
        entry = {"schema": case.name, **place, "message": shown(refusal.message)}
        tally.refusals.append(entry)
        if refusal.code == "invalid_json_schema" and oracle.is_well_formed:
            tally.well_formed_invalid.append(entry)
        if not refusal.is_unsatisfiable:
            return outcome
    form = PublishedForm(oracle.document)
    for instance in case.instances:
        verdict = None if trust_labels else oracle.verdict(published_value(instance.value))
        verdict = verdict or Verdict(instance.label, LABEL)
        tally.labels_overruled += verdict.is_valid != instance.label
        tally.judges[verdict.judge] += 1
        _check_instance(case, instance, verdict, outcome.language, form, tally)
    return outcome


def _check_instance(
    case: SchemaCase,
    instance: Instance,
    verdict: Verdict,
    language: Language | None,
    form: PublishedForm,
    tally: Tally,
) -> None:
    tally.instances["valid" if verdict.is_valid else "invalid"] += 1
    writing = form.write(None if language is None else language.table, instance.value)
    is_accepted = writing.accepted is not None
    if language is not None:
        for layout in LAYOUTS:
            _check_text(language, in_layout(writing.text, layout), is_accepted)
    tally.instances["some orders untried"] += not verdict.is_valid and writing.gave_up
    if is_accepted == verdict.is_valid:
        return
    reasons = outside_reasons(instance.value)
    if verdict.is_valid and reasons:
        tally.outside[reasons[0]] += 1
        return
    entries = tally.wrong_acceptances if is_accepted else tally.wrong_refusals
    text = shown(writing.text.decode("utf-8", "replace"))
    entries.append({"schema": case.name, "instance": shown(instance.description), "text": text, "judge": verdict.judge})


def _check_text(language: Language, text: bytes, is_accepted: bool) -> None:
    """AssertionError where the whole text and its tokens are not judged as the search judged its parts."""
    answers = [language.contains(text)]
    with suppress(UnicodeDecodeError):  # half a surrogate pair has no tokens
        answers.append(language.admits_tokens(text))
    if answers != [is_accepted] * len(answers):
        raise AssertionError(f"search ({is_accepted}), bytes and tokens ({answers}) do not agree on {text!r}")


def with_progress(cases: Iterable[SchemaCase], name: str, every: int = 100) -> Iterator[SchemaCase]:
    """The cases; with a name, a line on standard error now and then."""
    index = 0
    for index, case in enumerate(cases, 1):
        yield case
        if name and index % every == 0:
            print(f"{name}: {index} schemas", file=sys.stderr, flush=True)
    if name:
        print(f"{name}: {index} schemas, done", file=sys.stderr, flush=True)


def shown(text: str) -> str:
    """A text cut to a readable length."""
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


def _list_of(title: str, entries: list[Any]) -> list[str]:
    lines = [entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in entries]
    return [f"{title}: {len(entries)}", *(f"  {line}" for line in lines)]
