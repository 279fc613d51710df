"""Taking a sequence's memory away for a while, and giving it back as it was.

By snapshot the model's memory is copied to the host and back. By replay it is dropped, and the model runs over the
committed tokens again: nothing is sampled, no mask is asked for, nothing is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from infernix.program.sequence import PhysicalSequence, SequenceSnapshot


def pause_by_snapshot(sequence: PhysicalSequence) -> None:
    """Copies the memory to the host and gives it back; between units only."""
    sequence.require_ready()
    drafting = None if sequence.drafting is None else sequence.drafting.snapshot()
    sequence.snapshot = SequenceSnapshot(sequence.cache.snapshot(), drafting)
    _pause(sequence)


def pause_by_replay(sequence: PhysicalSequence) -> None:
    """Gives the memory back; between units, or in the middle of an earlier replay."""
    if sequence.is_paused or sequence.is_pending:
        sequence.require_ready()
    _pause(sequence)


def revoke_snapshot(sequence: PhysicalSequence) -> None:
    """Drops a paused sequence's snapshot: it will be replayed."""
    if not sequence.is_paused:
        raise ValueError("the sequence is not paused")
    sequence.snapshot = None


def resume(sequence: PhysicalSequence, num_tokens: int) -> bool:
    """Takes room up to the frontier and for `num_tokens` tokens of the next unit; False, with nothing changed, where
    there is none. A snapshot is restored at once; otherwise `replay_chunk` has to run until nothing is left to replay.
    """
    if not sequence.is_paused:
        raise ValueError("the sequence is not paused")
    if not sequence.cache.reserve(sequence.execution_frontier + num_tokens):
        return False
    snapshot = sequence.snapshot
    if snapshot is not None:
        if not sequence.cache.restore(snapshot.cache):
            sequence.cache.release()
            return False
        if snapshot.drafting is None or sequence.drafting is None or not sequence.drafting.restore(snapshot.drafting):
            sequence.drafting = None  # without room for a drafter's memory it goes on without drafts
    sequence.snapshot = None
    sequence.is_paused = False
    return True


def replay_chunk(
    sequence: PhysicalSequence,
    run: Callable[[PhysicalSequence, Sequence[int]], None],
    prefill_chunk_tokens: int,
) -> None:
    """Runs the next part of the history with `run`, in chunks as large as those of prefill.

    The state is that of an undisturbed run up to rounding: there the generated tokens came one by one.
    """
    if sequence.is_paused or not sequence.num_tokens_to_replay:
        raise ValueError("there is nothing to replay")
    start = sequence.cache.num_tokens
    end = min(sequence.execution_frontier, start + prefill_chunk_tokens)
    run(sequence, sequence.ledger[start:end])


def _pause(sequence: PhysicalSequence) -> None:
    sequence.cache.release()
    if sequence.drafting is not None:
        sequence.drafting.clear()
    sequence.is_paused = True
