"""Rows whose contents differ under one hash."""

from __future__ import annotations

import pytest

from infernix.matching import rows
from infernix.matching.rows import RowStore
from support.row_buffers import row_buffer


def test_a_pinned_row_stays_when_another_has_its_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_digest", lambda row, places: 5)
    store = RowStore(num_mask_words=1)
    contents = [[1], [2], [3]]
    kept = [store.intern(row_buffer(store, content)) for content in contents]
    store.pin(kept[0])
    assert [row.words.tolist() for row in kept if row.words is not None] == [[1], [2], [3]]
    assert len({row.number for row in kept}) == 3
    assert [store.intern(row_buffer(store, content)) for content in contents] == kept
