"""The byte trie of a vocabulary's text tokens, in preorder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.matching.vocabulary import TokenClass, Vocabulary

# Columns of `nodes`.
BYTE = 0
DEPTH = 1  # bytes from the root, 1 for the first level
END = 2  # the node after the subtree
FIRST_TOKEN = 3  # first entry of token_ids; the next node's entry ends the range


@dataclass(frozen=True, slots=True)
class TokenTrie:
    """nodes: int32 [num_nodes + 1, 4], the last row a sentinel; token_ids: int32, ids by node; the root has no row."""

    nodes: NDArray[np.int32]
    token_ids: NDArray[np.int32]
    max_depth: int


def build_trie(vocabulary: Vocabulary) -> TokenTrie:
    """All TEXT tokens with at least one byte; tokens with equal bytes share a node."""
    entries = sorted(
        (data, token)
        for token, (data, token_class) in enumerate(
            zip(vocabulary.token_bytes, vocabulary.classes.tolist(), strict=True)
        )
        if token_class == TokenClass.TEXT and data
    )
    rows: list[list[int]] = []
    path: list[int] = []
    previous = b""
    for position, (data, _) in enumerate(entries):
        if data == previous:
            continue
        shared = 0
        for left, right in zip(previous, data, strict=False):
            if left != right:
                break
            shared += 1
        for node in path[shared:]:
            rows[node][END] = len(rows)
        del path[shared:]
        for depth in range(shared, len(data)):
            path.append(len(rows))
            rows.append([data[depth], depth + 1, 0, position])
        previous = data
    for node in path:
        rows[node][END] = len(rows)
    rows.append([0, 0, len(rows), len(entries)])
    # Inner nodes made together with a token below them begin where that token does and end there too, but for the
    # last of them: FIRST_TOKEN of the following row closes the range.
    return TokenTrie(
        np.array(rows, np.int32),
        np.array([token for _, token in entries], np.int32),
        max((len(data) for data, _ in entries), default=0),
    )
