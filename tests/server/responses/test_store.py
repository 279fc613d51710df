"""The store of responses: what it keeps, and what makes room."""

from __future__ import annotations

from infernix.server.responses.store import ResponseStore, StoredResponse

KIBI = StoredResponse(b"x" * 1024, (), ())


def kept(store: ResponseStore, names: str) -> str:
    return "".join(name for name in names if store.get(name) is not None)


def test_the_one_that_was_used_least_lately_makes_room_for_another() -> None:
    store = ResponseStore(3, 1 << 20)
    for name in "abc":
        store.put(name, KIBI)
    assert store.get("a") is KIBI
    store.put("d", KIBI)
    assert kept(store, "abcd") == "acd"
    assert store.num_bytes == 3 * KIBI.num_bytes


def test_bytes_are_bounded_and_counted_with_all_that_a_response_holds() -> None:
    large = StoredResponse(b"x" * 1000, (b"y" * 1000,), (b"y" * 1000, b"z" * 500))
    assert large.num_bytes >= 3500
    store = ResponseStore(100, large.num_bytes + KIBI.num_bytes)
    store.put("a", KIBI)
    store.put("b", large)
    assert kept(store, "ab") == "ab"
    store.put("c", KIBI)
    assert kept(store, "abc") == "bc"
    assert store.num_bytes == large.num_bytes + KIBI.num_bytes


def test_one_that_does_not_fit_at_all_is_not_kept_and_costs_no_other_its_place() -> None:
    store = ResponseStore(10, 2000)
    store.put("a", KIBI)
    store.put("b", StoredResponse(b"x" * 2000, (), ()))
    assert kept(store, "ab") == "a"
    assert store.num_bytes == KIBI.num_bytes


def test_a_deleted_response_is_gone_once() -> None:
    store = ResponseStore(10, 1 << 20)
    store.put("a", KIBI)
    assert store.delete("a")
    assert not store.delete("a")
    assert (store.get("a"), store.num_bytes) == (None, 0)
