"""Rows by a walk over whole tokens, for comparison with those that are found in shorter ways."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from infernix.grammar import ir
from infernix.matching import DEAD, CompiledGrammar
from infernix.matching.epoch import Epoch
from infernix.matching.masks import VocabularyIndex


def plain_epoch(grammar: ir.Grammar, index: VocabularyIndex, monkeypatch: pytest.MonkeyPatch) -> Epoch:
    """A grammar's configurations, whose rows are found in no other way than by walks."""
    epoch = CompiledGrammar(grammar, index).epoch
    for shortcut in ("_take_slice", "_take_entered_loop", "_take_beginnings"):
        monkeypatch.setattr(epoch, shortcut, lambda *_, **__: False)
    return epoch


def check_rows_along_walks(
    epoch: Epoch,
    plain: Epoch,
    num_tokens: int,
    rng: Random,
    num_walks: int,
    choose: Callable[[list[int]], list[int]] = lambda legal: legal,
) -> None:
    """Both have the same rows along walks of up to twelve random tokens; `choose` narrows the legal ones."""
    for _ in range(num_walks):
        places = [epoch.table.start, plain.table.start]
        for _ in range(12):
            found, wanted = epoch.row(places[0]).words, plain.row(places[1]).words
            assert found is not None
            assert wanted is not None
            assert found.tolist() == wanted.tolist()
            bits = np.flatnonzero(np.unpackbits(wanted.view(np.uint8), bitorder="little"))
            legal = bits[bits < num_tokens].tolist()
            if not legal:
                break
            token = rng.choice(choose(legal))
            places = [each.step(place, token) for each, place in zip((epoch, plain), places, strict=True)]
            assert DEAD not in places
