"""What tests of the Program share: a vocabulary, a script whose every token counts, and decisions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from infernix.program.pending import RowDecision
from support.vocabularies import nasty_vocabulary

VOCABULARY = nasty_vocabulary()
NUM_LOGITS = 64  # wider than the vocabulary's 50
GO_ON = RowDecision(num_accepted=1, is_terminal=False)
STOP = RowDecision(num_accepted=0, is_terminal=True)


def spread(so_far: tuple[int, ...]) -> ArrayLike:
    """Logits that depend on every token so far."""
    return np.random.default_rng(list(so_far)).standard_normal(NUM_LOGITS)
