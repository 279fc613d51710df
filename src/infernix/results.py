"""What a caller gets back."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, TypeVar

from infernix.tools import ToolCall, ToolCallDelta


class FinishReason(StrEnum):
    """Why generation ended."""

    STOP_TOKEN = "stop_token"
    STOP_STRING = "stop_string"
    OUTPUT_LIMIT = "output_limit"
    CONTEXT_CAPACITY = "context_capacity"
    CANCELLED = "cancelled"


class CacheAccess(StrEnum):
    """How the compiled grammar was obtained: found, built by this request, or awaited while another built it."""

    HIT = "hit"
    BUILT = "built"
    WAITED = "waited"


class OutputBranch(StrEnum):
    """What a constrained answer has turned out to be; a tool call after some content makes it TOOLS."""

    UNDECIDED = "undecided"
    CONTENT = "content"
    TOOLS = "tools"


class OutputChannel(StrEnum):
    """Where published text belongs."""

    CONTENT = "content"
    REASONING = "reasoning"


@dataclass(frozen=True, slots=True)
class OutputDelta:
    """A piece of text as it is published; never empty."""

    channel: OutputChannel
    text: str


PublishedDelta: TypeAlias = OutputDelta | ToolCallDelta
"""What a commit publishes: text, or a piece of a tool call."""


@dataclass(frozen=True, slots=True)
class GenerationStarted:
    """A request got its place on the model. Of its prompt's tokens, `num_reused_prompt_tokens` need not be run."""

    num_prompt_tokens: int
    num_reused_prompt_tokens: int


GenerationEvent: TypeAlias = GenerationStarted | PublishedDelta
"""What a request tells while it runs: that it started, once, and then all that is published, in its order."""


@dataclass(frozen=True, slots=True)
class ThinkingStatistics:
    """Thinking in one answer, in tokens.

    budget      what was allowed, None: without bound
    num_model_tokens      reasoning that the model produced, without the token that closes it
    num_injected_tokens   the forced end, closing included
    """

    budget: int | None
    num_model_tokens: int
    num_injected_tokens: int

    @property
    def was_forced(self) -> bool:
        """Whether the budget ended the reasoning."""
        return self.num_injected_tokens > 0


class ToolFallback(StrEnum):
    """Why a stretch of free output that looked like a tool call was published as content."""

    MALFORMED_STRUCTURE = "malformed_structure"
    DUPLICATE_PARAMETER = "duplicate_parameter"
    INVALID_TOOL_NAME = "invalid_tool_name"
    UNDECLARED_TOOL = "undeclared_tool"
    TRAILING_CONTENT = "trailing_content"
    TRUNCATED_TAIL = "truncated_tail"


@dataclass(frozen=True, slots=True)
class ToolDiagnostics:
    """What was noticed while tool calls were read.

    marker_seen                     the mark that opens a call came
    num_calls                       completed calls
    num_empty_arguments_omitted     values of nothing but white space where no string is admitted
    num_mismatched_arguments        values of a type that the declaration does not admit
    num_duplicates_repaired         arguments given twice with the same value (free output only)
    fallback                        why something was published as content instead, the first reason (free output only)
    was_recovered                   a call was taken although its form was not the model's own (free output only)
    """

    marker_seen: bool = False
    num_calls: int = 0
    num_empty_arguments_omitted: int = 0
    num_mismatched_arguments: int = 0
    num_duplicates_repaired: int = 0
    fallback: ToolFallback | None = None
    was_recovered: bool = False


class SpeculationBackend(StrEnum):
    """Which network drafts: none, the model's own predictor, or a drafter in a directory of its own."""

    NONE = "none"
    MTP = "mtp"
    DFLASH = "dflash"
    DFLASH2 = "dflash2"


@dataclass(frozen=True, slots=True)
class DraftCounts:
    """Drafts, and those of them that were committed."""

    num_drafted: int = 0
    num_accepted: int = 0


@dataclass(frozen=True, slots=True)
class SpeculativeStatistics:
    """What drafts brought to one request. A round brings one token and as many of its drafts as the model agrees with.

    num_rounds            rounds with drafts
    num_fallback_rounds   rounds without
    num_drafted           drafts in all
    num_accepted          drafts that were committed
    accepted_per_position   how often the first, the second, ... draft of a round was
    backend               the network that drafts; NONE where only copies do
    copies, network       the drafts that were copied from the request's own text, and those of the backend
    draft_wait_seconds    wall seconds of its rounds until the drafts of all their requests were there; a part of
                          `GenerationTimings.decode_seconds`
    """

    num_rounds: int = 0
    num_fallback_rounds: int = 0
    num_drafted: int = 0
    num_accepted: int = 0
    accepted_per_position: tuple[int, ...] = ()
    backend: SpeculationBackend = SpeculationBackend.NONE
    copies: DraftCounts = DraftCounts()
    network: DraftCounts = DraftCounts()
    draft_wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ConstraintObservation:
    """What is known of the constraint when the request ends.

    branch       whether the committed text is content or tool calls
    complete     the committed text may end here under the constraint
    terminated   the end-of-sequence token was accepted: a normal constrained completion
    mask_positions   positions for which a legal set was computed
    mask_upload_bytes   bytes of legal sets that committed units sent to the model's device; 0 where it is the CPU
    The seconds are CPU time of the host's own work: preparing (parsing, compiling or finding the grammar, making the
    matcher), filling masks, and advancing the matcher.
    """

    complete: bool
    terminated: bool
    cache: CacheAccess
    mask_positions: int
    prepare_seconds: float
    mask_seconds: float
    matcher_seconds: float
    branch: OutputBranch = OutputBranch.UNDECIDED
    mask_upload_bytes: int = 0

    def record(self) -> dict[str, Any]:
        """As a JSON object: the one form of it in bodies, streams and logs."""
        return {
            "branch": self.branch.value,
            "complete": self.complete,
            "terminated": self.terminated,
            "cache": self.cache.value,
            "mask_positions": self.mask_positions,
            "mask_upload_bytes": self.mask_upload_bytes,
            "timings_seconds": {
                "prepare": self.prepare_seconds,
                "mask": self.mask_seconds,
                "matcher": self.matcher_seconds,
            },
        }


@dataclass(frozen=True, slots=True)
class GenerationTimings:
    """Wall seconds of one request. The parts do not add up to the total: others run between this one's units.

    prepare_seconds       rendering the prompt, and preparing the request (constraint included) on the calling thread
    prefill_seconds       in units that ran its prompt, the draw of the first token included
    decode_seconds        in the rounds after it that the request took part in, as long as they lasted
    total_seconds         from the submission, with the prompt's own preparation, to the result
    queue_seconds         ready and waiting for a place
    prompt_wall_seconds   from the place to the first token; 0 where there is none
    generation_wall_seconds   from the first token to the last
    decode_share_seconds  `decode_seconds`, each round divided by the requests in it
    paused_seconds        without a place, because another request needed the memory
    replay_seconds        in units that ran tokens once more after a pause
    first_token_seconds   from the submission to the first token; None where there is none
    """

    prepare_seconds: float
    prefill_seconds: float
    decode_seconds: float
    total_seconds: float
    queue_seconds: float = 0.0
    prompt_wall_seconds: float = 0.0
    generation_wall_seconds: float = 0.0
    decode_share_seconds: float = 0.0
    paused_seconds: float = 0.0
    replay_seconds: float = 0.0
    first_token_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SchedulingStatistics:
    """How one request was moved about.

    num_bypassed       requests that came later and got a place first
    num_pauses         times that it lost its place to an older request's need of memory
    num_snapshot_restores, num_replay_restores   how it came back: from a copy of its state, or by running it again
    num_prefill_units, num_decode_rounds, num_control_units   units that it took part in
    """

    num_bypassed: int = 0
    num_pauses: int = 0
    num_snapshot_restores: int = 0
    num_replay_restores: int = 0
    num_prefill_units: int = 0
    num_decode_rounds: int = 0
    num_control_units: int = 0


class _Validating(Protocol):
    @classmethod
    def model_validate_json(cls, json_data: str) -> Any: ...


ModelT = TypeVar("ModelT", bound=_Validating)


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """The committed output of one request.

    `text` is the content; it ends in U+FFFD only where a limit cut a character. `token_ids` holds every committed
    token, the end-of-sequence token included. `reasoning` is what the model thought before the content. `tool_calls`
    holds the completed calls, also where a limit cut the next one; `finish_reason` is why the output ended, whether
    there are calls or not. `thinking` is None for an answer without thinking, `tool_diagnostics` for one without tools.
    `num_reused_prompt_tokens` of the prompt's tokens were known to the engine from earlier requests. `request_id` is
    the engine's number for the request. `speculation` is None where the engine does not draft.
    """

    text: str
    token_ids: tuple[int, ...]
    num_prompt_tokens: int
    finish_reason: FinishReason
    constraint: ConstraintObservation | None
    timings: GenerationTimings
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: ThinkingStatistics | None = None
    tool_diagnostics: ToolDiagnostics | None = None
    matched_stop_string: str | None = None
    num_reused_prompt_tokens: int = 0
    scheduling: SchedulingStatistics = field(default_factory=SchedulingStatistics)
    request_id: int = 0
    speculation: SpeculativeStatistics | None = None

    @property
    def num_generated_tokens(self) -> int:
        """Committed tokens, the end-of-sequence token included."""
        return len(self.token_ids)

    def parse(self, model: type[ModelT]) -> ModelT:
        """The text as an instance of `model`, a class with `model_validate_json` (pydantic).

        Raises what the class raises where the text does not validate, such as a text that a limit cut short.
        """
        instance: ModelT = model.model_validate_json(self.text)
        return instance
