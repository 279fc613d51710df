"""What holds between any two cycles: lanes, slots, memory, ledgers and what a drafter has read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from infernix.engine.core import EngineCore
from infernix.engine.states import RequestState
from infernix.models.cache import KVCache
from infernix.program.drafters.context import DraftContext
from infernix.program.prefix import CachedPrefix
from tests.engine.simulation.clients import Client
from tests.engine.simulation.memory_model import MemoryPool, check_blocks
from tests.engine.simulation.toy_drafter import ToyDrafter

# 64 wait from round to round; those of the last one, and of forced tokens, come on top of them.
_MOST_UNREAD = 64 + 24
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
        if tokens and not request.counts.num_control_units:
            assert sequence.execution_frontier == len(sequence.ledger) - 1, "what is known is run again"
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


def check_contexts(clients: Sequence[Client], prefixes: Iterable[CachedPrefix], drafter: ToyDrafter | None) -> None:
    """What a drafter has read, or has yet to read, is a beginning of the committed text; only who runs and what is
    remembered holds its memory.
    """
    holders: list[KVCache] = []
    for client in clients:
        sequence = client.request.sequence
        context = None if sequence is None else sequence.drafting
        if sequence is None or context is None:
            continue
        assert drafter is not None
        assert context.unit is None, "a unit that is over was left behind"
        model_cache: Any = sequence.cache
        match client.request.state:
            case RequestState.PAUSED:
                assert not context.cache.blocks
                assert context.num_known == 0
                snapshot = None if sequence.snapshot is None else sequence.snapshot.drafting
                if snapshot is not None:
                    features, following = snapshot.kv.keys[0, 0].tolist(), snapshot.kv.values[0, 0, :, 0].tolist()
                    assert (features, following) == drafter.wanted_memory(sequence.ledger, len(features))
                    waiting = drafter.wanted_features(sequence.ledger, sequence.execution_frontier)
                    assert snapshot.features.tolist() == waiting[snapshot.start :]
            case RequestState.REPLAY:
                _check_context(context, sequence.ledger, model_cache.num_tokens, drafter)
            case _:
                _check_context(context, sequence.ledger, sequence.execution_frontier, drafter)
        holders.append(context.cache)
    for prefix in prefixes:
        if prefix.drafting is not None:
            assert drafter is not None
            _check_context(prefix.drafting, prefix.tokens, len(prefix.tokens), drafter)
            holders.append(prefix.drafting.cache)
    if drafter is not None:
        check_blocks(drafter.pools[-1], holders)


def _check_context(context: DraftContext, ledger: Sequence[int], num_known: int, drafter: ToyDrafter) -> None:
    assert context.num_known == num_known, "what was committed is not what can be read"
    assert 0 <= context.num_unread <= _MOST_UNREAD
    assert drafter.memory(context) == drafter.wanted_memory(ledger, context.cache.num_tokens)
    assert context.features.tolist() == drafter.wanted_features(ledger, num_known)[context.start :]
