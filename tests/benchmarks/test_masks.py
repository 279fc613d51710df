"""The mask benchmark: its output's shape, and that its texts belong to its grammars.

This folder is no package: it would hide the package `benchmarks` that it tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import report
from benchmarks.cases import CASES, Case
from benchmarks.measurement import cut, distribution
from benchmarks.shared_data import MissingData
from benchmarks.vocabularies import BenchmarkVocabulary, smollm2
from infernix.matching import CompiledGrammar, GrammarCompiler
from support.vocabularies import byte_vocabulary

PROJECT_ROOT = Path(__file__).resolve().parents[2]
# One of every kind of source, none of them slow to compile.
QUICK_CASES = ["flat_5_fields", "string_pattern", "gbnf_60_rules", "regex_url"]
DISTRIBUTION = {"mean", "p50", "p95", "p99", "max"}


@pytest.fixture(scope="module")
def vocabulary() -> BenchmarkVocabulary:
    return smollm2()


@pytest.fixture(scope="module")
def compiler(vocabulary: BenchmarkVocabulary) -> GrammarCompiler:
    return GrammarCompiler(vocabulary.vocabulary)


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.masks", "--quick", "--json", "--engines", "infernix"]
    command += ["--vocabulary", "smollm2", "--cases", ",".join(QUICK_CASES)]
    finished = subprocess.run(
        command,
        cwd=PROJECT_ROOT,
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    parsed: dict[str, Any] = json.loads(finished.stdout)
    return parsed


def test_prints_one_object(result: dict[str, Any]) -> None:
    assert {"machine", "vocabulary", "versions", "setup_seconds", "quick", "rows"} == set(result)
    assert result["vocabulary"] == {"name": "smollm2", "title": "SmolLM2", "num_tokens": 49152}
    assert [(row["case"], row["engine"]) for row in result["rows"]] == [(case, "infernix") for case in QUICK_CASES]


def test_rows_have_every_figure(result: dict[str, Any]) -> None:
    for row in result["rows"]:
        assert row["reason"] is None
        assert row["note"] is None
        assert 0 < row["compile_ms"] <= row["first_100_ms"]
        for key in ("cold_us", "warm_us"):
            assert set(row[key]) == DISTRIBUTION
            assert 0 < row[key]["p50"] <= row[key]["p95"] <= row[key]["p99"] <= row[key]["max"]
        assert 0 < row["unknown_us"]["num_rows"] <= row["num_tokens"] <= 120
        for key in ("accept_us", "lookahead15_us"):
            assert row[key]["cold"] > 0
            assert row[key]["warm"] > 0
        assert row["kept_bytes"] > 0
        assert row["num_rounds"] >= 1


def test_report_has_a_line_for_every_case(result: dict[str, Any]) -> None:
    page = report.page([result])
    for row in result["rows"]:
        assert page.count(f"| {row['title']} |") == 3
    assert "Nowhere in warm p50" in page


def test_report_names_where_another_engine_is_ahead(result: dict[str, Any]) -> None:
    ours = result["rows"][0]
    faster = {**ours, "engine": "other", "warm_us": {**ours["warm_us"], "p99": 0.0}}
    refusing = {**result["rows"][1], "engine": "other", "reason": "refused: no patterns"}
    page = report.page([{**result, "rows": [ours, faster, result["rows"][1], refusing]}])
    assert page.count("against 0.00 µs of other") == 1
    assert "not explained yet" in page
    assert "refused: no patterns" in page


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("tools_400", "choice_1000")])
def test_texts_are_accepted_token_by_token(
    name: str, vocabulary: BenchmarkVocabulary, compiler: GrammarCompiler
) -> None:
    case = _case(name)
    grammar = CompiledGrammar(case.grammar(), compiler.index)
    for text in case.texts:
        matcher = grammar.new_matcher()
        tokens = vocabulary.encode(text)
        assert [token for token in tokens if not matcher.accept(token)] == []
        assert matcher.may_end
    for text in case.outside:
        matcher = grammar.new_matcher()
        assert not (all(matcher.accept(token) for token in vocabulary.encode(text)) and matcher.may_end)


def test_union_of_many_tools_takes_each_tool() -> None:
    vocabulary = byte_vocabulary()
    grammar = CompiledGrammar(_case("tools_50").grammar(), GrammarCompiler(vocabulary).index)
    source = json.loads(_case("tools_50").source)
    assert len(source["anyOf"]) == 50
    for branch in source["anyOf"]:
        matcher = grammar.new_matcher()
        name = branch["properties"]["name"]["const"]
        assert all(matcher.accept(byte) for byte in f'{{"name": "{name}", "arguments": {{'.encode())


def test_choice_and_automaton_have_the_size_they_are_named_for() -> None:
    assert len(set(json.loads(_case("choice_1000").source))) == 1000
    automaton = _case("automaton_5000").grammar().rules[0].body.items[1]  # type: ignore[union-attr]
    assert 4900 <= automaton.num_states <= 5100  # type: ignore[union-attr]


def test_cut_takes_from_the_longest_texts() -> None:
    assert cut([[1, 2, 3, 4, 5], [6], [7, 8]], 5) == [[1, 2], [6], [7, 8]]
    assert cut([[1, 2]], 5) == [[1, 2]]


def test_distribution_uses_the_nearest_rank() -> None:
    figures = distribution([1000 * value for value in range(100, 0, -1)])
    assert figures == {"mean": 50.5, "p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}


def _case(name: str) -> Case:
    try:
        return CASES[name]()
    except MissingData as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
