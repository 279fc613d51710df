"""Automata over characters -> automata over bytes, in one of two written forms.

A character's bytes are a path of its own between two states. All paths of one state are folded together from their
ends, equal ends as one state, whichever state they come from: the ways into one and the same next state share the last
bytes of their UTF-8 encodings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

from infernix.grammar.alphabets import Alphabet, CodePointRanges
from infernix.grammar.automata import NO_STATE, Dfa
from infernix.grammar.ir import Automaton
from infernix.grammar.json_values import CANONICAL_ESCAPES
from infernix.grammar.unicode import ByteRanges, complement_ranges, intersect_ranges, utf8_sequences

ESCAPED = complement_ranges(complement_ranges((ord(character),) * 2 for character in CANONICAL_ESCAPES))
"""The characters that do not stand for themselves in a JSON string, as ranges."""

_QUOTE = ord('"')


def canonical_spellings(ranges: CodePointRanges) -> Iterator[ByteRanges]:
    """How the characters of `ranges` are written inside a JSON string in canonical escapes; disjoint."""
    yield from utf8_sequences(intersect_ranges(ranges, complement_ranges(ESCAPED)))
    for low, high in intersect_ranges(ranges, ESCAPED):
        for code in range(low, high + 1):
            yield tuple((byte, byte) for byte in CANONICAL_ESCAPES[chr(code)].encode())


@dataclass(frozen=True, slots=True)
class _Node:
    """Spellings from some byte on: by byte range another node, or the class of the character that is complete.

    `classes` are those beneath, which is what the way from here on depends on.
    """

    steps: tuple[tuple[int, int, _Node | int], ...]
    classes: tuple[int, ...]


_Branches: TypeAlias = "dict[tuple[int, int], _Branches | int]"


def _spelling_tree(
    alphabet: Alphabet, classes: tuple[int, ...], spell: Callable[[CodePointRanges], Iterable[ByteRanges]]
) -> _Node:
    """The spellings of the characters of `classes`, equal parts as one node.

    Byte ranges that leave one node are disjoint: two spellings have equal or disjoint ranges where they part.
    """
    root: _Branches = {}
    for number in classes:
        for spelling in spell(alphabet.classes[number]):
            branches = root
            for byte_range in spelling[:-1]:
                following = branches.setdefault(byte_range, {})
                assert not isinstance(following, int)
                branches = following
            branches[spelling[-1]] = number
    return _folded(root, {})


def _folded(branches: _Branches, known: dict[tuple[tuple[int, int, int, bool], ...], _Node]) -> _Node:
    """The node for `branches`; a spelling has few bytes, so this is never deep."""
    steps: list[tuple[int, int, _Node | int]] = []
    for (low, high), child in sorted(branches.items(), key=itemgetter(0)):
        steps.append((low, high, child if isinstance(child, int) else _folded(child, known)))
    key = tuple(
        (low, high, child, True) if isinstance(child, int) else (low, high, id(child), False)
        for low, high, child in steps
    )
    if key not in known:
        beneath = [(child,) if isinstance(child, int) else child.classes for _, _, child in steps]
        known[key] = _Node(tuple(steps), tuple(sorted({number for classes in beneath for number in classes})))
    return known[key]


@lru_cache(maxsize=256)
def _canonical_tree(alphabet: Alphabet, classes: tuple[int, ...]) -> _Node:
    return _spelling_tree(alphabet, classes, canonical_spellings)


@lru_cache(maxsize=256)
def _raw_tree(alphabet: Alphabet, classes: tuple[int, ...]) -> _Node:
    return _spelling_tree(alphabet, classes, utf8_sequences)


def _used_classes(dfa: Dfa) -> tuple[int, ...]:
    return tuple(number for number, targets in enumerate(zip(*dfa.rows, strict=True)) if max(targets) != NO_STATE)


class _Encoder:
    """Collects the edges of a byte automaton whose first states are those of `dfa`."""

    def __init__(self, dfa: Dfa, tree: _Node, first_state: int) -> None:
        self.edges: list[tuple[int, int, int, int]] = []
        self.num_states = first_state + dfa.num_states
        self._inner: dict[tuple[tuple[int, int, int], ...], int] = {}
        # The state for a node, by the node's identity and the targets of the classes beneath.
        self._known: dict[tuple[int, int | tuple[int, ...]], int] = {}
        for state, row in enumerate(dfa.rows):
            targets = [NO_STATE if target == NO_STATE else target + first_state for target in row]
            source = first_state + state
            self.edges += [(source, low, high, target) for low, high, target in self._edges_of(tree, targets)]

    def _edges_of(self, node: _Node, targets: list[int]) -> list[tuple[int, int, int]]:
        """(low, high, target), where class c leads to targets[c]; neighbouring bytes with one target share an edge."""
        edges: list[tuple[int, int, int]] = []
        last_high, last_target = NO_STATE, NO_STATE
        for low, high, child in node.steps:
            target = targets[child] if type(child) is int else self._state_of(child, targets)  # type: ignore[arg-type]
            if target == NO_STATE:
                continue
            if target == last_target and low == last_high + 1:
                low = edges.pop()[0]
            edges.append((low, high, target))
            last_high, last_target = high, target
        return edges

    def _state_of(self, node: _Node, targets: list[int]) -> int:
        classes = node.classes
        key = (id(node), targets[classes[0]] if len(classes) == 1 else tuple([targets[number] for number in classes]))
        known = self._known.get(key)
        if known is None:
            edges = tuple(self._edges_of(node, targets))
            known = self._inner.get(edges, self.num_states) if edges else NO_STATE
            if known == self.num_states:
                self.num_states += 1
                self._inner[edges] = known
                self.edges += [(known, low, high, target) for low, high, target in edges]
            self._known[key] = known
        return known


def json_string(dfa: Dfa, *, opening_quote: bool = True) -> Automaton:
    """The JSON strings in canonical escapes whose values `dfa` accepts, with their quotes; with or without the first.

    Equal ends of characters are one state. An empty `dfa` has no automaton here.
    """
    first_state = int(opening_quote)
    encoder = _Encoder(dfa, _canonical_tree(dfa.alphabet, _used_classes(dfa)), first_state)
    end = encoder.num_states
    edges = [(0, _QUOTE, _QUOTE, first_state)] if opening_quote else []
    edges += encoder.edges
    edges += [(first_state + state, _QUOTE, _QUOTE, end) for state, accepts in enumerate(dfa.accepting) if accepts]
    return Automaton(end + 1, tuple(edges), frozenset([end]))


def raw_text(dfa: Dfa) -> Automaton:
    """The UTF-8 bytes of the texts that `dfa` accepts. An empty `dfa` has no automaton here."""
    encoder = _Encoder(dfa, _raw_tree(dfa.alphabet, _used_classes(dfa)), 0)
    accepting = frozenset(state for state, accepts in enumerate(dfa.accepting) if accepts)
    return Automaton(encoder.num_states, tuple(encoder.edges), accepting)
