"""One request inside the engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from infernix.engine.delivery import Delivery
from infernix.engine.draft_counters import DraftCounters
from infernix.engine.states import RequestState, checked_move
from infernix.frontend.budget import OutputBudget
from infernix.frontend.session import OutputSession
from infernix.options import SamplingParameters
from infernix.program.drafters.ngram import NgramDrafter
from infernix.program.drafters.pacing import DraftPacing
from infernix.program.sequence import PhysicalSequence


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """What preparing a request gives: everything but a place on the model.

    `prepare_seconds` is the wall time of this preparation, `prompt_seconds` that of the prompt's before it.
    """

    prompt: tuple[int, ...]
    budget: OutputBudget
    sampling: SamplingParameters
    session: OutputSession
    prompt_seconds: float = 0.0
    prepare_seconds: float = 0.0


@dataclass(slots=True)
class RequestTimes:
    """Readings of the engine's clock, and sums of differences, in seconds; see GenerationTimings for the sums.

    `submitted` is when the submission began, `ready` when it was prepared, `admitted` when it first got a place.
    """

    submitted: float
    ready: float
    admitted: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    paused_since: float | None = None
    prefill: float = 0.0
    decode: float = 0.0
    decode_share: float = 0.0
    replay: float = 0.0
    paused: float = 0.0


@dataclass(slots=True)
class RequestCounts:
    """What happened to one request; see SchedulingStatistics, and SpeculativeStatistics for `drafts`."""

    num_reused_prompt_tokens: int = 0
    num_bypassed: int = 0
    num_pauses: int = 0
    num_snapshot_restores: int = 0
    num_replay_restores: int = 0
    num_prefill_units: int = 0
    num_decode_rounds: int = 0
    num_control_units: int = 0
    mask_upload_bytes: int = 0
    drafts: DraftCounters = field(default_factory=DraftCounters)


@dataclass(slots=True, eq=False, weakref_slot=True)
class Request:
    """Only the worker changes a request, but for what its consumer says: `is_cancelled` and `is_released`.

    number        of its slot; requests that were submitted earlier have lower ones
    deadline      the engine's clock at which it must have a place
    lane          its place among the engine's rows, while it has one. Nothing else of it depends on the lane.
    sequence      its tokens as the model has them; None before its first place and after the end
    is_protected  it is back from a pause and has not done anything new since: it is not paused again
    pending_upload_bytes   sent to the device for a unit that is not committed yet
    copies         what drafts are copied from, up to `num_copied_from` tokens of prompt and output
    pacing         how long its drafts are
    """

    number: int
    prepared: PreparedRequest
    deadline: float
    times: RequestTimes
    delivery: Delivery = field(default_factory=Delivery)
    counts: RequestCounts = field(default_factory=RequestCounts)
    state: RequestState = RequestState.WAITING
    is_known: bool = False
    lane: int | None = None
    sequence: PhysicalSequence | None = None
    is_protected: bool = False
    is_cancelled: bool = False
    is_released: bool = False
    consumer_error: BaseException | None = None
    pending_upload_bytes: int = 0
    copies: NgramDrafter | None = None
    num_copied_from: int = 0
    pacing: DraftPacing = field(default_factory=DraftPacing)

    @property
    def session(self) -> OutputSession:
        """What the request has put out."""
        return self.prepared.session

    @property
    def is_finished(self) -> bool:
        """Whether it has a result or an error."""
        return self.state is RequestState.FINISHED

    @property
    def physical(self) -> PhysicalSequence:
        """The sequence of a request that has one."""
        if self.sequence is None:
            raise ValueError(f"request {self.number} has no sequence")
        return self.sequence

    @property
    def ready_state(self) -> RequestState:
        """What comes next for a request whose memory is complete."""
        sequence = self.physical
        if sequence.num_unprocessed_prompt_tokens:
            return RequestState.PREFILL
        if self.session.pending_control_tokens:
            return RequestState.CONTROL_READY
        # A prompt that was known to its end: the first token is still to be drawn from what the model said there.
        return RequestState.DECODE_READY if sequence.num_generated_tokens else RequestState.PREFILL

    @property
    def num_unit_tokens(self) -> int:
        """Tokens that its next units run before anything new is committed: the rest of the prompt, or one round's."""
        sequence = self.physical
        return len(sequence.ledger) - sequence.execution_frontier

    def move_to(self, state: RequestState) -> None:
        """Raises InternalError for a step that no request takes."""
        self.state = checked_move(self.state, state)
