"""Checking the numbers that an engine is set up with."""

from __future__ import annotations

import math
from dataclasses import dataclass

from infernix.engine.drafting import NgramOptions
from infernix.errors import InvalidOptions
from infernix.options import shown_value
from infernix.program.drafters.corpus import MAX_MATCH_TOKENS, WINDOWS
from infernix.program.drafters.ngram import MAX_DRAFT_TOKENS

MAX_CONCURRENCY = 64
MAX_PENDING_REQUESTS = 1 << 16
DEFAULT_CACHE_TOKENS = 32768


def checked_ngram(num_draft_tokens: int, min_match: int) -> NgramOptions:
    """How copies are made. Raises InvalidOptions for a number out of its range."""
    check_integer("ngram_draft_tokens", num_draft_tokens, 0, MAX_DRAFT_TOKENS)
    check_integer("ngram_min_match", min_match, WINDOWS[-1], MAX_MATCH_TOKENS)
    return NgramOptions(num_draft_tokens, min_match)


@dataclass(frozen=True, slots=True)
class CoreLimits:
    """Numbers that are fixed at the start; see `Engine` for their meaning."""

    max_concurrency: int = 4
    max_pending_requests: int = 16
    pending_timeout_seconds: float = 30.0
    snapshot_bytes: int = 256 << 20
    max_cached_prefixes: int = 32


def checked_limits(limits: CoreLimits) -> CoreLimits:
    """The same numbers. Raises InvalidOptions for one out of its range."""
    check_integer("max_concurrency", limits.max_concurrency, 1, MAX_CONCURRENCY)
    check_integer("max_pending_requests", limits.max_pending_requests, 0, MAX_PENDING_REQUESTS)
    check_integer("snapshot_bytes", limits.snapshot_bytes, 0, 2**63 - 1)
    check_integer("max_cached_prefixes", limits.max_cached_prefixes, 0, MAX_PENDING_REQUESTS)
    check_seconds("pending_timeout_seconds", limits.pending_timeout_seconds)
    if limits.pending_timeout_seconds <= 0:
        raise InvalidOptions(
            f"{shown_value(limits.pending_timeout_seconds)} is not above 0", field="pending_timeout_seconds"
        )
    return limits


def context_and_cache(
    max_context: int | None, cache_tokens: int | None, *, available: int, max_concurrency: int
) -> tuple[int, int]:
    """The most tokens that one request has, and those that there is memory for in all.

    Without `cache_tokens` there is memory for what `max_concurrency` requests can have, but not for more than the
    larger of DEFAULT_CACHE_TOKENS and one `max_context` that was asked for. A context never goes beyond the memory.
    Raises InvalidOptions for a number out of its range.
    """
    if max_context is not None:
        _require_integer("max_context", max_context)
        if not 1 <= max_context <= available:
            message = f"{shown_value(max_context)} is outside 1..{available}, what the model has"
            raise InvalidOptions(message, field="max_context")
    if cache_tokens is None:
        bound = max(DEFAULT_CACHE_TOKENS, max_context or 0)
        cache_tokens = min((max_context or available) * max_concurrency, bound)
    check_integer("cache_tokens", cache_tokens, 1, 2**40)
    if max_context is not None and max_context > cache_tokens:
        raise InvalidOptions(f"{max_context} is more than cache_tokens, {cache_tokens}", field="max_context")
    return max_context or min(available, cache_tokens), cache_tokens


def check_integer(name: str, value: int, low: int, high: int) -> None:
    """Raises InvalidOptions unless `value` is an integer of low..high."""
    _require_integer(name, value)
    if not low <= value <= high:
        raise InvalidOptions(f"{shown_value(value)} is outside {low}..{high}", field=name)


def check_seconds(name: str, value: float) -> None:
    """Raises InvalidOptions unless `value` is a number that a clock can be compared with."""
    if not _is_number(value):
        raise InvalidOptions(f"expected a number of seconds, got {shown_value(value)}", field=name)


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    except OverflowError:  # an integer beyond all floats
        return False


def _require_integer(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidOptions(f"expected an integer, got {type(value).__name__}", field=name)
