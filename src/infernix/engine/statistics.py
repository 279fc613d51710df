"""What an engine has done so far, in numbers with fixed names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from infernix.engine.draft_counters import DraftCounters, total
from infernix.results import CacheAccess, SpeculationBackend


class RequestOutcome(StrEnum):
    """How requests end that were submitted."""

    STOP_TOKEN = "stop_token"
    STOP_STRING = "stop_string"
    OUTPUT_LIMIT = "output_limit"
    CONTEXT_CAPACITY = "context_capacity"
    CANCELLED = "cancelled"
    DEAD_END = "dead_end"
    NON_FINITE_LOGITS = "non_finite_logits"
    REQUEST_ERROR = "request_error"
    QUEUE_TIMEOUT = "queue_timeout"
    CLOSED = "closed"
    FAILED = "failed"


class Rejection(StrEnum):
    """Why a request was not taken."""

    INVALID = "invalid"
    OVERLOADED = "overloaded"
    QUEUE_TIMEOUT = "queue_timeout"
    CLOSED = "closed"
    FAILED = "failed"


class ConstraintOutcome(StrEnum):
    """How constrained requests end: at an end-of-sequence token, cut off where the text may end or where it may not,
    or with an error.
    """

    TERMINATED = "terminated"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class PauseRoute(StrEnum):
    """How the state of a paused request comes back: from a copy, or by running its tokens again."""

    SNAPSHOT = "snapshot"
    REPLAY = "replay"


@dataclass(slots=True)
class Counters:
    """Sums since the engine began. Seconds are wall seconds but for the constraint's three, which are CPU seconds.

    requests, rejections, constraint_requests, constraint_cache   how many, by label
    num_prompt_tokens, num_reused_prompt_tokens, num_generated_tokens   of the requests that ended
    queue_seconds, first_token_seconds, request_seconds    summed over requests; `num_first_tokens` had a first token
    num_pauses, num_snapshot_restores, num_replay_restores, num_revoked_snapshots   moves of requests
    num_decode_rounds, num_decode_rows   rounds, and requests in them
    drafts                    what drafts came to; see DraftCounters
    num_units, num_failed_units   all units (rounds, chunks of prompts and replays, forced tokens); those that failed
    round_seconds   of decode rounds, from the choice of their rows to the last publication; in them
    forward_seconds, mask_wall_seconds, sampling_seconds   the model, the legal sets and the choice of tokens
    constraint_prepare_seconds ... mask_upload_bytes   of constrained requests that ended, also of cancelled ones
    constraint_draft_wait_seconds   once for each round that had masks, how long they waited for drafts
    num_failed_drafts         rounds that went without drafts because making them failed
    num_failed_prefixes       beginnings that could not be kept for later requests
    num_failed_observations   records that the request log did not take
    """

    requests: dict[RequestOutcome, int] = field(default_factory=lambda: dict.fromkeys(RequestOutcome, 0))
    rejections: dict[Rejection, int] = field(default_factory=lambda: dict.fromkeys(Rejection, 0))
    constraint_requests: dict[ConstraintOutcome, int] = field(
        default_factory=lambda: dict.fromkeys(ConstraintOutcome, 0)
    )
    constraint_cache: dict[CacheAccess, int] = field(default_factory=lambda: dict.fromkeys(CacheAccess, 0))
    num_prompt_tokens: int = 0
    num_reused_prompt_tokens: int = 0
    num_generated_tokens: int = 0
    queue_seconds: float = 0.0
    first_token_seconds: float = 0.0
    num_first_tokens: int = 0
    request_seconds: float = 0.0
    num_pauses: int = 0
    num_snapshot_restores: int = 0
    num_replay_restores: int = 0
    num_revoked_snapshots: int = 0
    num_decode_rounds: int = 0
    num_decode_rows: int = 0
    drafts: DraftCounters = field(default_factory=DraftCounters)
    num_units: int = 0
    num_failed_units: int = 0
    round_seconds: float = 0.0
    forward_seconds: float = 0.0
    mask_wall_seconds: float = 0.0
    sampling_seconds: float = 0.0
    constraint_prepare_seconds: float = 0.0
    constraint_mask_seconds: float = 0.0
    constraint_matcher_seconds: float = 0.0
    mask_positions: int = 0
    mask_upload_bytes: int = 0
    constraint_draft_wait_seconds: float = 0.0
    num_failed_drafts: int = 0
    num_failed_prefixes: int = 0
    num_failed_observations: int = 0

    def copy(self) -> Counters:
        """Equal counters that do not change any more."""
        return replace(
            self,
            requests=dict(self.requests),
            rejections=dict(self.rejections),
            constraint_requests=dict(self.constraint_requests),
            constraint_cache=dict(self.constraint_cache),
            drafts=self.drafts.copy(),
        )

    @property
    def num_drafted(self) -> int:
        """Drafts of all sources."""
        return total(self.drafts.num_drafted)

    @property
    def num_accepted_drafts(self) -> int:
        """Drafts of all sources that were committed."""
        return total(self.drafts.num_accepted)


@dataclass(frozen=True, slots=True)
class EngineStatistics:
    """An engine at one moment.

    num_running, num_waiting, num_paused   requests by where they are
    num_outstanding     slots that are taken, those of requests whose result nobody has collected yet included
    num_cached_prefixes, num_cached_positions   remembered beginnings of prompts, and their tokens
    num_free_positions, num_positions   tokens that there is memory for: now, and in all
    backend             the network that drafts; NONE also where only copies do
    """

    num_running: int
    num_waiting: int
    num_paused: int
    num_outstanding: int
    num_cached_prefixes: int
    num_cached_positions: int
    num_free_positions: int
    num_positions: int
    counters: Counters
    backend: SpeculationBackend = SpeculationBackend.NONE

    @property
    def requests(self) -> Mapping[RequestOutcome, int]:
        """How many requests ended, by how."""
        return self.counters.requests
