"""Places and memory: who runs, who pauses for whom, and who comes back.

Memory that a request needs is taken first from beginnings that are only remembered, then from the youngest request that
runs. So the oldest always goes on, and every request is some day the oldest.
"""

from __future__ import annotations

from bisect import insort

from infernix.engine.prefix_cache import PrefixCache
from infernix.engine.recorder import Recorder
from infernix.engine.request import Request
from infernix.engine.states import RequestState
from infernix.engine.statistics import PauseRoute
from infernix.errors import CacheCapacityExceeded, InternalError
from infernix.program.program import Program


class Residency:
    """The lanes, the paused requests and the remembered beginnings. Used by the worker, between units."""

    def __init__(
        self, program: Program, prefixes: PrefixCache, recorder: Recorder, *, num_lanes: int, snapshot_bytes: int
    ) -> None:
        """`snapshot_bytes` of the host's memory may hold the state of paused requests; others are run again."""
        self._program = program
        self._pool = program.pool
        self._prefixes = prefixes
        self._recorder = recorder
        self._snapshot_bytes = snapshot_bytes
        self.lanes: list[Request | None] = [None] * num_lanes
        # By number, oldest first.
        self.paused: list[Request] = []
        # Whether memory or a place has come free since `resume` was last tried in vain.
        self.has_news = False

    @property
    def residents(self) -> list[Request]:
        """The requests that have a lane, in the order of the lanes."""
        return [request for request in self.lanes if request is not None]

    @property
    def has_free_lane(self) -> bool:
        """Whether one more request could run."""
        return None in self.lanes

    def admit(self, request: Request) -> bool:
        """Gives a waiting request a lane and memory for its whole prompt; False, and nothing changes, where there is no
        room. Nobody pauses for it. Raises CacheCapacityExceeded where there is nothing that could make more room, and
        what starting it raises.
        """
        prepared = request.prepared
        prefix = self._prefixes.find(prepared.prompt) if len(self._prefixes) else None
        sequence = self._program.start(prepared.prompt, prepared.budget.num_tokens, prepared.sampling, prefix=prefix)
        request.sequence = sequence
        try:
            has_room = self._make_room(request, sequence.num_unprocessed_prompt_tokens)
        except BaseException:
            self._drop_sequence(request)
            raise
        if not has_room:
            self._drop_sequence(request)
            if not self.residents and not self.paused:
                raise self._too_large(len(prepared.prompt))
            return False
        request.counts.num_reused_prompt_tokens = sequence.execution_frontier
        self._seat(request)
        request.move_to(request.ready_state)
        return True

    def reserve(self, request: Request, num_tokens: int) -> bool:
        """Room for a running request's next unit. The youngest pause for it where there is no other way; False where it
        had to pause itself. Raises CacheCapacityExceeded where there is nobody left to pause.
        """
        while not self._program.reserve(request.physical, num_tokens):
            if self._prefixes.evict():
                continue
            residents = self.residents
            candidates = [other for other in residents if not other.is_protected]
            if not candidates or (candidates == [request] and len(residents) == 1):
                raise self._too_large(request.physical.execution_frontier + num_tokens)
            victim = max(candidates, key=lambda other: other.number)
            self._pause(victim)
            if victim is request:
                return False
        return True

    def resume(self) -> Request | None:
        """Brings back the oldest paused request, if there is a lane and room for all that it had and its next unit.

        It is protected until it has done something new. While one is, no other comes back. With nobody running, one
        that has no room never will have: CacheCapacityExceeded.
        """
        if not self.paused or any(request.is_protected for request in self.residents):
            return None
        is_alone = not self.residents
        if not is_alone and not self.has_news:
            return None
        self.has_news = False
        if not self.has_free_lane:
            return None
        request = self.paused[0]
        sequence = request.physical
        num_tokens = request.num_unit_tokens
        num_needed = sequence.execution_frontier + num_tokens
        route = PauseRoute.REPLAY if sequence.snapshot is None else PauseRoute.SNAPSHOT
        while not self._program.resume(sequence, num_tokens):
            if not (is_alone or self._could_make_room(num_needed)) or not self._prefixes.evict():
                if is_alone:
                    raise self._too_large(num_needed)
                return None
        self.paused.remove(request)
        self._seat(request)
        request.is_protected = True
        self._recorder.resumed(request)
        if sequence.num_tokens_to_replay:
            request.move_to(RequestState.REPLAY)
        else:
            self.restored(request, route)
        return request

    def restored(self, request: Request, route: PauseRoute) -> None:
        """A request that was paused has all its memory again."""
        request.move_to(request.ready_state)
        if route is PauseRoute.SNAPSHOT:
            request.counts.num_snapshot_restores += 1
        else:
            request.counts.num_replay_restores += 1
        self._recorder.restored(request, route)

    def leave(self, request: Request) -> None:
        """Takes a request out, wherever it is, and gives its memory back."""
        if request.lane is not None:
            self.lanes[request.lane] = None
            request.lane = None
            self.has_news = True
        elif request.state is RequestState.PAUSED:
            self.paused.remove(request)
            self.has_news = True  # another is the oldest now
        request.is_protected = False
        self._drop_sequence(request)

    def _pause(self, request: Request) -> None:
        if request.lane is None:
            raise InternalError(f"request {request.number} does not run")
        route = self._take_away(request)
        self.lanes[request.lane] = None
        request.lane = None
        request.counts.num_pauses += 1
        request.move_to(RequestState.PAUSED)
        insort(self.paused, request, key=lambda other: other.number)
        self._recorder.paused(request, route)

    def _take_away(self, request: Request) -> PauseRoute:
        """Takes a request's memory, with a copy where the host has room for one."""
        sequence = request.physical
        if request.state is not RequestState.REPLAY and sequence.execution_frontier and self._snapshot_bytes:
            try:
                self._program.pause_snapshot(sequence)
            except (MemoryError, RuntimeError):  # the host has no room for a copy; PyTorch raises RuntimeErrors
                pass
            else:
                self._revoke_snapshots(request)
                return PauseRoute.REPLAY if sequence.snapshot is None else PauseRoute.SNAPSHOT
        self._program.pause_replay(sequence)
        return PauseRoute.REPLAY

    def _revoke_snapshots(self, request: Request) -> None:
        """Drops copies until they fit into the host's memory, those first that are needed last."""
        holders = [other for other in self.paused if other.physical.snapshot is not None]
        insort(holders, request, key=lambda other: other.number)
        num_bytes = sum(_snapshot_bytes(other) for other in holders)
        while num_bytes > self._snapshot_bytes:
            other = holders.pop()
            num_bytes -= _snapshot_bytes(other)
            self._program.revoke_snapshot(other.physical)
            if other is not request:
                self._recorder.revoked(other)

    def _make_room(self, request: Request, num_tokens: int) -> bool:
        sequence = request.physical
        while not self._program.reserve(sequence, num_tokens):
            is_alone = not self.residents and not self.paused
            if not (is_alone or self._could_make_room(num_tokens)) or not self._prefixes.evict():
                return False
        return True

    def _could_make_room(self, num_tokens: int) -> bool:
        """Whether there would be room for so many tokens if nothing was remembered; not where it only might."""
        return num_tokens <= self._pool.num_free_positions + self._prefixes.num_positions

    def _seat(self, request: Request) -> None:
        request.lane = self.lanes.index(None)
        self.lanes[request.lane] = request

    def _drop_sequence(self, request: Request) -> None:
        if request.sequence is not None:
            self._program.release(request.sequence)
            request.sequence = request.copies = None

    def _too_large(self, num_tokens: int) -> CacheCapacityExceeded:
        return CacheCapacityExceeded(
            f"the request needs room for {num_tokens} tokens at once, and the engine's memory for them, of"
            f" {self._pool.num_positions}, has not enough even with nothing else in it"
        )


def _snapshot_bytes(request: Request) -> int:
    snapshot = request.physical.snapshot
    return 0 if snapshot is None else snapshot.num_bytes
