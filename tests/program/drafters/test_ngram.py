from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infernix.program.drafters.ngram import DEFAULT_MIN_MATCH, NgramDrafter

NUM_TOKENS = 500
BOUNDARY = 499
IS_BOUNDARY = np.arange(NUM_TOKENS) == BOUNDARY


def drafter(text: list[int], **options: Any) -> NgramDrafter:
    made = NgramDrafter(IS_BOUNDARY, **{"num_draft_tokens": 7, "capacity": 2000, **options})
    made.append(text)
    return made


SOURCE = list(range(100, 160))


def test_the_prompt_is_copied_and_goes_on_being_copied() -> None:
    copying = drafter([*SOURCE, 1, 2, 3, *SOURCE[:12]])
    assert copying.propose() == tuple(SOURCE[12:19])
    copying.append(SOURCE[12:18])
    copying.append([SOURCE[18]])
    assert copying.propose() == tuple(SOURCE[19:26])
    copying.append([7])
    assert copying.propose() == (), "the text has left its source"


def test_the_requests_own_output_is_copied() -> None:
    copying = drafter([1, 2, 3])
    copying.append(SOURCE)
    assert copying.propose() == ()
    copying.append(SOURCE[20:35])
    assert copying.propose() == tuple(SOURCE[35:42])


@pytest.mark.parametrize("min_match", [4, 5, 8, 11, 12, 16, 17, 40, 64])
def test_a_match_must_be_long_enough(min_match: int) -> None:
    long_source = list(range(100, 300))
    for num_same in (min_match - 1, min_match, min_match + 1):
        copying = drafter([*long_source, 1, *long_source[:num_same]], min_match=min_match)
        assert bool(copying.propose()) == (num_same >= min_match)


def test_twelve_tokens_are_enough_if_nothing_is_said() -> None:
    assert DEFAULT_MIN_MATCH == 12
    assert drafter([*SOURCE, 1, *SOURCE[:11]]).propose() == ()
    assert len(drafter([*SOURCE, 1, *SOURCE[:12]]).propose()) == 7


@pytest.mark.parametrize("num_available", range(0, 14))
@pytest.mark.parametrize("num_neural_drafts", [0, 1, 3, 7])
def test_the_size_of_a_copy(num_available: int, num_neural_drafts: int) -> None:
    """A source with as many tokens as are drafted and two more gives them all; a shorter one all but its last two,
    if they are more than the other drafter's."""
    prompt = [*SOURCE[:12], *range(200, 200 + num_available), BOUNDARY, 1, *SOURCE[:12]]
    drafts = drafter(prompt, num_draft_tokens=7).propose(num_neural_drafts)
    if num_available >= 9:
        assert drafts == tuple(range(200, 207))
    elif num_available - 2 > num_neural_drafts:
        assert drafts == tuple(range(200, 200 + num_available - 2))
    else:
        assert drafts == ()


def test_boundaries_are_neither_matched_nor_proposed() -> None:
    prompt = [*SOURCE[:12], 5, 6, 7, 8, BOUNDARY, 9, *SOURCE[:12]]
    assert drafter(prompt).propose() == (5, 6)
    across = [*SOURCE[:6], BOUNDARY, *SOURCE[6:30]]
    assert drafter([*across, *SOURCE[:6], BOUNDARY, *SOURCE[6:12]]).propose() == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_draft_tokens": 0}, "1 to 63 tokens can be drafted, not 0"),
        ({"num_draft_tokens": 64}, "not 64"),
        ({"min_match": 3}, "a match has 4 to 64 tokens, not 3"),
        ({"min_match": 65}, "not 65"),
        ({"capacity": 0}, "at least one token"),
    ],
)
def test_numbers_out_of_range_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        drafter([], **options)


@pytest.mark.parametrize("num_draft_tokens", [1, 63])
def test_the_shortest_and_the_longest_chain(num_draft_tokens: int) -> None:
    long_source = list(range(100, 300))
    copying = drafter([*long_source, 1, *long_source[:64]], num_draft_tokens=num_draft_tokens, min_match=64)
    assert copying.propose(63) == tuple(long_source[64 : 64 + num_draft_tokens])
