"""Rows by a walk over whole tokens, for comparison with those that are found in shorter ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pytest

from infernix.grammar import ir
from infernix.matching import DEAD, CompiledGrammar
from infernix.matching.epoch import Epoch
from infernix.matching.masks import VocabularyIndex
from infernix.matching.row_buffer import RowBuffer
from infernix.matching.row_digest import digest_row
from infernix.matching.row_making import DESCRIPTION, DIGEST, NO_KIND
from infernix.matching.rows import MaskRow
from infernix.matching.ways import KIND, Way


def plain_epoch(grammar: ir.Grammar, index: VocabularyIndex, monkeypatch: pytest.MonkeyPatch) -> Epoch:
    """A grammar's configurations, whose rows are found in no other way than by walks."""
    epoch = CompiledGrammar(grammar, index).epoch
    monkeypatch.setattr(epoch, "_ways", lambda _: iter([(index.whole_way, NO_KIND)]))
    return epoch


def description_of(epoch: Epoch, configuration: int) -> list[int]:
    """What the row of a configuration depends on: see `row_kinds.describe`."""
    buffer = RowBuffer(epoch._index.rows.num_mask_words, 0)
    epoch.table.make_rows(epoch._plans or epoch._begin_plans(), buffer, configuration)
    columns: list[int] = buffer.found[0].tolist()
    return columns[DESCRIPTION : DESCRIPTION + 8]


def note_kinds(epoch: Epoch, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The kinds of the ways by which rows are made from now on, one after the other."""
    kinds: list[int] = []
    intern = epoch._intern

    def noted_intern(way: Way, buffer: RowBuffer, columns: Sequence[int]) -> MaskRow:
        kinds.append(int(way.numbers[KIND]))
        row = intern(way, buffer, columns)
        words = row.words()
        assert words is not None
        assert digest_row(words.view(np.uint32)) == columns[DIGEST]
        return row

    monkeypatch.setattr(epoch, "_intern", noted_intern)
    return kinds


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
            found, wanted = epoch.row(places[0]).words(), plain.row(places[1]).words()
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
