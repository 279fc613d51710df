"""Cases from the field about JSON Schema, in rounds whose drafts are the wrong document, the right one, or neither.

The model wants either of them too. What is said is what is said without drafts, and it is never the wrong document.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from infernix.errors import UnsatisfiableJsonSchema
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import FinishReason
from support.chat_output import answer_tokens
from tests.engine.simulation.wishing import Wish, WishingCore


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TREE = {"type": "object", "properties": {"k": {"type": "array", "items": {"$ref": "#/$defs/T"}}}} | {
    "additionalProperties": False
}
# A report, a schema, a document that is of it, and one that was let through, or one like it.
CASES: tuple[tuple[str, Any, str, str], ...] = (
    ("xgrammar#852", closed(content={"type": "string", "maxLength": 5}), '{"content":"abcde"}', '{"content":"abcdef"}'),
    (
        "xgrammar#852",
        closed(content={"type": "string", "maxLength": 100_000}, n={"type": "integer"}),
        json.dumps({"content": "ok, yes. " * 12, "n": 1}),
        json.dumps({"content": "ok, yes. " * 12, "n": "1"}),
    ),
    (
        "xgrammar#858",
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "modifier": {"type": "string"}},
            "anyOf": [{"required": ["modifier"]}],
            "additionalProperties": False,
        },
        '{"a":1,"modifier":"x"}',
        '{"a":1}',
    ),
    ("xgrammar#104", {"type": "object", "properties": {"a": {}}, "required": ["a"]}, '{"a":1}', "{}"),
    ("xgrammar#104", {"type": "array", "minItems": 1}, "[1]", "[]"),
    ("xgrammar#661", closed(n={"type": "number", "exclusiveMinimum": 0}), '{"n":0.1}', '{"n":0}'),
    ("xgrammar#661", closed(n={"type": "integer", "minimum": 2}), '{"n":10}', '{"n":1}'),
    ("xgrammar#661", closed(n={"type": "number", "minimum": 1, "maximum": 5}), '{"n":4.9}', '{"n":5.7}'),
    ("xgrammar#661", closed(n={"type": "integer", "minimum": -5}), '{"n":-5}', '{"n":-6}'),
    ("outlines-core#147", closed(n={"type": "number", "minimum": 0}), '{"n":0}', '{"n":-1}'),
    (
        "guidance#1039",
        {"type": "object", "properties": {"a": {"const": "foo"}, "b": {"const": "bar"}}, "required": ["b"]},
        '{"a":"foo","b":"bar"}',
        '{"b":"bar","a":"BAD"}',
    ),
    ("xgrammar#418", {"enum": ["在线", "离线"]}, '"在线"', '"å\x9c¨çº¿"'),
    ("LocalAI#11020", {"$ref": "#/$defs/T", "$defs": {"T": _TREE}}, '{"k":[{"k":[]},{}]}', '{"k":[{"k":[1]}]}'),
)


@pytest.mark.parametrize("on_device", [False, True], ids=["host", "device"])
@pytest.mark.parametrize(("report", "schema", "right", "wrong"), CASES)
def test_drafts_let_no_wrong_document_through(
    report: str, schema: Any, right: str, wrong: str, on_device: bool
) -> None:
    validator = Draft202012Validator(schema)
    assert validator.is_valid(json.loads(right))
    assert not validator.is_valid(json.loads(wrong, strict=False))
    prompt = ChatPrompt([{"role": "user", "content": report}], (), False)
    options = RequestOptions(160, OutputConstraint.json_schema(schema), SamplingOptions.greedy())
    for wants in (right, wrong):
        wish = Wish(prompt, wants, options)
        [plain] = WishingCore(None, on_device=on_device).answers([wish])
        for drafted in (right, wrong):
            tokens = answer_tokens(drafted)

            def ahead(number: int, said: tuple[int, ...], tokens: list[int] = tokens) -> list[int]:
                return tokens[len(said) :]

            [result] = WishingCore(ahead, on_device=on_device).answers([wish])
            assert (result.token_ids, result.text) == (plain.token_ids, plain.text)
            assert result.constraint is not None
            assert plain.constraint is not None
            assert (result.constraint.terminated, result.constraint.complete) == (
                plain.constraint.terminated,
                plain.constraint.complete,
            )
            assert result.text == right if wants == right else result.text != wrong
            if result.finish_reason is FinishReason.STOP_TOKEN:
                assert validator.is_valid(json.loads(result.text))
            if wants == drafted == right:
                assert result.speculation is not None
                assert result.speculation.num_accepted >= len(tokens) // 2


def test_a_part_that_refers_to_nothing_but_itself_is_not_drafted_in() -> None:
    """LocalAI#11020: such a schema ended the process. Here the optional member cannot be, also where it is drafted, and
    with a required one nothing is drafted at all.
    """
    schema: dict[str, Any] = {
        "$defs": {"A": {"$ref": "#/$defs/A"}},
        "oneOf": [{"type": "object", "properties": {"x": {"$ref": "#/$defs/A"}}, "additionalProperties": False}],
    }
    prompt = ChatPrompt([{"role": "user", "content": "Hi"}], (), False)
    wrong = answer_tokens('{"x":1}')

    def options() -> RequestOptions:
        return RequestOptions(20, OutputConstraint.json_schema(schema), SamplingOptions.greedy())

    core = WishingCore(lambda number, said: wrong[len(said) :])
    [result] = core.answers([Wish(prompt, wrong, options())])
    assert core.rounds
    assert "x" not in result.text
    schema["oneOf"][0]["required"] = ["x"]
    core = WishingCore(lambda number, said: wrong[len(said) :])
    with pytest.raises(UnsatisfiableJsonSchema):
        core.answers([Wish(prompt, wrong, options())])
    assert not core.rounds
