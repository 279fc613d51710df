"""What holds between any two cycles: lanes, slots, memory and ledgers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from infernix.engine.core import EngineCore
from infernix.engine.states import RequestState
from tests.engine.simulation.clients import Client
from tests.engine.simulation.memory_model import MemoryPool

_RUNNING = (RequestState.PREFILL, RequestState.DECODE_READY, RequestState.CONTROL_READY, RequestState.REPLAY)


def check_places(core: EngineCore, clients: Sequence[Client], max_snapshot_bytes: int) -> None:
    """Every request is in exactly one place, and whoever has a place is known."""
    residency, waiting = core._residency, list(core._waiting)
    residents = residency.residents
    assert residency.paused == sorted(residency.paused, key=lambda request: request.number)
    assert sum(request.is_protected for request in residents) <= 1
    assert not any(request.is_protected for request in [*residency.paused, *waiting])
    for lane, request in enumerate(residency.lanes):
        assert request is None or request.lane == lane
    for client in clients:
        request = client.request
        is_running = request.state in _RUNNING
        assert (request in residents) == (request.lane is not None) == is_running
        assert (request in residency.paused) == (request.state is RequestState.PAUSED)
        if request.is_known:
            assert (request in waiting) == (request.state is RequestState.WAITING)
        assert (request.sequence is not None) == (is_running or request.state is RequestState.PAUSED)
        assert request.is_finished == request.delivery.is_done
        assert request.counts.num_bypassed <= core.limits.max_concurrency
        assert is_running or request.pending_upload_bytes == 0
        if request.state is RequestState.WAITING:
            assert request.session.num_tokens == 0
    snapshots = [request.physical.snapshot for request in residency.paused]
    assert sum(snapshot.num_bytes for snapshot in snapshots if snapshot is not None) <= max_snapshot_bytes
    everyone = {client.request for client in clients}
    assert everyone.issuperset([*residents, *residency.paused, *waiting])


def check_slots(core: EngineCore, clients: Sequence[Client]) -> None:
    """A slot is taken until the request is done and its consumer has let go of it."""
    taken = {
        client.request.number for client in clients if not (client.request.delivery.is_done and client.is_released)
    }
    assert core.intake._slots._outstanding == taken
    assert len(taken) <= core.intake._slots.max_outstanding


def check_sequences(clients: Sequence[Client]) -> None:
    """The Program's ledger is the prompt and the committed tokens, and the cache holds what it says it has run."""
    for client in clients:
        request = client.request
        sequence = request.sequence
        if sequence is None:
            continue
        tokens = request.session.token_ids
        assert not sequence.is_pending
        assert sequence.ledger == [*request.prepared.prompt, *tokens]
        counts = dict(zip(sequence.counts.ids.tolist(), sequence.counts.counts.tolist(), strict=True))
        assert counts == {token: tokens.count(token) for token in tokens}
        cache: Any = sequence.cache
        assert sequence.execution_frontier <= len(sequence.ledger)
        match request.state:
            case RequestState.PAUSED:
                assert sequence.is_paused
                assert not cache.kv.blocks
                if sequence.snapshot is not None:
                    assert sequence.snapshot.cache.num_tokens == sequence.execution_frontier
            case RequestState.REPLAY:
                assert cache.num_tokens < sequence.execution_frontier
                assert cache.tokens == sequence.ledger[: cache.num_tokens]
            case _:
                assert cache.tokens == sequence.ledger[: sequence.execution_frontier]


def check_memory(core: EngineCore, pool: MemoryPool) -> None:
    """Only what runs and what is remembered holds memory."""
    known: list[Any] = [request.physical.cache for request in core._residency.residents]
    entries = core._prefixes._entries
    for tokens, entry in entries.items():
        cache: Any = entry.prefix.cache
        assert tuple(cache.tokens) == tokens, "what is remembered has changed"
        known.append(cache)
    assert core._prefixes.num_positions == sum(map(len, entries))
    assert len(entries) <= core.limits.max_cached_prefixes
    pool.check_held_by(known)
