"""Failures reported against other engines about references that lead back to themselves: the whole kind.

The references are public reports, reduced; what is tested is what is right, which is not always what was done about
them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from infernix.errors import InvalidJsonSchema, UnsatisfiableJsonSchema, UnsupportedJsonSchema
from infernix.grammar.build import build_grammar
from infernix.options import OutputConstraint
from support.compiled_language import CompiledLanguage, byte_compiler


def tree(**more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}, **more}


class TestCycles:
    """A reference cycle without content took the process down (LocalAI#11020, lattice#343, xgrammar#207)."""

    @pytest.mark.parametrize(
        ("schema", "pointer"),
        [
            ({"$ref": "#"}, "/$ref"),
            (
                {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
                "/$defs/a/$ref",
            ),
            (
                {"$ref": "#/$defs/0", "$defs": {str(i): {"$ref": f"#/$defs/{(i + 1) % 3000}"} for i in range(3000)}},
                "/$defs/0/$ref",
            ),
            ({"allOf": [{"$ref": "#"}]}, "/allOf"),
            ({"anyOf": [{"$ref": "#"}]}, ""),
            (
                {
                    "anyOf": [{"$ref": "#/$defs/a"}],
                    "$defs": {"a": {"anyOf": [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}]}},
                },
                "",
            ),
            (tree(required=["left"]), ""),
            ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, ""),
            ({"type": "array", "prefixItems": [{}, {"$ref": "#"}], "minItems": 2}, ""),
            ({"type": "object", "required": ["a"], "additionalProperties": {"$ref": "#"}}, ""),
            (
                {
                    "$defs": {"A": {"$ref": "#/$defs/A"}},
                    "oneOf": [{"type": "object", "properties": {"x": {"$ref": "#/$defs/A"}}, "required": ["x"]}],
                },
                "/$defs/A/$ref",
            ),
        ],
        ids=lambda value: json.dumps(value)[:60],
    )
    def test_without_content_nothing_satisfies_it(self, schema: Any, pointer: str) -> None:
        with pytest.raises(UnsatisfiableJsonSchema) as caught:
            CompiledLanguage(schema)
        assert caught.value.pointer == pointer

    def test_an_optional_part_without_content_is_left_out(self) -> None:
        language = CompiledLanguage(
            {
                "$defs": {"A": {"$ref": "#/$defs/A"}},
                "oneOf": [{"type": "object", "properties": {"x": {"$ref": "#/$defs/A"}}}],
            }
        )
        assert "{}" in language
        assert '{"y":1}' in language
        assert '{"x":1}' not in language

    def test_recursion_with_an_end_works(self) -> None:
        for schema, levels in ((tree(), 400), (tree(additionalProperties=False), 400)):
            language = CompiledLanguage(schema)
            assert '{"left":' * levels + "{}" + "}" * levels in language
            assert '{"left":' * levels + "1" + "}" * levels not in language
            assert '{"left":{},"right":{"left":{}}}' in language
        nested = CompiledLanguage({"type": "array", "items": {"$ref": "#"}, "maxItems": 2})
        assert "[[],[[],[]]]" in nested
        assert "[[],[[],[],[]]]" not in nested
        assert "null" in CompiledLanguage({"anyOf": [{"$ref": "#"}, {"type": "null"}]})

    @pytest.mark.parametrize(
        ("schema", "error", "pointer"),
        [
            ({"maxItems": 18446744073709551615}, UnsupportedJsonSchema, "/maxItems"),
            ({"oneOf": [{"$ref": "#"}, {"type": "null"}]}, UnsupportedJsonSchema, "/oneOf"),
            ({"$ref": "#/$defs/a"}, InvalidJsonSchema, "/$ref"),
            ({"properties": {"foo": "bar"}}, InvalidJsonSchema, "/properties/foo"),
        ],
    )
    def test_what_cannot_be_is_refused_with_its_place(
        self, schema: Any, error: type[UnsupportedJsonSchema | InvalidJsonSchema], pointer: str
    ) -> None:
        with pytest.raises(error) as caught:
            build_grammar(OutputConstraint.json_schema(schema))
        assert caught.value.pointer == pointer
        with pytest.raises(error):
            byte_compiler().compile(OutputConstraint.json_schema(schema))
