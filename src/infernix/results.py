"""What a caller gets back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar


class FinishReason(StrEnum):
    """Why generation ended."""

    STOP_TOKEN = "stop_token"
    OUTPUT_LIMIT = "output_limit"
    CONTEXT_CAPACITY = "context_capacity"
    CANCELLED = "cancelled"


class CacheAccess(StrEnum):
    """How the compiled grammar was obtained: found, built by this request, or awaited while another built it."""

    HIT = "hit"
    BUILT = "built"
    WAITED = "waited"


@dataclass(frozen=True, slots=True)
class ConstraintObservation:
    """What is known of the constraint when the request ends.

    complete     the committed text may end here under the constraint
    terminated   the end-of-sequence token was accepted: a normal constrained completion
    mask_positions   positions for which a legal set was computed
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


@dataclass(frozen=True, slots=True)
class GenerationTimings:
    """Wall seconds: preparing the request, prefill (prompt to first token), decode (the tokens after it), and all."""

    prepare_seconds: float
    prefill_seconds: float
    decode_seconds: float
    total_seconds: float


class _Validating(Protocol):
    @classmethod
    def model_validate_json(cls, json_data: str) -> Any: ...


ModelT = TypeVar("ModelT", bound=_Validating)


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """The committed output of one request.

    `text` is the content; it ends in U+FFFD only where a limit cut a character. `token_ids` holds every committed
    token, the end-of-sequence token included.
    """

    text: str
    token_ids: tuple[int, ...]
    num_prompt_tokens: int
    finish_reason: FinishReason
    constraint: ConstraintObservation | None
    timings: GenerationTimings

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
