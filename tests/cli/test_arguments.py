from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from infernix.cli.arguments import bind_text_values, constraint_from, flag_of, sampling_from
from infernix.cli.parser import build_parser
from infernix.errors import InvalidOptions
from infernix.options import ConstraintKind, OutputConstraint, SamplingOptions


def parse(*arguments: str) -> argparse.Namespace:
    return build_parser().parse_args(bind_text_values(arguments))


def parse_generate(*arguments: str) -> argparse.Namespace:
    return parse("generate", "--prompt", "x", *arguments)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as caught:
        parse(*arguments)
    assert caught.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "value",
    ["-?[0-9]+", "--greedy", "", "-", "a=b", " ", "-1"],
    ids=["dash", "flag", "empty", "dash-only", "=", "sp", "n"],
)
@pytest.mark.parametrize("flag", ["--regex", "--choice"])
def test_a_text_value_is_the_next_argument_whatever_it_looks_like(flag: str, value: str) -> None:
    constraint = constraint_from(parse_generate(flag, value))
    expected = OutputConstraint.regex(value) if flag == "--regex" else OutputConstraint.choice([value])
    assert constraint == expected


def test_a_text_flag_without_a_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--regex: expected one argument" in refusal(capsys, "check", "--regex")


def test_choices_keep_their_order_and_their_spaces() -> None:
    constraint = constraint_from(parse_generate("--choice", "b ", "--choice", "", "--choice", " a"))
    assert constraint == OutputConstraint.choice(["b ", "", " a"])


def test_files_become_owned_source_text(tmp_path: Path) -> None:
    grammar = tmp_path / "g.gbnf"
    grammar.write_bytes(b'root ::= "a"\r\n')
    assert constraint_from(parse_generate("--grammar-file", str(grammar))) == OutputConstraint.grammar(
        'root ::= "a"\r\n'
    )
    schema = tmp_path / "s.json"
    schema.write_text('{"b": 1, "a": 2}')
    read = constraint_from(parse_generate("--json-schema-file", str(schema)))
    assert read is not None
    assert (read.kind, read.source) == (ConstraintKind.JSON_SCHEMA, '{"b": 1, "a": 2}')


def test_keywords_to_ignore_go_with_a_schema(tmp_path: Path) -> None:
    schema = tmp_path / "s.json"
    schema.write_text('{"format": "date"}')
    flags = ("--ignore-keyword", "format", "--ignore-keyword", "--x")
    assert constraint_from(parse_generate("--json-schema-file", str(schema), *flags)) == OutputConstraint.json_schema(
        '{"format": "date"}', ignore_keywords=["format", "--x"]
    )
    for others in (("--json-object",), ()):
        with pytest.raises(InvalidOptions) as caught:
            constraint_from(parse_generate(*others, *flags))
        assert flag_of(caught.value.field) == "--ignore-keyword"


def test_no_constraint_and_json_object() -> None:
    assert constraint_from(parse_generate()) is None
    assert constraint_from(parse_generate("--json-object")) == OutputConstraint.json_object()


@pytest.mark.parametrize(
    "flags",
    [
        ("--regex", "", "--choice", ""),
        ("--json-object", "--regex", "a"),
        ("--grammar-file", "g", "--json-schema-file", "s"),
        ("--choice", "a", "--json-object"),
    ],
)
def test_two_constraints_exclude_each_other(capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]) -> None:
    message = refusal(capsys, "check", *flags)
    assert "not allowed with argument" in message


def test_a_flag_given_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--regex: given twice" in refusal(capsys, "check", "--regex", "a", "--regex", "b")
    assert "--seed: given twice" in refusal(capsys, "generate", "--prompt", "x", "--seed", "1", "--seed", "2")


def test_check_needs_a_constraint_and_generate_a_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    assert "one of the arguments --grammar-file" in refusal(capsys, "check")
    assert "one of the arguments --prompt --messages is required" in refusal(capsys, "generate", "--json-object")


def test_flags_cannot_be_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unrecognized arguments: --json-obj" in refusal(capsys, "generate", "--prompt", "x", "--json-obj")


def test_sampling_flags() -> None:
    assert sampling_from(parse_generate()) == SamplingOptions()
    assert sampling_from(parse_generate("--greedy")) == SamplingOptions.greedy()
    flags = "--temperature 0.5 --top-k 0 --top-p 0.9 --min-p 0.1 --presence-penalty -1 --frequency-penalty 2 --seed 7"
    assert sampling_from(parse_generate(*flags.split())) == SamplingOptions(
        temperature=0.5, top_k=0, top_p=0.9, min_p=0.1, presence_penalty=-1.0, frequency_penalty=2.0, seed=7
    )


def test_greedy_and_temperature_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    message = refusal(capsys, "generate", "--prompt", "x", "--greedy", "--temperature", "1")
    assert "--temperature: not allowed with argument --greedy" in message


@pytest.mark.parametrize(("flag", "value"), [("--temperature", "3"), ("--top-p", "nan"), ("--seed", "-1")])
def test_a_value_out_of_range_names_its_field(flag: str, value: str) -> None:
    with pytest.raises(InvalidOptions) as caught:
        sampling_from(parse_generate(flag, value))
    assert caught.value.field == flag.removeprefix("--").replace("-", "_")
