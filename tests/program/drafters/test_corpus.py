"""Lookups against a search of the whole text, and against a plain form of what the table remembers."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from numpy.typing import NDArray

from infernix.program.drafters import corpus as corpus_module
from infernix.program.drafters.corpus import MAX_CORPUS_TOKENS, MAX_MATCH_TOKENS, WINDOWS, Corpus, Match

NUM_TOKENS = 1000
BOUNDARY = 999
IS_BOUNDARY = np.arange(NUM_TOKENS) == BOUNDARY


def corpus_of(text: list[int], capacity: int = 4096) -> Corpus:
    corpus = Corpus(IS_BOUNDARY, capacity)
    corpus.append(text)
    return corpus


def num_matched(text: list[int], end: int) -> int:
    """How many tokens up to `end` are those at the end of the text."""
    count = 0
    while (
        count < MAX_MATCH_TOKENS
        and end - count >= 0
        and text[end - count] == text[len(text) - 1 - count]
        and text[end - count] != BOUNDARY
    ):
        count += 1
    return count


def continuation(text: list[int], end: int, num_wanted: int) -> tuple[int, ...]:
    following = text[end + 1 : end + 1 + num_wanted]
    return tuple(following[: following.index(BOUNDARY)] if BOUNDARY in following else following)


def best_of(text: list[int], ends: set[int], num_wanted: int) -> Match | None:
    """The best match among these places, by the rule."""
    matches = [(num_matched(text, end), len(continuation(text, end, num_wanted)), end) for end in ends]
    best = max(matches, default=(0, 0, 0))
    return Match(best[0], continuation(text, best[2], num_wanted)) if best[0] >= WINDOWS[-1] else None


def every_place(text: list[int]) -> set[int]:
    """Where a match of the smallest window may end: something follows that is no boundary."""
    return {end for end in range(len(text) - 1) if text[end + 1] != BOUNDARY}


def remembered_places(text: list[int]) -> set[int]:
    """The last four places of each of the text's last windows, in a table without collisions."""
    table: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for end in sorted(every_place(text)):
        for window in WINDOWS:
            content = tuple(text[end + 1 - window : end + 1])
            if end + 1 >= window and BOUNDARY not in content:
                table[content].append(end)
    last = [tuple(text[-window:]) for window in WINDOWS if len(text) >= window]
    return {end for content in last if BOUNDARY not in content for end in table[content][-4:]}


def text_with_copies(rng: np.random.Generator, num_pieces: int, num_ids: int) -> list[int]:
    """Random tokens, between them copies of earlier stretches and a few boundaries; it often ends within a copy."""
    text = rng.integers(0, num_ids, 30).tolist()
    for _ in range(num_pieces):
        if rng.random() < 0.7:
            start = int(rng.integers(0, len(text) - 5))
            text += text[start : start + int(rng.integers(4, 100))]
        else:
            text += rng.integers(0, num_ids, int(rng.integers(1, 8))).tolist()
        if rng.random() < 0.15:
            text.append(BOUNDARY)
    return text


@pytest.mark.parametrize("seed", range(60))
def test_matches_are_the_best_of_the_whole_text(seed: int) -> None:
    """With many ids, hardly any window of four comes more often than the table remembers."""
    rng = np.random.default_rng(seed)
    text = text_with_copies(rng, 6, 900)
    num_wanted = int(rng.integers(1, 20))
    found = corpus_of(text).longest_match(num_wanted)
    if remembered_places(text) >= {end for end in every_place(text) if num_matched(text, end) >= WINDOWS[-1]}:
        assert found == best_of(text, every_place(text), num_wanted)
    else:
        assert found == best_of(text, remembered_places(text), num_wanted)


@pytest.mark.parametrize("num_ids", [1, 2, 5, 30])
@pytest.mark.parametrize("seed", range(25))
def test_of_a_frequent_window_the_last_four_places_are_known(seed: int, num_ids: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    text = text_with_copies(rng, 8, num_ids)
    num_wanted = int(rng.integers(1, 66))
    assert corpus_of(text).longest_match(num_wanted) == best_of(text, remembered_places(text), num_wanted)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("capacity", [100, 5000])
def test_how_the_text_is_cut_into_calls_makes_no_difference(
    seed: int, capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_module, "_TOKENS_A_STEP", 37)
    rng = np.random.default_rng(seed)
    text = text_with_copies(rng, 8, 8)
    whole, pieces = corpus_of(text, capacity), Corpus(IS_BOUNDARY, capacity)
    one_by_one = Corpus(IS_BOUNDARY, capacity)
    while text:
        size = int(rng.integers(0, 40))
        pieces.append(text[:size])
        for token in text[:size]:
            one_by_one.append([token])
        text = text[size:]
    assert whole.longest_match(10) == pieces.longest_match(10) == one_by_one.longest_match(10)
    if capacity == 5000:
        assert np.array_equal(whole._buckets, pieces._buckets)
        assert np.array_equal(whole._buckets, one_by_one._buckets)


def test_tokens_that_were_pushed_out_are_forgotten() -> None:
    """All that is found is in the last tokens, nearly always the best of them: a small table has collisions."""
    num_lookups = num_best = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        text = text_with_copies(rng, 8, 900)
        capacity = int(rng.integers(20, 200))
        corpus = Corpus(IS_BOUNDARY, capacity)
        for start in range(0, len(text), 7):
            corpus.append(text[start : start + 7])
            known = text[: start + 7][-capacity:]
            found, best = corpus.longest_match(8), best_of(known, remembered_places(known), 8)
            num_lookups += best is not None
            num_best += best is not None and found == best
            assert found == best or found in {None, *(best_of(known, {end}, 8) for end in every_place(known))}
    assert num_lookups > 100
    assert num_best / num_lookups > 0.95


def test_a_text_longer_than_the_capacity_in_one_call() -> None:
    text = [*range(50), *range(20, 30)]
    assert corpus_of(text, 45).longest_match(5) == Match(10, (30, 31, 32, 33, 34))
    assert corpus_of(text, 25).longest_match(5) is None


def test_nothing_is_found_without_a_text() -> None:
    assert Corpus(IS_BOUNDARY, 10).longest_match(5) is None
    for text in ([], [1], [1, 1, 1, 1], [1, 2, 3, 4, 5], [1, 2, 3, 9, 1, 2, 3]):
        assert corpus_of(text).longest_match(5) is None
    assert corpus_of([1, 2, 3, 4, 9, 1, 2, 3, 4]).longest_match(3) == Match(4, (9, 1, 2))


def test_a_match_and_its_continuation_stay_within_their_segments() -> None:
    phrase = [1, 2, 3, 4, 5, 6]
    assert corpus_of([*phrase, 7, BOUNDARY, 8, *phrase]).longest_match(5) == Match(6, (7,))
    assert corpus_of([*phrase, BOUNDARY, 8, *phrase]).longest_match(5) is None, "nothing follows in the segment"
    split = [1, 2, BOUNDARY, 3, 4, 5, 6, 7]
    assert corpus_of([*split, *split[:-1]]).longest_match(5) == Match(4, (7, 1, 2))
    assert corpus_of([1, 2, 3, 4, 5, BOUNDARY]).longest_match(5) is None


def test_the_longest_match_wins_then_the_longest_continuation_then_the_last_place() -> None:
    longer = [9, 1, 2, 3, 4, 11, 12]
    shorter = [8, 1, 2, 3, 4, 21, 22]
    assert corpus_of([*longer, *shorter, 9, 1, 2, 3, 4]).longest_match(2) == Match(5, (11, 12))
    cut = [9, 1, 2, 3, 4, 31, BOUNDARY]
    assert corpus_of([*longer, *cut, 9, 1, 2, 3, 4]).longest_match(2) == Match(5, (11, 12))
    other = [9, 1, 2, 3, 4, 41, 42]
    assert corpus_of([*longer, BOUNDARY, *other, 9, 1, 2, 3, 4]).longest_match(2) == Match(5, (41, 42))


def test_a_repetition_may_overlap_itself() -> None:
    assert corpus_of([1, 2] * 20).longest_match(4) == Match(38, (1, 2))
    assert corpus_of([1, 2] * 60).longest_match(6) == Match(MAX_MATCH_TOKENS, (1, 2, 1, 2, 1, 2))


def test_a_collision_is_no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    """All windows in one bucket: what it holds is compared token by token."""

    def same_bucket(text: NDArray[np.int32], window: int, num_bits: int) -> NDArray[np.intp]:
        return np.zeros(text.size - window + 1, dtype=np.intp)

    monkeypatch.setattr(corpus_module, "_buckets_of", same_bucket)
    monkeypatch.setattr(corpus_module, "_bucket_of", lambda window, num_bits: 0)
    assert corpus_of(list(range(100))).longest_match(5) is None
    assert corpus_of([*range(100), 7, 7, 7, 7, 7]).longest_match(5) == Match(4, (7,))


def test_memory_follows_the_capacity_and_has_a_bound() -> None:
    def num_bytes(corpus: Corpus) -> int:
        return corpus._buckets.nbytes + corpus._tokens.nbytes + corpus._next_slot.nbytes

    small = Corpus(IS_BOUNDARY, 1000)
    large = Corpus(IS_BOUNDARY, 10**12)
    assert num_bytes(small) < 100_000
    assert num_bytes(large) < 25 << 20
    assert large._tokens.size == MAX_CORPUS_TOKENS
    for _ in range(50):
        small.append(list(range(900)))
    assert num_bytes(small) < 100_000


def test_a_corpus_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token, not 0"):
        Corpus(IS_BOUNDARY, 0)


def test_the_callers_tokens_stay_as_they_are() -> None:
    tokens = np.array([1, BOUNDARY, 2], dtype=np.int32)
    Corpus(IS_BOUNDARY, 10).append(tokens)
    assert tokens.tolist() == [1, BOUNDARY, 2]
