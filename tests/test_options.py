from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from infernix.errors import InvalidChoice, InvalidJsonSchema, InvalidOptions
from infernix.options import (
    MAX_STOP_STRING_CHARACTERS,
    MAX_STOP_STRINGS,
    ConstraintKind,
    OutputConstraint,
    RequestOptions,
    SamplingOptions,
    SamplingParameters,
    resolve_sampling,
)
from infernix.tools import ToolChoice

RANGES = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "min_p": (0.0, 1.0),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
    "top_k": (0, 2**31 - 1),
    "seed": (0, 2**64 - 1),
}


@pytest.mark.parametrize(("name", "bounds"), RANGES.items())
def test_both_ends_of_a_range_belong_to_it(name: str, bounds: tuple[float, float]) -> None:
    for value in bounds:
        assert getattr(SamplingOptions(**{name: value}), name) == value  # type: ignore[arg-type]
    step = 1 if name in ("top_k", "seed") else 0.001
    for value in (bounds[0] - step, bounds[1] + step):
        with pytest.raises(InvalidOptions, match=f"{name}: .* is outside") as caught:
            SamplingOptions(**{name: value})  # type: ignore[arg-type]
        assert caught.value.field == name


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, True, "1", [1], 1j])
def test_what_is_no_number_of_the_range_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidOptions, match=name):
        SamplingOptions(**{name: value})


@pytest.mark.parametrize("value", [-1, 2**31, 1.0, True, "5"])
def test_the_output_budget_is_an_integer(value: Any) -> None:
    with pytest.raises(InvalidOptions, match="max_new_tokens"):
        RequestOptions(max_new_tokens=value)


def test_what_is_no_constraint_or_no_sampling_is_refused() -> None:
    with pytest.raises(InvalidOptions, match="constraint"):
        RequestOptions(constraint='root ::= "a"')  # type: ignore[arg-type]
    with pytest.raises(InvalidOptions, match="sampling"):
        RequestOptions(sampling=SamplingParameters())  # type: ignore[arg-type]


def test_greedy_is_temperature_zero_and_nothing_else() -> None:
    assert SamplingOptions.greedy() == SamplingOptions(temperature=0.0)


DEFAULTS = SamplingParameters(0.7, 20, 0.8, 0.05, presence_penalty=1.5, frequency_penalty=0.5, seed=9)


def test_free_requests_take_what_they_leave_out_from_the_model() -> None:
    assert resolve_sampling(SamplingOptions(), DEFAULTS, constrained=False) == DEFAULTS
    chosen = SamplingOptions(0.0, 0, 1.0, 0.0, presence_penalty=0.0, frequency_penalty=0.0, seed=0)
    assert resolve_sampling(chosen, DEFAULTS, constrained=False) == SamplingParameters(0.0, 0, 1.0, 0.0)


def test_constrained_requests_drop_the_models_penalties_and_keep_the_callers() -> None:
    resolved = resolve_sampling(SamplingOptions(frequency_penalty=-0.25), DEFAULTS, constrained=True)
    assert resolved == SamplingParameters(0.7, 20, 0.8, 0.05, presence_penalty=0.0, frequency_penalty=-0.25, seed=9)


# Constraints


class Person(BaseModel):
    name: str
    age: int


def test_a_schema_may_be_text_a_document_or_a_class() -> None:
    text = '{"properties": {"b": {}, "a": {}}}'
    assert OutputConstraint.json_schema(text).source == text
    assert OutputConstraint.json_schema(json.loads(text)).source == text  # the order of properties is kept
    assert json.loads(OutputConstraint.json_schema(Person).source) == Person.model_json_schema()
    assert OutputConstraint.json_schema(True).source == "true"


@pytest.mark.parametrize("schema", [7, None, [1], {"const": float("nan")}, {"const": object()}, {"enum": {1, 2}}])
def test_a_schema_that_json_cannot_express_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidJsonSchema):
        OutputConstraint.json_schema(schema)


def test_a_schema_that_holds_itself_is_refused() -> None:
    schema: dict[str, Any] = {}
    schema["items"] = schema
    with pytest.raises(InvalidJsonSchema):
        OutputConstraint.json_schema(schema)


def test_keywords_to_ignore_are_a_set_of_names() -> None:
    constraint = OutputConstraint.json_schema({}, ignore_keywords=["format", "x", "format"])
    assert constraint.ignore_keywords == frozenset({"format", "x"})
    assert constraint == OutputConstraint.json_schema("{}", ignore_keywords=("x", "format"))
    assert constraint != OutputConstraint.json_schema("{}")
    assert OutputConstraint.json_schema(Person, ignore_keywords=["title"]).ignore_keywords == frozenset({"title"})


@pytest.mark.parametrize("names", ["format", 1, None, [1]])
def test_keywords_to_ignore_must_be_names(names: Any) -> None:
    with pytest.raises(InvalidOptions) as caught:
        OutputConstraint.json_schema("{}", ignore_keywords=names)
    assert caught.value.field == "ignore_keywords"


def test_only_a_schema_has_keywords() -> None:
    with pytest.raises(InvalidOptions) as caught:
        OutputConstraint(ConstraintKind.REGEX, "a", ignore_keywords=frozenset({"format"}))
    assert caught.value.field == "ignore_keywords"


def test_choices_keep_their_bytes_and_their_order() -> None:
    constraint = OutputConstraint.choice(iter(["b ", "", "é", "b "]))
    assert constraint == OutputConstraint(ConstraintKind.CHOICE, choices=("b ", "", "é", "b "))


def test_choices_are_a_list_of_strings() -> None:
    with pytest.raises(InvalidChoice, match="not one string"):
        OutputConstraint.choice("yes")
    with pytest.raises(InvalidChoice, match="at entry 1") as caught:
        OutputConstraint.choice(["yes", 1])  # type: ignore[list-item]
    assert caught.value.index == 1


@pytest.mark.parametrize("make", [OutputConstraint.grammar, OutputConstraint.regex])
def test_a_source_is_text(make: Any) -> None:
    assert make("").source == ""
    with pytest.raises(InvalidOptions):
        make(b"a")


def test_constraints_are_values() -> None:
    assert len({OutputConstraint.regex("a"), OutputConstraint.regex("a"), OutputConstraint.grammar("a")}) == 2


class _Failing:
    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        raise RuntimeError("boom")


def test_a_class_without_a_schema_is_refused() -> None:
    with pytest.raises(InvalidJsonSchema, match="the class int has no model_json_schema"):
        OutputConstraint.json_schema(int)  # type: ignore[arg-type]
    with pytest.raises(InvalidJsonSchema, match=r"_Failing.model_json_schema\(\) failed: boom"):
        OutputConstraint.json_schema(_Failing)


def test_choices_can_be_walked_through() -> None:
    with pytest.raises(InvalidChoice, match="not int"):
        OutputConstraint.choice(5)  # type: ignore[arg-type]


def test_a_constraint_made_by_hand_is_checked_too() -> None:
    for make in (
        lambda: OutputConstraint("grammar", "x"),  # type: ignore[arg-type]
        lambda: OutputConstraint(ConstraintKind.REGEX, None),  # type: ignore[arg-type]
        lambda: OutputConstraint(ConstraintKind.CHOICE, choices=["a"]),  # type: ignore[arg-type]
        lambda: OutputConstraint(ConstraintKind.CHOICE, choices=(5,)),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidOptions):
            make()


def test_numbers_too_long_to_be_written_are_refused() -> None:
    for value in (10**5000, -(10**5000)):
        with pytest.raises(InvalidOptions, match="seed: an integer of 16610 bits is outside"):
            SamplingOptions(seed=value)
        with pytest.raises(InvalidOptions, match="temperature: an integer of 16610 bits is outside"):
            SamplingOptions(temperature=value)


def test_a_request_has_a_budget() -> None:
    with pytest.raises(InvalidOptions, match="max_new_tokens: expected an integer, got None"):
        RequestOptions(max_new_tokens=None)  # type: ignore[arg-type]


# What is published and what ends the output


def test_options_of_publication_have_plain_defaults() -> None:
    options = RequestOptions()
    assert (options.tool_choice, options.thinking_budget) == (ToolChoice(), None)
    assert (options.stop, options.stop_token_ids) == ((), ())
    assert (options.raw_output, options.publish_special_tokens, options.ignore_eos) == (False, False, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tool_choice", "auto"),
        ("thinking_budget", -1),
        ("thinking_budget", 1.5),
        ("thinking_budget", True),
        ("stop", "END"),
        ("stop", ["END"]),
        ("stop", ("",)),
        ("stop", ("a\ud800",)),
        ("stop", (5,)),
        ("stop", ("x" * (MAX_STOP_STRING_CHARACTERS + 1),)),
        ("stop", ("x",) * (MAX_STOP_STRINGS + 1)),
        ("stop_token_ids", [5]),
        ("stop_token_ids", (-1,)),
        ("stop_token_ids", (None,)),
        ("stop_token_ids", ("5",)),
        ("raw_output", 1),
        ("publish_special_tokens", None),
        ("ignore_eos", "no"),
    ],
)
def test_options_of_publication_are_checked(name: str, value: Any) -> None:
    with pytest.raises(InvalidOptions, match=name) as caught:
        RequestOptions(**{name: value})
    assert caught.value.field == name


def test_options_of_publication_at_their_bounds_are_taken() -> None:
    RequestOptions(
        thinking_budget=0,
        stop=("x" * MAX_STOP_STRING_CHARACTERS,) * MAX_STOP_STRINGS,
        stop_token_ids=(0, 2**31 - 1),
        publish_special_tokens=True,
        ignore_eos=True,
    )


def test_raw_output_has_no_thinking_to_bound() -> None:
    RequestOptions(raw_output=True)
    with pytest.raises(InvalidOptions, match="thinking_budget: raw output"):
        RequestOptions(raw_output=True, thinking_budget=5)
