"""Networks against the plain construction: the same states, steps and labels, seen from every rule's start."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from random import Random

import numpy as np
import pytest

import infernix.matching.determinize
import infernix.matching.flattening
import infernix.matching.network
import infernix.matching.rule_nfa
from infernix.errors import ConstraintTooLarge, EmptyLanguage
from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.grammar.choice import build_choice
from infernix.grammar.gbnf import parse_gbnf
from infernix.grammar.regex import parse_regex
from infernix.grammar.unicode import character_class
from infernix.matching import arena
from infernix.matching.analysis import analyze
from infernix.matching.flattening import flatten
from infernix.matching.network import Network, build_network
from infernix.matching.rule_nfa import build_nfa
from infernix.options import OutputConstraint
from support import plain_analysis
from support.plain_network import StateGraph, plain_states
from support.random_grammars import FAMILIES, fixed_grammars, random_grammar
from support.shared_data import shared_data

CASES_PER_FAMILY = 60
MAX_PAIRS = 3000

# A letter is a byte, or what a label means: it must not depend on how rules, loops and token sets are numbered.
Letter = Hashable
Steps = dict[Letter, frozenset[int]]


class NetworkStates:
    """The steps of a network's states, read from its tables."""

    def __init__(self, grammar: ir.Grammar) -> None:
        self.network: Network = build_network(grammar)
        tables = self.network.tables
        flat = flatten(grammar)
        blocks = build_nfa(flat, analyze(flat)).block_of_rule
        self._expressions = [id(flat.blocks[block]) for block in blocks]
        self.class_of = tables[arena.CLASS_OF].tolist()
        self.delta = tables[arena.DELTA].reshape(self.network.num_states, self.network.num_classes).tolist()
        self.targets = tables[arena.TARGETS].tolist()
        self.flags = tables[arena.FLAGS].tolist()
        rules = tables[arena.RULES].reshape(-1, 2).tolist()
        self.starts = {self._expressions[rule]: start for rule, (start, _) in enumerate(rules)}
        self.nullable = {self._expressions[rule]: bool(nullable) for rule, (_, nullable) in enumerate(rules)}
        self.root = self._expressions[self.network.root_rule]

    def is_final(self, state: int) -> bool:
        """Whether the state's rule may end here."""
        return bool(self.flags[state] & arena.FINAL)

    def steps(self, state: int) -> Steps:
        """Targets by letter; checks what the tables promise about the state on the way."""
        steps: dict[Letter, set[int]] = {}
        for byte in range(256):
            target = self.delta[state][self.class_of[byte]]
            if target >= 0:
                steps[byte] = {target}
            elif target != arena.NO_TARGET:
                length = self.targets[-2 - target]
                steps[byte] = set(self.targets[-1 - target : -1 - target + length])
                assert len(steps[byte]) == length > 1
        tables = self.network.tables
        num_tokens = 0
        for row in range(*tables[arena.TOKEN_BEGIN][state : state + 2]):
            token_set, target = tables[arena.TOKEN_EDGES][2 * row : 2 * row + 2].tolist()
            steps.setdefault(self.network.token_sets[token_set], set()).add(target)
            num_tokens += 1
        assert bool(self.flags[state] & arena.KEPT) == bool(num_tokens or any(isinstance(key, int) for key in steps))
        for row in range(*tables[arena.CALL_BEGIN][state : state + 2]):
            rule, target, loop = tables[arena.CALLS][3 * row : 3 * row + 3].tolist()
            letter: Letter = ("call", self._expressions[rule])
            if loop != arena.NO_LOOP:
                minimum, maximum, body, return_state = tables[arena.LOOPS][4 * loop : 4 * loop + 4].tolist()
                assert (body, return_state) == (rule, target)
                letter = ("loop", self._expressions[rule], minimum, maximum)
            steps.setdefault(letter, set()).add(target)
        return {letter: frozenset(targets) for letter, targets in steps.items()}


class PlainStates:
    """The steps of the plain construction's states."""

    def __init__(self, grammar: ir.Grammar) -> None:
        graph, builder = plain_states(grammar)
        self.graph: StateGraph = graph
        self._builder = builder
        self._expressions = {rule: key for key, rule in builder.rule_of_expression.items()}
        self.starts = {self._expressions[rule]: start for rule, start in enumerate(graph.rule_starts)}
        self.nullable = {self._expressions[rule]: value for rule, value in enumerate(builder.nullable_rules)}
        self.root = self._expressions[builder.root_rule]

    def is_final(self, state: int) -> bool:
        """Whether the state's rule may end here."""
        return self.graph.states[state].is_final

    def steps(self, state: int) -> Steps:
        """Targets by letter."""
        plain = self.graph.states[state]
        begins = [*self.graph.class_begins, 256]
        steps: dict[Letter, frozenset[int]] = {}
        for low, high, targets in plain.steps:
            for byte in range(begins[low], begins[high + 1]):
                steps[byte] = frozenset(targets)
        for rule, targets in plain.calls:
            steps["call", self._expressions[rule]] = frozenset(targets)
        for number, targets in plain.loops:
            loop = self._builder.loops[number]
            maximum = arena.UNBOUNDED if loop.maximum is None else loop.maximum
            steps["loop", self._expressions[loop.rule], loop.minimum, maximum] = frozenset(targets)
        for number, targets in plain.tokens:
            steps[self._builder.token_sets[number]] = frozenset(targets)
        return steps


def joint_steps(states: NetworkStates | PlainStates, places: frozenset[int]) -> Steps:
    """Targets by letter of several states at once."""
    joint: dict[Letter, frozenset[int]] = {}
    for state in places:
        for letter, targets in states.steps(state).items():
            joint[letter] = joint.get(letter, frozenset()) | targets
    return joint


def check(grammar: ir.Grammar) -> tuple[NetworkStates, bool]:
    """Both constructions agree from the start of every rule; returns the network and whether it is deterministic.

    Deterministic ones must be equal but for the numbering of states, so that the network is minimal. With others, sets
    of states are compared, up to MAX_PAIRS of them.
    """
    network = NetworkStates(grammar)
    plain = PlainStates(grammar)
    assert network.root == plain.root
    assert network.nullable == plain.nullable
    assert network.starts.keys() == plain.starts.keys()
    pairs = [(frozenset({network.starts[rule]}), frozenset({plain.starts[rule]})) for rule in network.starts]
    seen = set(pairs)
    for ours, theirs in pairs:
        assert any(map(network.is_final, ours)) == any(map(plain.is_final, theirs))
        our_steps, their_steps = joint_steps(network, ours), joint_steps(plain, theirs)
        assert our_steps.keys() == their_steps.keys()
        for letter, targets in our_steps.items():
            pair = (targets, their_steps[letter])
            if pair not in seen and len(seen) < MAX_PAIRS:
                seen.add(pair)
                pairs.append(pair)
    is_deterministic = all(len(ours) == 1 for ours, _ in pairs)
    assert is_deterministic == all(len(theirs) == 1 for _, theirs in pairs)
    assert is_deterministic == (not network.targets)
    if is_deterministic and len(pairs) < MAX_PAIRS:
        our_states = [state for ours, _ in pairs for state in ours]
        assert len(set(our_states)) == len(our_states) == len({theirs for _, theirs in pairs})
        assert set(range(2, network.network.num_states)) <= set(our_states)
    columns = [tuple(column) for column in np.array(network.delta).T.tolist()]
    assert len(set(columns)) == len(columns)
    for state in our_final_only(network):
        assert state == arena.FINAL_STATE
    return network, is_deterministic


def our_final_only(network: NetworkStates) -> list[int]:
    """States that are final and nothing else."""
    return [state for state, flags in enumerate(network.flags) if flags == arena.FINAL and not network.steps(state)]


@pytest.mark.parametrize("family", FAMILIES)
def test_random_grammars(family: str) -> None:
    num_built = 0
    for seed in range(CASES_PER_FAMILY):
        grammar = random_grammar(Random(f"{family} {seed}"), family, (3, 4, 5) if seed % 2 else (), (1,))
        try:
            check(grammar)
        except EmptyLanguage:
            assert id(grammar.rules[grammar.root].body) not in plain_analysis.analyze(grammar).productive
            continue
        num_built += 1
    assert num_built > CASES_PER_FAMILY // 2


@pytest.mark.parametrize("name", fixed_grammars())
def test_fixed_grammars(name: str) -> None:
    _, is_deterministic = check(fixed_grammars()[name])
    assert is_deterministic


def exploding(length: int) -> ir.Expression:
    """Its states, made deterministic, are more than two to the `length`."""
    a, b = ir.text("a"), ir.text("b")
    either = ir.choice(a, b)
    return ir.sequence(ir.Repeat(either, 0, None), a, ir.Repeat(either, length, length))


def exploding_rules() -> ir.Grammar:
    """Two rules that stay nondeterministic, among rules that do not; with labels of all kinds in one of them."""
    builder = ir.GrammarBuilder()
    root = builder.declare("root")
    plain = builder.add("plain", ir.sequence(ir.text("x"), ir.Repeat(ir.text("y"), 0, 400), ir.optional(root)))
    first = builder.add("first", ir.sequence(exploding(14), ir.optional(plain)))
    marks = ir.choice(ir.TokenSet((3,)), ir.Repeat(ir.text("cc"), 2, 300), ir.text("d"))
    second = builder.add("second", ir.sequence(exploding(13), marks, ir.Repeat(plain, 0, None)))
    digits = builder.add("digits", ir.Repeat(character_class([(0x30, 0x39), (0x660, 0x669)]), 1, None))
    builder.define(root, ir.choice(ir.sequence(first, digits), ir.sequence(plain, second), digits))
    return builder.build(root)


def test_rules_with_too_many_subsets_stay_nondeterministic() -> None:
    network, is_deterministic = check(exploding_rules())
    assert not is_deterministic
    assert network.network.num_states < 1000


def test_many_rules_stay_nondeterministic() -> None:
    builder = ir.GrammarBuilder()
    rules = [builder.add("rule", ir.sequence(exploding(12), ir.text(letter))) for letter in "cde"]
    _, is_deterministic = check(builder.build(builder.add("root", ir.choice(*rules))))
    assert not is_deterministic


def test_schemas() -> None:
    text = """{"type": "object",
        "properties": {"name": {"type": "string", "maxLength": 300}, "age": {"type": "integer"},
        "kind": {"enum": ["red", "green", "blue", "grün"]}, "tags": {"type": "array", "items": {"type": "number"}}},
        "required": ["name", "kind"], "additionalProperties": {"type": "boolean"}}"""
    for constraint in (OutputConstraint.json_schema(text), OutputConstraint.json_object()):
        _, is_deterministic = check(build_grammar(constraint))
        assert is_deterministic


@pytest.mark.parametrize(
    "pattern",
    [
        r"https?://(www\.)?[-a-zA-Z0-9@:%._+~#=]{1,256}\.[a-z]{1,6}(/[^\s]*)?",
        r"[\w]+[^\d\s]{0,20}",
        r"(a?b?c?){3,9}|ab*",
    ],
)
def test_patterns(pattern: str) -> None:
    check(parse_regex(pattern))


@pytest.mark.parametrize("name", ["arithmetic", "c", "chess", "english", "japanese", "json", "vllm-sql"])
def test_real_grammars(name: str) -> None:
    check(parse_gbnf(shared_data(f"gbnf/{name}.gbnf").read_text("utf-8")))


def test_choices_share_their_endings() -> None:
    network, _ = check(build_choice(["walking", "talking", "walk", "talk", ""]))
    # accept, final, the start, one state after w or t, a, l; before and after the optional ing.
    assert network.network.num_states == 2 + 1 + 3 + 3
    assert len(build_choice(["walking", "talking", "walk", "talk", ""]).rules) == 1


def test_dead_ends_of_an_automaton_are_cut() -> None:
    edges = ((0, 97, 99, 1), (1, 97, 97, 2), (1, 98, 98, 3), (2, 97, 97, 2), (4, 97, 97, 3), (0, 100, 255, 2))
    network, _ = check(ir.Grammar.of(ir.Automaton(5, edges, frozenset({3}))))
    assert network.network.num_states == 4
    assert network.network.num_classes == 3


def test_nothing_at_all() -> None:
    with pytest.raises(EmptyLanguage):
        build_network(ir.Grammar.of(ir.NOTHING))


def long_chain_of_rules(length: int) -> ir.Grammar:
    builder = ir.GrammarBuilder()
    rule = builder.add("last", ir.text("a"))
    for _ in range(length):
        rule = builder.add("next", ir.sequence(rule, ir.EMPTY))
    return builder.build(rule)


def test_a_long_chain_of_copied_rules() -> None:
    assert check(long_chain_of_rules(3000))[0].network.num_states == 3


@pytest.mark.parametrize(
    ("module", "bound", "value", "make"),
    [
        (infernix.matching.network, "MAX_STATES", 50, lambda: ir.Grammar.of(ir.text("a" * 60))),
        (infernix.matching.network, "MAX_STEP_TABLE_ENTRIES", 50, lambda: ir.Grammar.of(ir.text("ab" * 20))),
        (
            infernix.matching.rule_nfa,
            "MAX_NFA_EDGES",
            500,
            lambda: ir.Grammar.of(ir.Sequence((ir.Repeat(ir.ByteRange(1, 3), 0, 100),) * 6)),
        ),
        # Without empty edges, each of n optional parts leads to all that follow.
        (
            infernix.matching.determinize,
            "MAX_ROWS",
            1 << 10,
            lambda: ir.Grammar.of(ir.Sequence(tuple(ir.optional(ir.text(chr(0x4E00 + n))) for n in range(100)))),
        ),
    ],
)
def test_bounds(
    module: object, bound: str, value: int, make: Callable[[], ir.Grammar], monkeypatch: pytest.MonkeyPatch
) -> None:
    build_network(make())
    monkeypatch.setattr(module, bound, value)
    with pytest.raises(ConstraintTooLarge, match=r"\d"):
        build_network(make())


@pytest.mark.parametrize("leaf", [ir.text("a"), ir.EMPTY])
def test_shared_expressions_do_not_explode(leaf: ir.Expression, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(infernix.matching.flattening, "MAX_NODES", 1 << 12)
    expression = leaf
    for _ in range(60):
        expression = ir.sequence(expression, expression)
    with pytest.raises(ConstraintTooLarge, match="expressions"):
        build_network(ir.Grammar.of(expression))
