"""How long texts of a set can follow a state: against the definition, followed character by character."""

from __future__ import annotations

import numpy as np
import pytest

from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.grammar.unicode import character_class
from infernix.matching import arena, loops, stretches
from infernix.matching.atoms import ATOM_OF_ASCII
from infernix.matching.network import Network, build_network
from infernix.options import OutputConstraint
from support.every_character import ALL_ATOMS, EveryCharacter

FIND_LOOPS = loops._find_loops
# Sets of a state: the longest stretch that was found, and the exact one, as (atoms, characters).
Found = tuple[tuple[int, int], tuple[int, int]]


def string(**keywords: object) -> OutputConstraint:
    return OutputConstraint.json_schema({"type": "string", **keywords})


CONSTRAINTS = {
    "digits somewhere": string(pattern="[0-9]{3}", maxLength=9),
    "digits somewhere and a minimum": string(pattern="[0-9]{2}", minLength=5, maxLength=8),
    "no maximum": string(pattern="[0-9]{2}", minLength=5),
    "words": string(pattern=r"^(?:\S+\s+){0,3}\S+$", maxLength=9),
    "no white space at the ends": string(pattern=r"^\S(.*\S)?$", maxLength=7),
    "alternatives": string(pattern="(foo|[a-z]{2}[0-9])", maxLength=6),
    "part of an atom": string(pattern="^[a-y]{2,6}[0-9]?$", maxLength=6),
    "one character beyond ASCII": string(pattern="^[^é]*[0-9][^é]*$", maxLength=6),
    "one line separator": string(pattern="^[^\u2028]*x[^\u2028]*$", maxLength=6),
    "counted in a regex": OutputConstraint.regex(r"([a-z]{1,6} ){2}[a-zé]{3}!"),
    "two regexes": OutputConstraint.regex(r"[^#]{0,7}#|[^$é]{3,5}\$"),
    "sentences": OutputConstraint.regex(r"([A-Z][^.\n]{0,5}\. ?){1,3}"),
    "rules": OutputConstraint.grammar(
        'root ::= (word "," | [A-Z] root)+ word\nword ::= [a-z]{2,6} tail\ntail ::= [0-9]*'
    ),
}
NETWORKS = {name: build_network(build_grammar(constraint)) for name, constraint in CONSTRAINTS.items()}
NO_MARK = character_class([(ord("!"), ord("!"))], negated=True)
NETWORKS["a character beyond ASCII behind them"] = build_network(
    ir.Grammar.of(ir.sequence(ir.Repeat(NO_MARK, 5, 5), ir.text("é!")))
)
NETWORKS["an end inside a character"] = build_network(
    ir.Grammar.of(
        ir.choice(
            ir.sequence(ir.Repeat(NO_MARK, 5, 5), ir.text("!")),
            ir.sequence(NO_MARK, NO_MARK, ir.ByteRange(0xE4, 0xE4)),
        )
    )
)


@pytest.fixture(autouse=True)
def _always_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches these small networks, too."""
    monkeypatch.setattr(loops, "_find_loops", lambda *arguments: (FIND_LOOPS(*arguments)[0], True))


def found_in(network: Network) -> list[Found]:
    tables, _ = loops.loop_tables(network, np.arange(network.num_states, dtype=np.int32))
    sets = tables[arena.LOOP_SETS].view(np.int64).tolist()
    rows = tables[arena.STATE_LOOPS].reshape(-1, arena.STATE_LOOPS_WIDTH).tolist()
    return [
        ((sets[row[arena.STRETCH_SET]], row[arena.STRETCH_LEFT]), (sets[row[arena.EXACT_SET]], row[arena.EXACT_LEFT]))
        for row in rows
    ]


def worth(stretch: tuple[int, int]) -> int:
    return stretch[0].bit_count() * min(stretch[1], 8)


class Plain:
    """The definition, for one set of atoms: what can follow n characters, from what can follow n - 1."""

    def __init__(self, network: Network, atoms: int) -> None:
        tables = network.tables
        calls = np.diff(tables[arena.CALL_BEGIN]) != 0
        is_open_end = ((tables[arena.FLAGS] & arena.FINAL != 0) | calls).tolist()
        every_character = EveryCharacter(network)
        paths = [list(every_character.paths(state, atoms)) for state in range(network.num_states)]
        states = range(network.num_states)
        # All texts of up to so many characters can follow; and none longer, not even its first byte.
        alive, exact = set(states), {state for state in states if all(path == [-1] for path in paths[state])}
        self.left = [0] * network.num_states
        self.exact_left: list[int | None] = [0 if state in exact else None for state in states]
        for length in range(1, network.num_states + 2):
            alive = {state for state in states if all(path[-1] in alive for path in paths[state])}
            exact = {
                state
                for state in states
                if all(path[-1] in exact and not any(is_open_end[other] for other in path) for path in paths[state])
            }
            for state in alive:
                self.left[state] = length
            for state in exact & alive:
                self.exact_left[state] = length
        for state in alive:
            self.left[state], self.exact_left[state] = arena.NO_LIMIT, None


@pytest.mark.parametrize("name", NETWORKS)
def test_stretches_have_the_length_of_the_definition(name: str) -> None:
    network = NETWORKS[name]
    found = found_in(network)
    for atoms in {atoms for both in found for atoms, _ in both if atoms}:
        assert atoms & ~ALL_ATOMS == 0
        plain = Plain(network, atoms)
        for state, (stretch, exact) in enumerate(found):
            if stretch[0] == atoms:
                assert stretch[1] == plain.left[state]
            elif plain.left[state] >= 1:
                # Another set, which is larger or has the longer stretch.
                assert worth(stretch) >= worth((atoms, plain.left[state]))
            if exact[0] == atoms:
                assert exact[1] == plain.exact_left[state]
            elif plain.exact_left[state]:
                assert exact[0].bit_count() >= atoms.bit_count()
    assert all((atoms == 0) == (left == 0) for both in found for atoms, left in both)


def longest(name: str) -> tuple[int, int]:
    found = found_in(NETWORKS[name])
    return max(left for (_, left), _ in found), max(left for _, (_, left) in found)


def test_what_is_found_in_the_samples() -> None:
    assert {name: longest(name) for name in NETWORKS} == {
        "digits somewhere": (6, 6),
        "digits somewhere and a minimum": (6, 6),
        "no maximum": (arena.NO_LIMIT, 0),
        "words": (9, 9),
        "no white space at the ends": (7, 7),
        "alternatives": (3, 5),
        "part of an atom": (0, 0),
        "one character beyond ASCII": (5, 5),
        "one line separator": (5, 5),
        "counted in a regex": (6, 6),
        "two regexes": (0, 0),
        "sentences": (5, 5),
        "rules": (6, 6),
        "a character beyond ASCII behind them": (5, 0),
        "an end inside a character": (5, 2),
    }


def test_the_sets_leave_out_what_ends_a_string_and_what_a_pattern_asks_for() -> None:
    found = found_in(NETWORKS["digits somewhere"])
    quote, digit, letter = (1 << int(ATOM_OF_ASCII[ord(character)]) for character in '"1t')
    long_ones, exact_ones = {atoms for (atoms, _), _ in found if atoms}, {atoms for _, (atoms, _) in found if atoms}
    assert [(atoms & digit != 0, atoms & letter != 0, atoms & quote != 0) for atoms in long_ones] == [
        (True, True, False)
    ]
    assert sorted(atoms & digit != 0 for atoms in exact_ones) == [False, True]


def test_a_search_that_takes_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "MAX_LOOKED_AT", 1)
    assert {stretch for stretch, _ in found_in(NETWORKS["digits somewhere"])} == {(0, 0)}


@pytest.mark.parametrize(
    ("constraint", "is_searched"),
    [
        (string(pattern="[0-9]{3}", maxLength=20), True),
        (string(pattern=r"^(?:\S+\s+){0,3}\S+$", maxLength=20), True),
        (OutputConstraint.regex(r"[\s\S]*[0-9]{3}[\s\S]*"), True),
        (OutputConstraint.regex(r".*(foo|bar).*"), True),
        (string(maxLength=100), False),
        (string(pattern="^[a-z]+$", maxLength=100), False),
        (OutputConstraint.json_schema({"properties": {"title": {}, "tt": {"type": "string"}}}), False),
        (OutputConstraint.regex(r"([a-z_][a-z0-9_]*|if|int|[ \n]+|/\*([^*]|\*[^/])*\*/)*"), False),
        (OutputConstraint.regex(r"https?://[^\s/$.?#].[^\s]*"), False),
    ],
)
def test_only_networks_are_searched_that_may_have_stretches(
    constraint: OutputConstraint, is_searched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(loops, "_find_loops", FIND_LOOPS)
    monkeypatch.setattr(loops, "find_stretches", lambda *_: asked.append(True))
    found_in(build_network(build_grammar(constraint)))
    assert asked == [True] * is_searched
