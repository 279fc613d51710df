"""The page about JSON Schema says what the compiler does: its example rows, its lists, its figures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import pytest

from docs.blocks import ROOT
from infernix.errors import ConstraintError
from infernix.grammar import automata
from infernix.grammar.json_values import CANONICAL_ESCAPES, MAX_WHITESPACE_RUN
from infernix.grammar.schema import budget, clause_reader, names, parse_json_schema, source, string_languages
from infernix.grammar.schema.keywords import DEFINITIONS, DESCRIPTIONS, ENFORCED, NAMES, REFUSED
from infernix.grammar.schema.vendors import VENDOR_ANNOTATIONS
from support.compiled_language import CompiledLanguage
from support.shared_data import shared_data
from tests.conformance.cases import maskbench_cases
from tests.conformance.refusal_table import lines_between, refusal_lines

PAGE = (ROOT / "docs" / "json-schema.md").read_text(encoding="utf-8")
LIMIT_MODULES: tuple[ModuleType, ...] = (automata, budget, clause_reader, names, source, string_languages)


def code_spans(text: str) -> list[str]:
    return [span.replace("\\|", "|") for span in re.findall(r"`([^`]+)`", text)]


def between(mark: str) -> str:
    return PAGE.partition(f"<!-- {mark} -->")[2].partition(f"<!-- end of {mark} -->")[0]


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@dataclass(frozen=True)
class Example:
    """A row of a table with the columns `schema`, `in` and `out`; `keyword` where there is one."""

    keyword: str | None
    schema: str
    inside: list[str]
    outside: list[str]

    def __str__(self) -> str:
        return self.schema[:80]


def examples() -> Iterator[Example]:
    header: list[str] = []
    for line in PAGE.splitlines():
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        header = header or cells
        if header[-3:] == ["schema", "in", "out"] and cells is not header and not cells[0].startswith("--"):
            spans = [code_spans(cell) for cell in cells]
            assert len(spans[-3]) == 1, line
            yield Example(spans[0][0] if len(cells) == 4 else None, spans[-3][0], spans[-2], spans[-1])


EXAMPLES = list(examples())


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_row(example: Example) -> None:
    assert example.inside
    assert example.outside
    language = CompiledLanguage(example.schema)
    assert [text for text in example.inside if text not in language] == []
    assert [text for text in example.outside if text in language] == []


def test_each_enforced_keyword_has_a_row() -> None:
    found = [example.keyword for example in EXAMPLES if example.keyword is not None]
    assert sorted(found) == sorted(ENFORCED)
    for example in EXAMPLES:
        assert example.keyword is None or example.keyword in json.loads(example.schema)


def test_the_words_without_effect() -> None:
    text = section("Keywords without effect")
    descriptions, containers, assertions = (item for item in text.split("\n- ")[1:4])
    assert set(code_spans(descriptions)) == DESCRIPTIONS
    assert set(code_spans(containers)) == NAMES | DEFINITIONS | {"$schema", "$id", "id"}
    schemas = code_spans(assertions)
    assert len(schemas) > 5
    for schema in schemas:
        assert parse_json_schema(schema) == parse_json_schema("{}"), schema
        assert set(json.loads(schema)) & REFUSED, schema


def test_the_vendors_words() -> None:
    listed = re.findall(r"`([^`]+)` (\d+)", between("vendors"))
    assert {word: int(count) for word, count in listed} == VENDOR_ANNOTATIONS
    assert [int(count) for _, count in listed] == sorted(VENDOR_ANNOTATIONS.values(), reverse=True)


def test_the_refused_keywords() -> None:
    listed = code_spans(between("refused keywords"))
    assert sorted(listed) == sorted(REFUSED)


def test_the_limits() -> None:
    rows = re.findall(r"^\| `(MAX_[A-Z_]+)` \| ([\d,]+) \|", section("Limits"), re.MULTILINE)
    values = {
        name: getattr(module, name) for module in LIMIT_MODULES for name in vars(module) if name.startswith("MAX_")
    }
    assert {name: int(value.replace(",", "")) for name, value in rows} == values


def test_the_canonical_escapes() -> None:
    strings = PAGE.partition("**Strings.**")[2].partition("**Patterns**")[0]
    short = {escape for escape in code_spans(strings) if re.fullmatch(r"\\[^u]", escape)}
    assert short == {escape for escape in CANONICAL_ESCAPES.values() if len(escape) == 2}
    others = {character: escape for character, escape in CANONICAL_ESCAPES.items() if len(escape) > 2}
    assert others == {
        character: f"\\u00{ord(character):02x}" for character in map(chr, range(0x20)) if character in others
    }
    assert {ord(character) for character in CANONICAL_ESCAPES} == {*range(0x20), ord('"'), ord("\\")}
    assert f"up to {MAX_WHITESPACE_RUN} characters" in section("What is generated")


def test_why_real_schemas_are_refused() -> None:
    """The table is the one that `python -m tests.conformance.refusal_table` writes."""
    refusals: list[tuple[str, str]] = []
    cases = maskbench_cases(shared_data("maskbench"))
    for case in cases:
        try:
            parse_json_schema(case.schema)
        except ConstraintError as error:
            refusals.append((error.message, getattr(error, "pointer", None) or ""))
    assert lines_between(PAGE) == refusal_lines(len(cases), refusals)
