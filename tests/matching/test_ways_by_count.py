"""Ways that are chosen for about as many characters left: whichever row comes first, the others stay what they are."""

from __future__ import annotations

import numpy as np
import pytest

from infernix.grammar.build import build_grammar
from infernix.matching import CompiledGrammar, beginnings, slices
from infernix.matching.epoch import Epoch
from infernix.matching.masks import VocabularyIndex
from infernix.options import OutputConstraint
from support.vocabularies import byte_vocabulary

MAX_LENGTH = 36


def row(epoch: Epoch, num_left: int) -> list[int]:
    text = np.frombuffer(b'"' + b"t" * (MAX_LENGTH - num_left), np.uint8).copy()
    words = epoch.row(epoch.step_bytes(epoch.table.start, text, 0, len(text))).words()
    assert words is not None
    return words.tolist()


@pytest.mark.parametrize("keywords", [{}, {"pattern": "[0-9]{3}"}], ids=["a counted loop", "a stretch"])
@pytest.mark.parametrize("first", [3, 5, 7, 9, 20, 31])
def test_a_way_is_taken_for_no_other_count(
    keywords: dict[str, object], first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beginnings, "MAX_LEFT_OUT", 2)
    monkeypatch.setattr(slices, "MIN_SHARE", 0)
    texts = [character * length for character in "tz" for length in range(2, 40)]
    index = VocabularyIndex(byte_vocabulary(texts))
    schema = {"type": "string", "maxLength": MAX_LENGTH, **keywords}
    compiled = CompiledGrammar(build_grammar(OutputConstraint.json_schema(schema)), index)
    for second in (4, 8, 10, 32, 36):
        epoch, alone = compiled._new_epoch(), compiled._new_epoch()
        row(epoch, first)
        assert row(epoch, second) == row(alone, second)
