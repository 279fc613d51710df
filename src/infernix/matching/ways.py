"""Ways to a mask row: what the kernel is given apart from the configuration.

They are known of the vocabulary alone and made once, because a row takes little longer than making one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.addresses import address_of
from infernix.matching.arena import NO_LIMIT
from infernix.matching.forest import Forest
from infernix.matching.row_kinds import SOMETHING_ELSE
from infernix.matching.rows import BaseRow

# Columns of a way: addresses and lengths, and what `row_filling` calls by the same names.
KIND = 0
NODE_BYTES = 1
NODES = 2
NUM_NODES = 3
TOKEN_IDS = 4
NUM_IDS = 5
SUFFIX_BYTES = 6  # SUFFIX_BYTES .. 10: the same of the other forest
PARTS = 11
NUM_PARTS = 12
MAX_CHARACTERS = 13
REACH = 14
BASE = 15
BASE_HASH = 16
BY_LENGTH = 17  # token ids, the shortest ones first
END_BY_LENGTH = 18
NUM_BY_LENGTH = 19  # by number of characters: how many have up to so many
MAX_LENGTH = 20
MIN_LEFT = 21  # for how many characters left it is a way
MAX_LEFT = 22
WAY_WIDTH = 23


class TokensUpTo:
    """The tokens of a set that have up to max_characters characters.

    min_left: for configurations that have room for fewer, it would take too long to leave out those that are too long.
    row: their mask row. by_length: int32, tokens of the set, the shortest first; num_by_length: int64 by number of
    characters, how many of them have up to so many.
    """

    def __init__(
        self,
        row: BaseRow,
        min_left: int,
        max_characters: int,
        by_length: NDArray[np.int32],
        num_by_length: NDArray[np.int64],
    ) -> None:
        self.row = row
        self.min_left = min_left
        self.max_characters = max_characters
        self._by_length = by_length
        self._num_by_length = num_by_length

    def numbers(self) -> tuple[int, int, int, int, int, int]:
        """BY_LENGTH .. MAX_LEFT."""
        lengths = self._num_by_length
        longest = len(lengths) - 1
        end = int(lengths[self.max_characters])
        # Up to the next length that some token has.
        max_left = int(np.searchsorted(lengths, end, side="right")) - 1
        if max_left == longest:
            max_left = NO_LIMIT
        addresses = address_of(self._by_length, np.int32), address_of(lengths, np.int64)
        return addresses[0], end, addresses[1], longest, self.min_left, max_left


class Way:
    """The row of `base` without some tokens, and of every token in some parts of a forest that can follow.

    numbers: int64 [WAY_WIDTH]. max_depth: how far a walk goes down.
    """

    __slots__ = ("_kept", "base", "max_depth", "numbers")

    def __init__(
        self,
        forest: Forest,
        parts: NDArray[np.int64],
        base: BaseRow,
        kind: int = SOMETHING_ELSE,
        max_characters: int = 0,
        reach: int = 0,
        suffixes: Forest | None = None,
        tokens: TokensUpTo | None = None,
    ) -> None:
        """`kind` says what the parts and the base are, as in the kernel; so do max_characters and reach.

        tokens: those of the base, where it depends on the configuration how long they may be.
        """
        self.base = base
        # A token's last byte has nothing below it.
        self.max_depth = max(forest.max_token_bytes, suffixes.max_token_bytes if suffixes else 0)
        self.numbers = np.array(
            [
                kind,
                *_numbers_of(forest),
                *_numbers_of(suffixes or forest),
                address_of(parts, np.int64),
                len(parts),
                max_characters,
                reach,
                address_of(base.words, np.uint32),
                base.digest,
                *((0, 0, 0, 0, 0, NO_LIMIT) if tokens is None else tokens.numbers()),
            ],
            np.int64,
        )
        self._kept = (forest, suffixes, parts, tokens)


def _numbers_of(forest: Forest) -> tuple[int, int, int, int, int]:
    """NODE_BYTES .. NUM_IDS."""
    return (
        address_of(forest.node_bytes, np.uint8),
        address_of(forest.nodes, np.int32),
        len(forest.node_bytes),
        address_of(forest.token_ids, np.int32),
        len(forest.token_ids),
    )
