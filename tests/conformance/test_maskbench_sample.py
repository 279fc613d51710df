"""A fixed sample of the real schemas; `python -m tests.conformance.maskbench` runs them all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.shared_data import shared_data
from tests.conformance import maskbench
from tests.conformance.cases import Instance, SchemaCase, maskbench_cases
from tests.conformance.checking import check_cases
from tests.conformance.forgetful import ForgetfulCompiler
from tests.conformance.languages import SchemaCompiler, refused_keyword

NUM_SCHEMAS = 120

PERSON = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 3}, "age": {"type": "integer"}},
        "required": ["age"],
    }
)


def person_case(*instances: tuple[object, bool]) -> SchemaCase:
    return SchemaCase("person", PERSON, tuple(Instance(value, label, "") for value, label in instances))


def test_real_schemas(schema_compiler: SchemaCompiler) -> None:
    tally = check_cases(maskbench_cases(shared_data("maskbench"), NUM_SCHEMAS), schema_compiler)
    assert (tally.wrong_acceptances, tally.wrong_refusals) == ([], [])
    assert tally.num_wrong == 0
    assert (tally.malformed_compiled, tally.well_formed_invalid) == ([], [])
    assert tally.num_schemas == NUM_SCHEMAS
    assert tally.num_compiled >= 0.6 * NUM_SCHEMAS
    assert tally.instances["valid"] > 80
    assert tally.instances["invalid"] > 80
    assert tally.judges.keys() == {"jsonschema-rs"}


def test_figures_are_one_json_object(
    schema_compiler: SchemaCompiler, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maskbench, "SchemaCompiler", lambda: schema_compiler)
    assert maskbench.main(["--data", str(shared_data()), "--sample", "8", "--seed", "1", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["schemas"] == 8
    assert figures["compiled"] + sum(figures["refused"].values()) == 8
    assert figures["compile_ms"].keys() == {"p50", "p95", "p99", "max"}
    assert (figures["wrong_acceptances"], figures["wrong_refusals"]) == ([], [])


def test_data_may_be_the_collection_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "origin"
    folder.mkdir()
    test = {"valid": True, "data": 1.0, "description": "d"}
    (folder / "x.json").write_text('{"meta": {}, "schema":{"const":1.0 } , "tests":' + json.dumps([test]) + "}")
    (case,) = maskbench_cases(tmp_path)
    assert (case.name, case.schema, case.instances) == ("origin/x.json", '{"const":1.0 }', (Instance(1.0, True, "d"),))
    with pytest.raises(SystemExit):
        maskbench.main(["--data", str(tmp_path / "missing")])
    assert "INFERNIX_SHARED_DATA names another folder" in capsys.readouterr().err


def test_a_loosened_schema_is_noticed(schema_compiler: SchemaCompiler) -> None:
    case = person_case(({"age": 3, "name": "Zoë"}, True), ({"name": "Zacharias", "age": 3}, False))
    assert check_cases([case], schema_compiler).num_wrong == 0
    tally = check_cases([case], ForgetfulCompiler(schema_compiler, "maxLength"))
    assert [entry["text"] for entry in tally.wrong_acceptances] == ['{"name":"Zacharias","age":3}']
    assert tally.wrong_refusals == []
    assert "wrong acceptances: 1" in tally.report()


def test_a_tightened_schema_is_noticed(schema_compiler: SchemaCompiler) -> None:
    case = SchemaCase("tags", '{"anyOf": [{"type": "string"}, {"type": "null"}]}', (Instance(None, True, "none"),))
    tightened = SchemaCase("tags", '{"anyOf": [{"type": "string"}], "default": null}', case.instances)
    assert check_cases([case], schema_compiler).num_wrong == 0
    tally = check_cases([tightened], schema_compiler, trust_labels=True)
    assert [(entry["text"], entry["judge"]) for entry in tally.wrong_refusals] == [("null", "label")]


def test_without_a_value_every_instance_is_refused(schema_compiler: SchemaCompiler) -> None:
    case = SchemaCase("none", '{"type": "string", "enum": [1]}', (Instance(1, False, ""), Instance("1", True, "")))
    tally = check_cases([case], schema_compiler, trust_labels=True)
    assert (tally.num_compiled, dict(tally.refusal_codes)) == (0, {"unsatisfiable_json_schema": 1})
    assert [entry["text"] for entry in tally.wrong_refusals] == ['"1"']


def test_values_outside_by_decision_are_counted_apart(schema_compiler: SchemaCompiler) -> None:
    case = SchemaCase("big", '{"type": "integer"}', (Instance(10**20, True, ""), Instance(10**18, True, "")))
    tally = check_cases([case], schema_compiler)
    assert (dict(tally.outside), tally.num_wrong) == ({"an integer beyond signed 64 bits": 1}, 0)


def test_a_label_is_overruled_by_the_validator(schema_compiler: SchemaCompiler) -> None:
    tally = check_cases([person_case(({"age": "3"}, True))], schema_compiler)
    assert (tally.labels_overruled, tally.num_wrong) == (1, 0)


@pytest.mark.parametrize(
    ("pointer", "keyword"),
    [
        ("", ""),
        ("/format", "format"),
        ("/properties/format", "properties"),
        ("/properties/format/pattern", "pattern"),
        ("/items/1/not", "not"),
        ("/items", "items"),
        ("/anyOf/0/items/minItems", "minItems"),
        ("/anyOf/0", "anyOf"),
        ("/$defs/a~1b/enum/1/items", "enum"),
        ("/missing/x", "missing"),
    ],
)
def test_keyword_of_a_pointer(pointer: str, keyword: str) -> None:
    schema = {
        "format": "x",
        "properties": {"format": {"pattern": "("}},
        "items": [True, {"not": {}}],
        "anyOf": [{"items": {"minItems": -1}}],
        "$defs": {"a/b": {"enum": [1, {"items": 1}]}},
    }
    assert refused_keyword(json.dumps(schema), pointer) == keyword
