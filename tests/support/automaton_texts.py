"""What a deterministic automaton accepts, the plain way: one text, all short texts, random texts."""

from __future__ import annotations

import random

from infernix.grammar.ir import Automaton


class AutomatonTexts:
    """The language of an automaton over ASCII."""

    def __init__(self, automaton: Automaton) -> None:
        self._accepting = automaton.accepting
        self._moves: list[dict[str, int]] = [{} for _ in range(automaton.num_states)]
        for source, low, high, target in automaton.edges:
            for byte in range(low, high + 1):
                assert chr(byte) not in self._moves[source], "not deterministic"
                self._moves[source][chr(byte)] = target

    def __contains__(self, text: str) -> bool:
        state: int | None = 0
        for character in text:
            state = None if state is None else self._moves[state].get(character)
        return state in self._accepting

    def up_to(self, max_length: int) -> set[str]:
        """All texts of at most `max_length` characters."""
        found: set[str] = set()
        texts = [("", 0)]
        for length in range(max_length + 1):
            found |= {text for text, state in texts if state in self._accepting}
            if length < max_length:
                texts = [
                    (text + character, target)
                    for text, state in texts
                    for character, target in self._moves[state].items()
                ]
        return found

    def draw(self, generator: random.Random) -> str:
        """A random text; ends where it may with probability 1 / 10."""
        state, text = 0, ""
        while self._moves[state] and not (state in self._accepting and generator.random() < 0.1):
            character, state = generator.choice(list(self._moves[state].items()))
            text += character
        assert state in self._accepting, "a state that leads nowhere"
        return text
