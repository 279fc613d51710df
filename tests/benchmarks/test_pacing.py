from __future__ import annotations

import numpy as np
import pytest

from benchmarks.pacing import Rounds, Text, rounds_of, speed

NO_BOUNDARY = np.zeros(200, dtype=np.bool_)
SOURCE = tuple(range(100, 130))


def counted(text: Text, way: str) -> tuple[int, int, int]:
    found = rounds_of(text, way, NO_BOUNDARY)
    assert found.num_tokens == len(text.answer) - 1
    # The token that a last round brings by itself may be one too many.
    assert found.num_rounds + found.num_right - found.num_tokens in (0, 1)
    return found.num_rounds, found.num_drafted, found.num_right


def test_a_true_copy_takes_few_rounds() -> None:
    text = Text("copy", (*SOURCE, 1), SOURCE, budget=30)
    assert counted(text, "none") == (29, 0, 0)
    # Four tokens are said before they can be found again, and with the drafts come one token each time.
    assert counted(text, "full") == (5, 24, 24)
    assert counted(text, "paced") == (5, 24, 24)


def test_wrong_copies_are_paced() -> None:
    motif = (1, 2, 3, 4)
    answer = tuple(token for number in range(12) for token in (*motif, 50 + number))
    text = Text("motifs", (90, 91), answer, budget=len(answer))
    num_rounds, num_drafted, num_right = counted(text, "full")
    assert (num_rounds, num_right) == (len(answer) - 1, 0)
    paced = counted(text, "paced")
    assert paced[0] == num_rounds
    assert 0 < paced[1] < num_drafted / 4


def test_drafts_behind_the_end_are_refused() -> None:
    text = Text("end", (*SOURCE, 1), SOURCE[:10], budget=40)
    assert counted(text, "full") == (4, 15, 6)


def test_speed_weighs_rounds_and_columns() -> None:
    rounds = [Rounds("a", "full", 100, 50, 100, 50), Rounds("b", "full", 100, 100, 0, 0)]
    assert speed(rounds, 0.0) == pytest.approx(2**0.5)
    assert speed(rounds, 0.5) == pytest.approx(1.0)
