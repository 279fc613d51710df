"""Objects: order, optional and required members, other members, sizes."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from infernix.errors import ConstraintTooLarge
from infernix.grammar import ir
from infernix.grammar.json_values import JsonRules
from infernix.grammar.schema import MAX_NAME_STATES, parse_json_schema
from infernix.grammar.schema.members import Member
from infernix.grammar.schema.names import names_except
from infernix.grammar.schema.objects import lower_object
from infernix.matching.network import build_network
from support.recognizer import Recognizer
from support.schema_language import SchemaLanguage, check_language

STRING = {"type": "string"}


def closed(*names: str, required: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "required": list(required),
        "additionalProperties": False,
    }


def test_a_closed_object_without_properties_is_exactly_empty() -> None:
    document = {"type": "object", "properties": {}, "additionalProperties": False}
    check_language(document, ["{}", "{ }", "{\n\t}"], ['{"a":1}', "[]", "{", "", "{}}", "{" + " " * 33 + "}"])


def test_an_object_without_keywords_is_any_object() -> None:
    for document in (
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "additionalProperties": True},
    ):
        check_language(document, ["{}", '{"a":1,"\\u0062":[{}]}'], ["[]", "1"])


@pytest.mark.parametrize("required", [names for size in range(5) for names in itertools.combinations("abcd", size)])
def test_members_come_in_declared_order_and_optional_ones_may_be_missing(required: tuple[str, ...]) -> None:
    language = SchemaLanguage(closed("a", "b", "c", "d", required=required))
    for count in range(5):
        for names in itertools.permutations("abcd", count):
            text = "{" + ",".join(f'"{name}":1' for name in names) + "}"
            expected = list(names) == sorted(set(names)) and set(required) <= set(names)
            assert (text in language) == expected, text
    for names in ("aa", "abb", "bcdb", "abcdd", "abcda"):
        assert "{" + ",".join(f'"{name}":1' for name in names) + "}" not in language


def test_commas_stand_between_members_only() -> None:
    outside = ['{,"a":1}', '{"a":1,}', '{"a":1,,"b":1}', '{"a":1 "b":1}', '{"a":1,"b":1,}', "{,}"]
    check_language(closed("a", "b"), ['{"a":1,"b":1}', '{"b":1}', '{ "a" : 1 , "b" : 1 }'], outside)


@pytest.mark.parametrize("extra", [0, 1])
def test_each_slot_holds_one_run_of_whitespace(extra: int) -> None:
    document = {**closed("a", "b"), "additionalProperties": {"type": "integer"}}
    language = SchemaLanguage(document)
    space = " " * (32 + extra)
    tokens = ["{", '"a"', ":", "1", ",", '"b"', ":", "1", ",", '"x"', ":", "1", "}"]
    for slot in range(1, len(tokens)):
        text = "".join(tokens[:slot]) + space + "".join(tokens[slot:])
        assert (text in language) == (extra == 0), text


def test_required_but_undeclared_names_follow_in_their_order() -> None:
    document = {
        "type": "object",
        "properties": {"a": {}},
        "required": ["z", "y"],
        "additionalProperties": {"type": "integer"},
    }
    check_language(
        document,
        ['{"z":1,"y":2}', '{"a":null,"z":1,"y":2}', '{"z":1,"y":2,"x":3}'],
        [
            "{}",
            '{"z":1}',
            '{"y":2,"z":1}',
            '{"z":null,"y":2}',
            '{"z":1,"y":2,"z":3}',
            '{"x":1,"z":1,"y":2}',
            '{"z":1,"y":2,"a":3}',
        ],
    )


def test_a_bare_required_keyword_is_enforced() -> None:
    check_language({"type": "object", "required": ["a"]}, ['{"a":1}', '{"a":1,"b":2}'], ["{}", '{"b":1}'])


def test_a_declared_name_never_counts_as_another_one() -> None:
    document = {"properties": {"a": {"const": "foo"}, "b": {"const": "bar"}}, "required": ["b"]}
    check_language(
        document,
        ['{"b":"bar"}', '{"a":"foo","b":"bar"}', '{"b":"bar","c":1}', '{"b":"bar","aa":1,"":2,"ab":3}', "[]", "1"],
        [
            '{"b":"bar","a":"BAD"}',
            '{"b":"bar","a":"foo"}',
            '{"b":"bar","\\u0061":"BAD"}',
            '{"b":"bar","b":"bar"}',
            '{"a":1,"b":"bar"}',
        ],
    )


def test_typed_additional_members() -> None:
    document = {"type": "object", "properties": {"id": STRING}, "additionalProperties": {"type": "integer"}}
    check_language(
        document,
        ["{}", '{"id":"x"}', '{"id":"x","n":1,"m":2}', '{"n":1}', '{"i":1}', '{"idx":1}', '{"":1}'],
        ['{"n":"x"}', '{"n":1,"id":"x"}', '{"n":1,"id":1}', '{"id":1}', '{"n":1,}'],
    )


def test_a_property_that_no_value_satisfies_never_occurs() -> None:
    document = {"type": "object", "properties": {"a": False, "b": {"type": "null"}, "c": {"enum": []}}}
    check_language(
        document, ["{}", '{"b":null}', '{"b":null,"d":1}', '{"d":1}'], ['{"a":1}', '{"c":1}', '{"b":null,"a":1}']
    )
    only_impossible = {"type": "object", "properties": {"a": False}, "additionalProperties": False}
    check_language(only_impossible, ["{}"], ['{"a":1}', '{"b":1}'])


def test_additional_members_that_no_value_satisfies_never_occur() -> None:
    document = {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string", "enum": [1]}}
    check_language(document, ["{}", '{"a":1}'], ['{"b":1}', '{"a":1,"b":""}'])


def test_names_in_any_script_stay_apart() -> None:
    document = {
        "type": "object",
        "properties": {"城市": STRING, "日期": STRING, "a b": STRING, "a-b": STRING},
        "required": ["城市", "日期"],
        "additionalProperties": False,
    }
    check_language(
        document,
        ['{"城市":"x","日期":"y"}', '{"城市":"x","日期":"y","a b":"1","a-b":"2"}'],
        ['{"城市":"x","城市":"y"}', '{"城市":"x"}', '{"日期":"y"}', '{"城市":"x","日期":"y","a-b":"1","a b":"2"}'],
    )


def test_names_that_need_escapes() -> None:
    names = ['"', "\\", "\n", "\x00", "\x1f", "\x7f", "/", "", "\u2028", "😀", "{}", "__proto__"]
    language = SchemaLanguage(
        {"type": "object", "properties": {name: {} for name in names}, "additionalProperties": False}
    )
    assert json.dumps(dict.fromkeys(names, 1), ensure_ascii=False) in language
    for name in names:
        assert json.dumps({name: 1}, ensure_ascii=False) in language
    assert '{"\\u0022":1}' not in language


NAMES = ["a", "ab", "abc", "b", "", "é", "è", "😀", "\n", "\x0b", '"', "\\", "name"]
OTHERS = [
    "ac",
    "abcd",
    "c",
    "ê",
    "ë",
    "Ã",
    "😁",
    "\r",
    "\x0c",
    "\x0e",
    "/",
    "n",
    "nam",
    "names",
    "\\\\",
    "\x00",
    "\uffff",
]


@pytest.mark.parametrize("num_declared", [0, 1, 3, len(NAMES)])
def test_other_names(num_declared: int) -> None:
    declared, others = NAMES[:num_declared], NAMES[num_declared:] + OTHERS
    automaton = Recognizer(ir.Grammar.of(names_except(declared)))
    for name in declared:
        assert not automaton.matches(json.dumps(name, ensure_ascii=False)[1:].encode()), name
        assert automaton.is_prefix(json.dumps(name, ensure_ascii=False)[1:-1].encode()), name
    for name in others:
        assert automaton.matches(json.dumps(name, ensure_ascii=False)[1:].encode()), name
    for text in ['\\u0061"', '\\/"', '\\u001F"', "\xe9", '\ud800"', "a", '"ac"', 'a"b', '\n"', '"""']:
        assert not automaton.matches(text.encode("utf-8", "surrogatepass")), text


def test_the_automaton_of_other_names_is_deterministic_and_small() -> None:
    automaton = names_except(["name", "nameless", "日期", "日本"])
    taken: set[tuple[int, int]] = set()
    for source, low, high, _ in automaton.edges:
        assert low <= high
        assert not taken & {(source, byte) for byte in range(low, high + 1)}
        taken |= {(source, byte) for byte in range(low, high + 1)}
    assert automaton.num_states < 50


def parts_of(expression: ir.Expression) -> tuple[ir.Expression, ...]:
    match expression:
        case ir.Sequence(parts) | ir.Choice(parts):
            return parts
        case ir.Repeat(body):
            return (body,)
    return ()


def nodes_of(expression: ir.Expression) -> list[ir.Expression]:
    return [expression, *(node for part in parts_of(expression) for node in nodes_of(part))]


def depth(expression: ir.Expression) -> int:
    return 1 + max(map(depth, parts_of(expression)), default=0)


def num_expressions(expression: ir.Expression) -> int:
    return sum(len(node.edges) if isinstance(node, ir.Automaton) else 1 for node in nodes_of(expression))


def grammar_size(document: Any) -> int:
    return sum(num_expressions(rule.body) for rule in parse_json_schema(json.dumps(document)).rules)


@pytest.mark.parametrize("num_required", [0, 1, 3, 1000])
@pytest.mark.parametrize("additional", [True, False])
def test_size_is_linear_in_the_number_of_members(num_required: int, additional: bool) -> None:
    def document(count: int) -> dict[str, Any]:
        names = [f"name{index:04}" for index in range(count)]
        stride = max(1, count // num_required) if num_required else count + 1
        document = {**closed(*names, required=tuple(names[stride - 1 :: stride])), "additionalProperties": additional}
        return document

    small, large = grammar_size(document(50)), grammar_size(document(500))
    assert large < 11 * small


def test_hundreds_of_optional_members() -> None:
    names = [f"field{index}" for index in range(200)]
    language = SchemaLanguage(closed(*names, required=("field150",)))
    assert '{"field3":1,"field150":1,"field199":2}' in language
    assert '{"field150":1}' in language
    assert '{"field3":1,"field199":2}' not in language
    assert '{"field151":1,"field150":2}' not in language


@pytest.mark.parametrize("num_required", [0, 1, 2])
@pytest.mark.parametrize("additional", [True, False])
def test_large_groups_of_optional_members(num_required: int, additional: bool) -> None:
    # Enough for blocks; names share beginnings, and some begin others up to the last character.
    names = [f"{'ab'[index % 2]}{'x' * (index % 3)}{index // 6 or ''}é" for index in range(18)]
    assert len(set(names)) == len(names)
    required = {0: (), 1: (names[-1],), 2: (names[11], names[-1])}[num_required]
    language = SchemaLanguage({**closed(*names, required=required), "additionalProperties": additional})
    for pair in itertools.product(range(18), repeat=2):
        chosen = [names[index] for index in pair]
        if pair[0] < pair[1]:
            chosen = [name for name in names if name in chosen or name in required]
        text = "{" + ",".join(f'"{name}":1' for name in chosen) + "}"
        assert (text in language) == (pair[0] < pair[1]), text
        without_required = [name for name in chosen if name not in required[-1:]]
        text = "{" + ",".join(f'"{name}":1' for name in without_required) + "}"
        assert (text in language) == (pair[0] < pair[1] and not required), text
    others = "{" + ",".join(f'"{name}":1' for name in (*required, "other", "other")) + "}"
    assert (others in language) == additional


@pytest.mark.parametrize("additional", [True, False])
@pytest.mark.parametrize("num_required", [0, 1, 40])
def test_nothing_branches_over_names_before_their_opening_quote(num_required: int, additional: bool) -> None:
    names = [f"name{index}" for index in range(40)]
    grammar = parse_json_schema(
        json.dumps({**closed(*names, required=tuple(names[:num_required])), "additionalProperties": additional})
    )
    literals = [node.data for rule in grammar.rules for node in nodes_of(rule.body) if isinstance(node, ir.Literal)]
    assert b'"' in literals
    assert any(data.startswith(b"name") for data in literals)
    assert [data for data in literals if data.startswith(b'"') and data != b'"'] == []


def test_a_run_of_required_members_is_no_deep_expression() -> None:
    names = [f"name{index}" for index in range(2000)]
    grammar = parse_json_schema(json.dumps(closed(*names, required=tuple(names))))
    assert max(depth(rule.body) for rule in grammar.rules) < 10


def test_names_beyond_the_bound_are_refused() -> None:
    document = {"type": "object", "properties": {"a" * MAX_NAME_STATES: {}}}
    with pytest.raises(ConstraintTooLarge, match="MAX_NAME_STATES = 65536"):
        parse_json_schema(json.dumps(document))
    closed_document = {**document, "additionalProperties": False}
    assert parse_json_schema(json.dumps(closed_document))


# Names that begin each other, need escapes or share bytes, so that a choice among them goes wrong if it can.
HARD_NAMES = [
    *("", "a", "aa", "aaa", "ab", "abc", "b", "ba", "é", "è", "éa", "日", "日本", "😀", "😁"),
    *('"', '""', "\\", '\\"', "\n", "\r", "\x00", "\x1f", "/", "u0061", "\\u0061", "\u2028", " ", "a ", "}"),
]


def members_hold(declared: list[tuple[str, bool, bool]], additional: bool, members: list[tuple[str, str]]) -> bool:
    """Whether these members make an object: `declared` has (name, is required, is possible) in order.

    The value of the declared member i is the digit i % 10, that of another one is `null`.
    """
    places = {name: index for index, (name, _, _) in enumerate(declared)}
    order = [places.get(name, len(declared)) for name, _ in members]
    if order != sorted(order) or any(left == right < len(declared) for left, right in itertools.pairwise(order)):
        return False
    if any(required and index not in order for index, (_, required, _) in enumerate(declared)):
        return False
    return all(
        (declared[index][2] and value == str(index % 10)) if index < len(declared) else (additional and value == "null")
        for index, (_, value) in zip(order, members, strict=True)
    )


@pytest.mark.parametrize("seed", range(4))
def test_random_objects(seed: int) -> None:
    generator = random.Random(seed)
    outcomes = {True: 0, False: 0}
    for _ in range(25):
        names = generator.sample(HARD_NAMES, generator.choice([0, 1, 2, 5, 12, 25]))
        share = generator.choice([0, 0.2, 0.8, 1])
        declared = [
            (name, required, required or generator.random() < 0.8)
            for name in names
            for required in [generator.random() < share]
        ]
        additional = generator.random() < 0.5
        builder = ir.GrammarBuilder()
        members = [
            Member(name, ir.text(str(index % 10)), required)
            for index, (name, required, possible) in enumerate(declared)
            if possible
        ]
        body = lower_object(members, names, ir.text("null") if additional else None, JsonRules(builder))
        recognizer = Recognizer(builder.build(builder.add("root", body)))
        for _ in range(20):
            instance = [
                (name, str(index % 10))
                for index, (name, required, possible) in enumerate(declared)
                if generator.random() < (0.99 if required else 0.4 if possible else 0.05)
            ]
            unknown = [name for name in HARD_NAMES if name not in names]
            if generator.random() < (0.7 if additional else 0.1):
                instance += [(name, "null") for name in generator.choices(unknown, k=generator.randint(0, 3))]
            if len(instance) > 1 and generator.random() < 0.1:
                place = generator.randrange(len(instance) - 1)
                instance[place : place + 2] = reversed(instance[place : place + 2])
            if instance and generator.random() < 0.1:
                instance.insert(generator.randint(0, len(instance)), generator.choice(instance))
            tokens = ["{"]
            for index, (name, value) in enumerate(instance):
                tokens += [",", json.dumps(name, ensure_ascii=False), ":", value][0 if index else 1 :]
            text = "".join(token + " " * generator.choice([0, 0, 1, 32]) for token in tokens) + "}"
            expected = members_hold(declared, additional, instance)
            outcomes[expected] += 1
            assert recognizer.matches(text.encode()) == expected, (declared, additional, text)
    assert min(outcomes.values()) > 40, outcomes


@pytest.mark.parametrize("num_others", [0, 1, 3])
def test_a_required_name_that_is_not_declared_is_one_more_member(num_others: int) -> None:
    builder = ir.GrammarBuilder()
    members = [Member("a", ir.text("1"), False), Member("z", ir.text("null"), True)]
    body = lower_object(members, ["a", "z"], ir.text("null"), JsonRules(builder))
    recognizer = Recognizer(builder.build(builder.add("root", body)))
    others = ',"y":null' * num_others
    for text in ('{"a":1,"z":null%s}', '{"z":null%s}'):
        assert recognizer.matches((text % others).encode())
    for text in ('{"a":1%s}', '{"z":null%s,"z":null}', '{"z":1%s}'):
        assert not recognizer.matches((text % others).encode())
    assert recognizer.matches(f'{{"y":null,"z":null{others}}}'.encode()) is False


@pytest.mark.parametrize("num_required", [0, 1, 2, 4])
@pytest.mark.parametrize("additional", [True, False])
def test_the_network_is_linear_in_the_number_of_members(num_required: int, additional: bool) -> None:
    """`num_required` of four members are required."""

    def num_states(count: int) -> int:
        builder = ir.GrammarBuilder()
        rules = JsonRules(builder)
        names = [f"name{index:04}" for index in range(count)]
        members = [Member(name, rules.integer, index % 4 < num_required) for index, name in enumerate(names)]
        body = lower_object(members, names, rules.value if additional else None, rules)
        return build_network(builder.build(builder.add("root", body))).num_states

    assert num_states(1000) < 5.5 * num_states(200)
