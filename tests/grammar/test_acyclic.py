"""Finite languages as the smallest automata, against sets of words."""

from __future__ import annotations

import random

import pytest

from infernix.grammar.acyclic import END, NOTHING, AcyclicGraph, Node
from support.automaton_texts import AutomatonTexts


def word(graph: AcyclicGraph, text: str) -> Node:
    node = END
    for character in reversed(text):
        node = graph.node({character: node})
    return node


def num_futures(words: set[str]) -> int:
    """Distinct sets of endings: the states of the smallest automaton (Nerode)."""
    beginnings = {text[:end] for text in words for end in range(len(text) + 1)} | {""}
    return len({frozenset(text[len(begin) :] for text in words if text.startswith(begin)) for begin in beginnings})


@pytest.mark.parametrize("seed", range(20))
def test_unions_of_words_are_the_smallest_automata(seed: int) -> None:
    generator = random.Random(seed)
    graph = AcyclicGraph()
    words: set[str] = set()
    language = NOTHING
    for _ in range(20):
        text = "".join(generator.choices("abc", k=generator.randint(0, 5)))
        words.add(text)
        language = graph.union(word(graph, text), language)
    automaton = graph.automaton(language)
    assert AutomatonTexts(automaton).up_to(6) == words
    assert automaton.num_states == num_futures(words)


def test_equal_languages_are_one_node() -> None:
    graph = AcyclicGraph()
    ab = graph.union(word(graph, "a"), word(graph, "b"))
    assert graph.node({"b": END, "a": END}) == ab
    assert graph.node({"a": NOTHING}) == NOTHING
    assert graph.node({}, accepting=True) == END
    assert graph.union(NOTHING, ab) == graph.union(ab, NOTHING) == ab


def test_neighbouring_bytes_share_an_edge() -> None:
    graph = AcyclicGraph()
    automaton = graph.automaton(graph.node({**dict.fromkeys("0123456789ace", END), "b": word(graph, "x")}))
    edges = {(chr(low), chr(high)) for source, low, high, _ in automaton.edges if source == 0}
    assert edges == {("0", "9"), ("a", "a"), ("b", "b"), ("c", "c"), ("e", "e")}


def test_nothing_has_a_start_and_no_end() -> None:
    automaton = AcyclicGraph().automaton(NOTHING)
    assert (automaton.num_states, automaton.edges, automaton.accepting) == (1, (), frozenset())
