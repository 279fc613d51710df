"""Rows whose contents differ under one hash."""

from __future__ import annotations

import numpy as np

from infernix.matching.rows import BaseRow, RowStore
from support.made_rows import made_row


def test_a_pinned_row_stays_when_another_has_its_hash() -> None:
    store = RowStore(num_mask_words=1)
    contents = [[1], [2], [3]]
    kept = [store.intern(store.no_tokens, made_row(store, content, store.no_tokens), 5) for content in contents]
    store.pin(kept[0])
    assert [words.tolist() for row in kept if (words := row.words()) is not None] == [[1], [2], [3]]
    assert len({row.number for row in kept}) == 3
    again = [store.intern(store.no_tokens, made_row(store, content, store.no_tokens), 5) for content in contents]
    assert again == kept


def test_rows_that_differ_alike_from_different_rows_are_different() -> None:
    store = RowStore(num_mask_words=8)
    bases = [store.no_tokens, BaseRow(np.arange(8, dtype=np.uint32))]
    rows = [np.where(np.arange(8) == 3, 9, base.words) for base in bases]
    made = [made_row(store, row, base) for row, base in zip(rows, bases, strict=True)]
    kept = [store.intern(base, each, 5) for base, each in zip(bases, made, strict=True)]
    assert [words.tolist() for row in kept if (words := row.words()) is not None] == [row.tolist() for row in rows]
