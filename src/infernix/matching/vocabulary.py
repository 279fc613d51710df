"""Token bytes and token classes, as the frontend states them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


class TokenClass(IntEnum):
    """What a token may be used for.

    TEXT     matches by its bytes; a TEXT token without bytes is never legal by them, since it makes no progress
    CONTROL  legal only where a rule names its id
    EOS      legal only where the language may end
    NEVER    never legal: padding, ids without a token, tokens of another modality
    """

    TEXT = 0
    CONTROL = 1
    EOS = 2
    NEVER = 3


class Vocabulary:
    """The token domain of one model: `token_bytes[id]` and `classes[id]` for every id below `num_tokens`.

    Classes are given, never guessed from a token's spelling. At least one EOS token is needed, or no constrained
    text could end.
    """

    def __init__(self, token_bytes: Sequence[bytes], classes: Sequence[TokenClass]) -> None:
        if len(token_bytes) != len(classes):
            raise ValueError(f"{len(token_bytes)} tokens but {len(classes)} classes")
        if TokenClass.EOS not in classes:
            raise ValueError("a vocabulary needs an EOS token")
        self.token_bytes: tuple[bytes, ...] = tuple(token_bytes)
        self.classes: NDArray[np.uint8] = np.array(classes, dtype=np.uint8)
        self.classes.flags.writeable = False

    @property
    def num_tokens(self) -> int:
        """Size of the token domain (not of the model's padded output)."""
        return len(self.token_bytes)

    @property
    def num_mask_words(self) -> int:
        """32-bit words of a mask row: ceil(num_tokens / 32)."""
        return (self.num_tokens + 31) // 32

    @cached_property
    def eos_ids(self) -> frozenset[int]:
        """Ids of class EOS."""
        return frozenset(np.flatnonzero(self.classes == TokenClass.EOS).tolist())
