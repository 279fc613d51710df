"""Rows whose contents differ under one hash."""

from __future__ import annotations

from infernix.matching.rows import RowStore
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
