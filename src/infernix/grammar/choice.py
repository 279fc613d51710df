"""The choice constraint: the content is exactly one of the given strings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from infernix.errors import ConstraintTooLarge, InvalidChoice
from infernix.grammar import ir

MAX_SOURCE_BYTES = 4 << 20


def build_choice(choices: Sequence[str]) -> ir.Grammar:
    """The language whose members are the UTF-8 bytes of `choices`, unchanged, as one deterministic automaton.

    Order and duplicates carry no meaning. Takes time linear in the number of bytes, apart from sorting. Raises
    InvalidChoice for an empty list or for an entry with a lone surrogate (`index` names it), and ConstraintTooLarge
    for entries of more than MAX_SOURCE_BYTES UTF-8 bytes in total, duplicates counted.
    """
    if not choices:
        raise InvalidChoice("the list of choices is empty")
    return ir.Grammar.of(_trie(sorted(set(_encode(choices)))))


def _encode(choices: Iterable[str]) -> list[bytes]:
    encoded: list[bytes] = []
    num_bytes = 0
    for index, choice in enumerate(choices):
        try:
            data = choice.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidChoice("a lone surrogate is not a character", index) from error
        num_bytes += len(data)
        if num_bytes > MAX_SOURCE_BYTES:
            raise ConstraintTooLarge(f"the choices have more than {MAX_SOURCE_BYTES} bytes (MAX_SOURCE_BYTES)")
        encoded.append(data)
    return encoded


def _trie(words: Iterable[bytes]) -> ir.Automaton:
    """A prefix tree of sorted, distinct `words`."""
    edges: list[tuple[int, int, int, int]] = []
    accepting: set[int] = set()
    # path[n] is the state after the first n bytes of the word before: in sorted order a new word leaves the tree
    # built so far on that path.
    path = [0]
    previous = b""
    for word in words:
        num_shared = _num_shared_bytes(previous, word)
        del path[num_shared + 1 :]
        for byte in word[num_shared:]:
            target = len(edges) + 1
            edges.append((path[-1], byte, byte, target))
            path.append(target)
        accepting.add(path[-1])
        previous = word
    return ir.Automaton(len(edges) + 1, tuple(edges), frozenset(accepting))


def _num_shared_bytes(left: bytes, right: bytes) -> int:
    for index, (left_byte, right_byte) in enumerate(zip(left, right, strict=False)):
        if left_byte != right_byte:
            return index
    return min(len(left), len(right))
