"""`allOf`, `anyOf`, `oneOf`, and `$ref` with siblings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infernix.errors import UnsatisfiableJsonSchema, UnsupportedJsonSchema
from infernix.grammar.schema import parse_json_schema
from support.schema_language import SchemaLanguage, check_language


def test_all_of_intersects_scalars() -> None:
    check_language(
        {"type": ["integer", "string"], "allOf": [{"minimum": 2}, {"maximum": 4, "maxLength": 2}, {"minLength": 1}]},
        ["2", "4", '"a"', '"ab"'],
        ["1", "5", '""', '"abc"', "null"],
    )


def test_integer_and_number_overlap() -> None:
    check_language({"allOf": [{"type": ["number", "null"]}, {"type": ["integer", "string"]}]}, ["1"], ["1.5", "null"])
    check_language({"type": ["integer", "number"]}, ["1", "1.5"], ["null"])


def test_the_tighter_bound_holds_and_the_exclusive_one_of_two_equal_ones() -> None:
    document = {"type": "integer", "allOf": [{"minimum": 1, "maximum": 3}, {"exclusiveMinimum": 1}, {"maximum": 9}]}
    check_language(document, ["2", "3"], ["1", "4"])


OPEN = {"properties": {"a": {"type": "integer"}}}
CLOSED = {"properties": {"b": {"type": "integer"}}, "additionalProperties": False}


def test_a_closed_branch_is_not_opened_by_the_properties_of_another() -> None:
    check_language({"type": "object", "allOf": [OPEN, CLOSED]}, ["{}", '{"b":1}'], ['{"a":1}', '{"a":1,"b":1}'])
    check_language({"type": "object", **OPEN, "allOf": [CLOSED]}, ["{}", '{"b":1}'], ['{"a":1}'])


def test_additional_properties_of_one_branch_hold_for_the_names_of_another() -> None:
    check_language(
        {
            "type": "object",
            "allOf": [
                {"properties": {"a": {"minimum": 2}}, "additionalProperties": {"type": "integer"}},
                {"properties": {"b": {"maximum": 5}}, "additionalProperties": {"maximum": 9}},
            ],
        },
        ['{"a":2,"b":5,"c":9}', '{"a":9,"b":-1,"c":-1}', '{"b":1,"d":9,"c":9}'],
        ['{"a":10}', '{"a":1}', '{"b":"x"}', '{"b":1.5}', '{"c":10}', '{"c":null}'],
    )


def test_required_is_judged_after_the_merge() -> None:
    check_language(
        {"type": "object", "allOf": [{"required": ["b", "c"]}, OPEN, {"properties": {"b": {"const": 1}}}]},
        ['{"b":1,"c":null}', '{"a":0,"b":1,"c":2,"d":3}'],
        ['{"b":1}', '{"a":1,"c":1}', '{"b":2,"c":1}'],
    )


def test_a_required_undeclared_name_takes_all_additional_schemas() -> None:
    check_language(
        {
            "type": "object",
            "required": ["n"],
            "allOf": [{"additionalProperties": {"type": "integer"}}, {"additionalProperties": {"enum": [1, 2, "x"]}}],
        },
        ['{"n":1}', '{"n":2,"m":1}'],
        ["{}", '{"n":"x"}', '{"n":3}'],
    )


def test_an_impossible_required_member_makes_its_branch_impossible() -> None:
    document = {
        "anyOf": [
            {"type": "object", "allOf": [CLOSED, {"required": ["a"]}]},
            {
                "type": "object",
                "allOf": [{"properties": {"c": {"type": "null"}}}, {"properties": {"c": {"const": 1}}}],
                "required": ["c"],
            },
            {"type": "null"},
        ]
    }
    check_language(document, ["null"], ["{}", '{"a":1}', '{"b":1}', '{"c":1}', '{"c":null}'])


def test_an_impossible_optional_member_never_occurs() -> None:
    document = {
        "type": "object",
        "allOf": [{"properties": {"c": {"type": "null"}}}, {"properties": {"c": {"type": "string"}}}],
    }
    check_language(document, ["{}", '{"d":1}'], ['{"c":null}', '{"c":"x"}', '{"\\u0063":1}'])


def test_members_come_in_the_order_of_the_document() -> None:
    definition = {"properties": {"base": {}, "a": {}}}
    early = {"$defs": {"base": definition}, "allOf": [{"$ref": "#/$defs/base"}], "properties": {"own": {}}}
    late = {"$defs": {"base": definition}, "properties": {"own": {}}, "allOf": [{"$ref": "#/$defs/base"}]}
    chosen = {"anyOf": [{"properties": {"kind": {}}, "required": ["kind"]}], "properties": {"own": {}, "kind": {}}}
    for document, names in [
        ({**early, "type": "object"}, ["base", "a", "own"]),
        ({**late, "type": "object"}, ["own", "base", "a"]),
        ({**chosen, "type": "object"}, ["kind", "own"]),
    ]:
        inside = "{" + ",".join(f'"{name}":1' for name in [*names, "other"]) + "}"
        outside = "{" + ",".join(f'"{name}":1' for name in reversed(names)) + "}"
        check_language(document, [inside], [outside])


def test_arrays_are_intersected_position_by_position() -> None:
    check_language(
        {
            "type": "array",
            "allOf": [
                {"prefixItems": [{"type": "integer"}], "items": {"minimum": 5}},
                {"prefixItems": [{"minimum": 1}, {"maximum": 7}, {"type": "integer"}], "items": {"type": "integer"}},
            ],
        },
        ["[]", "[1]", "[1,5]", "[1,7,9]", '[1,"x",5,5]'],
        ["[0]", "[1.5]", "[1,8]", "[1,4]", '[1,7,"x"]', "[1,7,5,4]", '[1,7,5,"x"]'],
    )


def test_an_impossible_position_ends_the_array_before_it() -> None:
    document = {
        "type": "array",
        "allOf": [{"prefixItems": [{}, {"type": "null"}]}, {"prefixItems": [{}, {"type": "string"}]}],
    }
    check_language(document, ["[]", "[1]"], ["[1,null]", '[1,"x"]'])
    check_language({**document, "minItems": 1}, ["[1]"], ["[]"])
    with pytest.raises(UnsatisfiableJsonSchema):
        parse_json_schema(json.dumps({**document, "minItems": 2}))
    check_language({"anyOf": [{**document, "minItems": 2}, {"const": 3}]}, ["3"], ["[]", "[1]"])


def test_positions_beyond_the_greatest_length_play_no_part() -> None:
    document = {"type": "array", "prefixItems": [{"type": "null"}, {"type": "integer"}], "items": False, "maxItems": 1}
    check_language(document, ["[]", "[null]"], ["[null,1]", "[1]"])


def test_any_of_distributes_common_assertions() -> None:
    check_language(
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "modifier": {"type": "null"}},
            "anyOf": [{"required": ["modifier"]}, {"properties": {"a": {"const": 7}}, "required": ["a"]}],
            "additionalProperties": False,
        },
        ['{"modifier":null}', '{"a":1,"modifier":null}', '{"a":7}'],
        ["{}", '{"a":1}', "1", '{"b":1,"modifier":null}', '{"a":"x","modifier":null}'],
    )


def test_any_of_without_a_type() -> None:
    document = {"anyOf": [{"minLength": 2}, {"maximum": 5}]}
    check_language(document, ['""', '"ab"', "9", "5", "null"], [])
    check_language({"allOf": [document], "anyOf": [{"const": 9}, {"const": "a"}]}, ["9", '"a"'], ["8", '"ab"'])


def test_branches_without_a_value_disappear() -> None:
    never: list[Any] = [False, {"enum": []}, {"type": "integer", "minimum": 2, "maximum": 1}, {"allOf": [False]}]
    check_language({"anyOf": [*never, {"type": "null"}]}, ["null"], ["1", "{}"])
    check_language({"oneOf": [*never, {"type": "null"}, *never]}, ["null"], ["1", "{}"])


def test_equal_branches_are_one() -> None:
    shared = {"$defs": {"s": {"type": "string", "maxLength": 3}, "t": {"$ref": "#/$defs/s"}}}
    several = {**shared, "anyOf": [{"$ref": "#/$defs/s"}, {"type": "string", "maxLength": 3}, {"$ref": "#/$defs/t"}]}
    assert SchemaLanguage(several).grammar == SchemaLanguage({**shared, "$ref": "#/$defs/s"}).grammar


def test_branches_that_only_add_demands_to_another_add_nothing() -> None:
    plain = {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}}
    for branches in ([{"required": ["a"]}, True], [{"required": ["a"]}, {}, {"required": ["b"]}]):
        assert SchemaLanguage({**plain, "anyOf": branches}).grammar == SchemaLanguage(plain).grammar


def test_beside_a_branch_that_always_holds_no_other_is_looked_at() -> None:
    beyond = {"type": "integer", "minimum": 1e300}
    with pytest.raises(UnsupportedJsonSchema):
        parse_json_schema(json.dumps({"anyOf": [beyond, {"type": "null"}]}))
    for branches in ([beyond, {}], [True, beyond], [{"$ref": "#/$defs/any"}, beyond]):
        document = {"anyOf": branches, "$defs": {"any": {}}}
        assert SchemaLanguage(document).grammar == SchemaLanguage({}).grammar


def test_values_of_several_branches_become_one_list() -> None:
    split = {"anyOf": [{"const": "a"}, {"enum": ["b", 1]}, {"const": "a"}]}
    assert SchemaLanguage(split).grammar == SchemaLanguage({"enum": ["a", "b", 1]}).grammar


def test_listed_strings_beside_all_strings_add_nothing() -> None:
    suggested = {"anyOf": [{"enum": ["red", "green"]}, {"type": "string", "minLength": 3}]}
    assert SchemaLanguage(suggested).grammar == SchemaLanguage({"type": "string", "minLength": 3}).grammar
    suggested["anyOf"][0]["enum"] = ["x", "green"]
    check_language(suggested, ['"x"', '"green"', '"abc"'], ['"y"'])


@pytest.mark.parametrize(
    ("branches", "inside", "outside"),
    [
        ([{"type": "string"}, {"type": ["integer", "null"]}], ['"a"', "1", "null"], ["1.5", "[]"]),
        ([{"enum": [1, "a"]}, {"enum": [2, True]}], ["1", '"a"', "2", "true"], ["3", "false"]),
        ([{"const": "a"}, {"type": "string", "minLength": 2}], ['"a"', '"bb"'], ['"b"', '""']),
        ([{"type": "integer", "maximum": 1}, {"type": "number", "exclusiveMinimum": 1}], ["1", "1.5"], ["0.5"]),
        ([{"type": "string", "maxLength": 1}, {"type": "string", "minLength": 3}], ['"a"', '"abc"'], ['"ab"']),
        ([{"type": "array", "maxItems": 1}, {"type": "array", "minItems": 3}], ["[1]", "[1,2,3]"], ["[1,2]"]),
        (
            [{"type": "array", "minItems": 1, "items": {"type": t}} for t in ("null", "string")],
            ["[null]", '["a"]'],
            ["[]", '["a",null]', "[1]"],
        ),
    ],
)
def test_one_of_exclusive_branches_is_their_union(branches: Any, inside: list[str], outside: list[str]) -> None:
    check_language({"oneOf": branches}, inside, outside)


def discriminated(name: str, value: Any, **others: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: value, **others}, "required": [name]}


@pytest.mark.parametrize(
    "branches",
    [
        [discriminated("k", {"const": "a"}, x={"type": "null"}), discriminated("k", {"enum": ["b", "c"]})],
        # Through a reference and an allOf, and beside branches of other types.
        [
            {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"k": {"enum": ["a", "b"]}}}]},
            {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"k": {"const": "c"}}}]},
            {"type": "null"},
        ],
        # By the type of the member, and one level deeper.
        [discriminated("k", {"type": "string"}), discriminated("k", {"type": "null"})],
        [
            discriminated("in", discriminated("k", {"enum": ["a", "b"]})),
            discriminated("in", discriminated("k", {"const": "c"})),
        ],
        # Two discriminators, one for each pair.
        [
            {"type": "object", "properties": {"k": {"const": "a"}, "l": {"const": 1}}, "required": ["k", "l"]},
            {"type": "object", "properties": {"k": {"const": "b"}, "l": {"const": 1}}, "required": ["k", "l"]},
            {"type": "object", "properties": {"l": {"const": 2}}, "required": ["l"]},
        ],
        # By closed sets of names.
        [
            {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False},
            {"type": "object", "properties": {"b": {}}, "required": ["b"], "additionalProperties": False},
        ],
    ],
)
def test_objects_told_apart(branches: list[Any]) -> None:
    definitions = {"base": {"type": "object", "required": ["k"]}}
    union = SchemaLanguage({"anyOf": branches, "$defs": definitions})
    assert SchemaLanguage({"oneOf": branches, "$defs": definitions}).grammar == union.grammar


def test_common_assertions_can_make_branches_exclusive() -> None:
    branches = [{"properties": {"k": {"const": kind}}} for kind in ("a", "b")]
    with pytest.raises(UnsupportedJsonSchema) as raised:
        parse_json_schema(json.dumps({"type": "object", "oneOf": branches}))
    assert raised.value.pointer == "/oneOf"
    check_language(
        {"type": "object", "required": ["k"], "oneOf": branches}, ['{"k":"a"}', '{"k":"b"}'], ["{}", '{"k":"c"}']
    )


@pytest.mark.parametrize(
    "branches",
    [
        [{"type": "integer"}, {"type": "number"}],
        [{"type": "integer", "maximum": 1}, {"type": "number", "minimum": 1}],
        [{"const": 1}, {"type": "integer"}],
        [{"const": 1}, {"enum": [1.0, 2]}],
        [{"type": "string"}, {"type": "null"}, {"minLength": 2}],
        [True, {"type": "null"}],
        [{}, {}],
        [discriminated("k", {"enum": ["a", "b"]}), discriminated("k", {"enum": ["b", "c"]})],
        [discriminated("a", {}), discriminated("b", {})],
        [{"type": "array", "items": {"type": t}} for t in ("null", "string")],
    ],
)
@pytest.mark.parametrize("place", ["", "/properties/p", "/items", "/anyOf/1"])
def test_one_of_overlapping_branches_is_refused(branches: list[Any], place: str) -> None:
    inner = {"oneOf": branches}
    document = {
        "": inner,
        "/properties/p": {"properties": {"p": inner}},
        "/items": {"items": inner},
        "/anyOf/1": {"anyOf": [False, inner]},
    }[place]
    with pytest.raises(UnsupportedJsonSchema, match="not proved to exclude") as raised:
        parse_json_schema(json.dumps(document))
    assert raised.value.pointer == f"{place}/oneOf"


def test_one_of_on_finite_values_is_decided_value_by_value() -> None:
    overlapping = {"oneOf": [{"type": "integer"}, {"minimum": 2}, {"maxLength": 1}]}
    # Strings satisfy `minimum`, numbers `maxLength`.
    check_language({"enum": [1, 1.5, 2, "a", "ab", None], **overlapping}, ["1.5", '"ab"'], ["1", "2", '"a"', "null"])


def test_one_of_inside_one_of() -> None:
    def level(depth: int) -> dict[str, Any]:
        following = {"next": {"$ref": f"#/$defs/l{depth - 1}"}} if depth else {}
        return {"oneOf": [discriminated("k", {"const": kind}, **following) for kind in ("a", "b")]}

    document = {"$defs": {f"l{depth}": level(depth) for depth in range(12)}, "$ref": "#/$defs/l11"}
    check_language(
        document,
        ['{"k":"a","next":{"k":"b","next":{"k":"b"}}}'],
        ['{"k":"c"}', '{"k":"a","next":{}}', '{"k":"a","next":{"k":"a","next":1}}'],
    )
    assert len(SchemaLanguage(document).grammar.rules) < 200


def test_siblings_of_a_reference_hold() -> None:
    definitions = {"$defs": {"s": {"type": "string", "maxLength": 3}, "o": OPEN}}
    check_language({**definitions, "$ref": "#/$defs/s", "minLength": 2}, ['"ab"', '"abc"'], ['"a"', '"abcd"', "1"])
    document = {**definitions, "$ref": "#/$defs/o", "type": "object", "required": ["a"], "properties": {"b": False}}
    check_language(document, ['{"a":1}'], ["{}", '{"a":"x"}', '{"b":1,"a":1}'])


SELF = {"$ref": "#/$defs/A"}


@pytest.mark.parametrize(
    ("definition", "inside", "outside"),
    [
        ({"allOf": [SELF, {"type": "string"}]}, ['"a"'], ["1", "null"]),
        ({"allOf": [{"allOf": [SELF]}, {"minLength": 2}], "type": "string"}, ['"ab"'], ['"a"', "1"]),
        ({"$ref": "#/$defs/A", "type": "string"}, ['"a"'], ["1", "null"]),
        ({"anyOf": [SELF, {"type": "string"}]}, ['"a"'], ["1", "null"]),
        ({"anyOf": [{"allOf": [SELF, {"minLength": 1}]}, {"type": "string"}]}, ['"a"', '""'], ["1", "null"]),
        ({"allOf": [{"anyOf": [SELF, {"minLength": 2}]}, {"type": "string"}]}, ['"ab"'], ['"a"', "1"]),
        ({"anyOf": [{"anyOf": [SELF, {"const": 1}]}, {"const": 2}]}, ["1", "2"], ["3"]),
        ({"anyOf": [SELF, {"const": 1}], "enum": [1, 2]}, ["1"], ["2"]),
        ({"allOf": [SELF, {"type": ["object", "null"]}], "properties": {"n": SELF}}, ["null", '{"n":{}}'], ['{"n":1}']),
        (
            {"anyOf": [{"type": "null"}, {"type": "array", "items": SELF}, SELF]},
            ["null", "[[null],[]]"],
            ["1", "[1]", "[[1]]"],
        ),
    ],
)
def test_recursion_through_compositions(definition: Any, inside: list[str], outside: list[str]) -> None:
    check_language({"$defs": {"A": definition}, **SELF}, inside, outside)
    check_language({"$defs": {"A": definition}, "allOf": [SELF, SELF]}, inside, outside)


def test_mutual_recursion_through_choices_has_the_least_solution() -> None:
    definitions = {
        "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"const": 1}]},
        "B": {"anyOf": [{"$ref": "#/$defs/A"}, {"const": 2}]},
    }
    for name in definitions:
        check_language({"$defs": definitions, "$ref": f"#/$defs/{name}"}, ["1", "2"], ["3", "null"])
    both = [{"$ref": f"#/$defs/{name}"} for name in definitions]
    check_language({"$defs": definitions, "allOf": both}, ["1", "2"], ["3", "null"])


def test_a_one_of_that_leads_back_to_itself_has_no_meaning() -> None:
    for extra in ({}, {"enum": [1, "a"]}):
        document = {"$defs": {"A": {"oneOf": [SELF, {"type": "string"}], **extra}}, **SELF}
        with pytest.raises(UnsupportedJsonSchema, match="leads back") as raised:
            parse_json_schema(json.dumps(document))
        assert raised.value.pointer == "/$defs/A/oneOf"


def test_intersections_of_recursive_schemas() -> None:
    def listing(item: Any) -> dict[str, Any]:
        return {"type": "array", "items": {"anyOf": [item, {"$ref": "#"}]}}

    tree = {"type": ["array", "integer"], "items": {"$ref": "#/$defs/tree"}}
    pair = {"maxItems": 2, "items": {"$ref": "#/$defs/pair"}}
    check_language(
        {"$defs": {"tree": tree, "pair": pair}, "allOf": [{"$ref": "#/$defs/tree"}, {"$ref": "#/$defs/pair"}]},
        ["1", "[]", "[1,[2,[]]]"],
        ["[1,2,3]", "[[1,2,3]]", '["a"]', '[["a"]]'],
    )
    check_language(listing({"type": "null"}), ["[]", "[null,[null]]"], ["null", "[1]"])


def test_finite_values_are_filtered_by_compositions() -> None:
    values: list[Any] = [0, 1, 2, 3, "a", "bb", None, {"k": 1}, {"k": 2}, [1], [1, 2]]
    check_language(
        {
            "enum": values,
            "allOf": [{"minimum": 1}, {"maxLength": 1}],
            "anyOf": [{"type": ["string", "null"]}, {"maximum": 2, "properties": {"k": {"const": 2}}, "maxItems": 1}],
        },
        ["1", "2", '"a"', "null", '{"k":2}', "[1]"],
        ["0", "3", '"bb"', '{"k":1}', "[1,2]"],
    )


def test_several_finite_lists_are_intersected() -> None:
    document = {"enum": [3, 1, 2.0, "x", True], "allOf": [{"enum": [2, 3, True, 9]}, {"enum": [1.0, 2, 3]}]}
    check_language(document, ["3", "2"], ["1", "true", '"x"', "9", "2.0"])
    with pytest.raises(UnsatisfiableJsonSchema) as raised:
        parse_json_schema(json.dumps({"allOf": [{"const": 1}, {"const": True}]}))
    assert raised.value.pointer == "/allOf/0/const"
