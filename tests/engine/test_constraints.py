from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from infernix.engine.constraints import ConstraintService
from infernix.errors import InvalidChoice
from infernix.frontend.framing import Framing
from infernix.frontend.output_grammar import OutputGrammar
from infernix.ops import masks
from infernix.options import OutputConstraint
from infernix.results import CacheAccess, OutputBranch
from support.scripted_matcher import ScriptedMatcher
from support.vocabularies import nasty_token, nasty_vocabulary

VOCABULARY = nasty_vocabulary()


class ScriptedCompiler:
    """Reads a constraint's choices as its language; without choices it refuses."""

    def compile(self, grammar: OutputGrammar) -> Any:
        assert grammar.content is not None
        if not grammar.content.choices:
            raise InvalidChoice("the list is empty")
        language = [choice.encode() for choice in grammar.content.choices]
        grammar = SimpleNamespace(new_matcher=lambda companion: ScriptedMatcher(VOCABULARY, language))
        return SimpleNamespace(grammar=grammar, access=CacheAccess.WAITED)


def choice(texts: list[str]) -> OutputGrammar:
    return OutputGrammar(Framing(), False, None, OutputConstraint.choice(texts))


def test_a_prepared_constraint_stands_at_its_start_and_tells_how_it_was_found() -> None:
    service = ConstraintService(ScriptedCompiler, VOCABULARY)
    state = service.prepare(choice(["ok"]))
    words = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    assert state.fill_mask(words)
    assert set(masks.legal_ids(words, VOCABULARY.num_tokens)) == {nasty_token("o"), nasty_token("ok")}
    observation = state.observe(OutputBranch.UNDECIDED)
    assert (observation.cache, observation.mask_positions) == (CacheAccess.WAITED, 1)


def test_requests_share_the_grammar_and_not_the_matcher() -> None:
    service = ConstraintService(ScriptedCompiler, VOCABULARY)
    first, second = (service.prepare(choice(["ok"])) for _ in range(2))
    assert first.preview([nasty_token("ok")]) == 1
    first.confirm()
    assert (first.observe(OutputBranch.UNDECIDED).complete, second.observe(OutputBranch.UNDECIDED).complete) == (
        True,
        False,
    )


def test_the_compilers_errors_pass_through() -> None:
    with pytest.raises(InvalidChoice):
        ConstraintService(ScriptedCompiler, VOCABULARY).prepare(choice([]))


def test_threads_that_come_first_together_share_one_compiler() -> None:
    made: list[ScriptedCompiler] = []
    barrier = threading.Barrier(4)

    def make() -> ScriptedCompiler:
        made.append(ScriptedCompiler())
        return made[-1]

    service = ConstraintService(make, VOCABULARY)
    assert made == []

    def prepare() -> None:
        barrier.wait(60)
        service.prepare(choice(["ok"]))

    threads = [threading.Thread(target=prepare) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
