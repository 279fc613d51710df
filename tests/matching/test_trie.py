"""The trie of a vocabulary against a plain reading of its tokens."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import product
from random import Random

import numpy as np
import pytest

from infernix.grammar.ir import MAX_CODE_POINT
from infernix.grammar.unicode import utf8_sequences
from infernix.matching.atoms import (
    ATOM_OF_ASCII,
    ATOM_RANGES,
    BROKEN_ATOM,
    LINE_SEPARATOR_ATOM,
    NON_ASCII_ATOM,
    NUM_ASCII_ATOMS,
    WIDE_SPACE_ATOM,
)
from infernix.matching.forest import (
    ATOMS_BELOW,
    FIRST_CHILD,
    FIRST_TOKEN,
    LAST_CHILD,
    LAST_TOKEN,
    MAX_CHARACTERS_BELOW,
    NEXT_TOKEN,
    Forest,
)
from infernix.matching.trie import TokenTrie, build_trie
from infernix.matching.vocabulary import TokenClass, Vocabulary
from support.vocabularies import byte_vocabulary, nasty_vocabulary, text_vocabulary

PIECES = (
    *("a", "b", "z", "0", "7", "A", "G", '"', "\\", "{", " ", "\n", "\t", "\x00", "\x7f"),
    *("é", "ÿ", "߿", "ࠀ", "在", "\u2028", "\u2029", "\xa0", "\u2003", "\u200b", "\u3000", "\ufeff", "\ufffd"),
    *("\ud7ff", "\ue000", "😀", "\U00010000", "\U0010ffff"),
)
BROKEN = (
    *(b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc2", b"\xc3(", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xe0\xa0"),
    *(
        b"\xed\xa0\x80",
        b"\xed\xbf",
        b"\xe2\x80",
        b"\xe2\x80\xa8\xe2",
        b"\xf0\x8f\xbf\xbf",
        b"\xf0\x90\x80",
        b"\xf0\x9f",
    ),
    *(
        b"\xf4\x90\x80\x80",
        b"\xf4\x8f\xbf",
        b"\xf5\x80\x80\x80",
        b"\xff",
        b"\xfe\xff",
        b"\xe5\x9c",
        b"\xa8",
        b"\xf0\x9fa",
    ),
)


def random_tokens(rng: Random) -> list[tuple[bytes, TokenClass]]:
    tokens = []
    for _ in range(rng.choice((1, 3, 30, 200))):
        data = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 6))).encode()
        kind = rng.random()
        if kind < 0.2:
            data = data[rng.randint(0, len(data) - 1) :]
        elif kind < 0.4:
            data = data[: rng.randint(1, len(data))]
        elif kind < 0.55:
            data += rng.choice(BROKEN) + (b"" if rng.random() < 0.5 else rng.choice(PIECES).encode())
        elif kind < 0.65:
            data = bytes(rng.randrange(256) for _ in range(rng.randint(1, 5)))
        elif kind < 0.7:
            data = b""
        elif kind < 0.8 and tokens:
            data = rng.choice(tokens)[0]
        elif kind < 0.9 and tokens:
            data = rng.choice(tokens)[0] + rng.choice(PIECES).encode()
        tokens.append((data, TokenClass(rng.choice((0, 0, 0, 0, 0, 1, 2, 3)))))
    tokens.append((b"<eos>", TokenClass.EOS))
    rng.shuffle(tokens)
    return tokens


def vocabulary_of(tokens: Sequence[tuple[bytes, TokenClass]]) -> Vocabulary:
    return Vocabulary([data for data, _ in tokens], [token_class for _, token_class in tokens])


def is_beginning(data: bytes) -> bool:
    """Whether some character's bytes begin with `data` and go on, told by trying what can follow."""
    tails = [b"\x80" * count for count in (1, 2, 3)] + [b"\xbf", b"\xbf\xbf", b"\x90\x80\x80", b"\xa0\x80"]
    for tail in tails:
        try:
            if len((data + tail).decode()) == 1:
                return True
        except UnicodeDecodeError:
            continue
    return False


def characters_of(data: bytes) -> list[str | None]:
    """Characters, an unfinished one at the end as U+FFFD and each broken byte as None."""
    characters: list[str | None] = []
    begin = 0
    while begin < len(data):
        for end in range(begin + 1, min(begin + 4, len(data)) + 1):
            try:
                characters.append(data[begin:end].decode())
            except UnicodeDecodeError:
                continue
            begin = end
            break
        else:
            if len(data) - begin < 4 and is_beginning(data[begin:]):
                characters.append("\ufffd")
                return characters
            characters.append(None)
            begin += 1
    return characters


def atoms_of(characters: list[str | None]) -> int:
    """Their atoms as a set of bits, looked up in the ranges."""
    atoms = 0
    for character in characters:
        if character is None:
            atoms |= 1 << BROKEN_ATOM
            continue
        (atom,) = (
            atom
            for atom, ranges in enumerate(ATOM_RANGES)
            if any(low <= ord(character) <= high for low, high in ranges)
        )
        atoms |= 1 << atom
    return atoms


def suffix_atoms(data: bytes, begin: int) -> int:
    """Atoms of a token from `begin` on; a place inside a character counts as broken."""
    if begin == len(data):
        return 0
    return atoms_of(characters_of(data[begin:])) if is_boundary(data, begin) else 1 << BROKEN_ATOM


def is_boundary(data: bytes, begin: int) -> bool:
    """Whether reading from the token's first byte comes to `begin` between two characters."""
    read = 0
    for character in characters_of(data):
        if read >= begin:
            break
        read += 1 if character is None else len(character.encode())
    return read == begin


def texts_of(vocabulary: Vocabulary) -> dict[int, bytes]:
    """The tokens that a trie holds."""
    return {
        token: data
        for token, data in enumerate(vocabulary.token_bytes)
        if vocabulary.classes[token] == TokenClass.TEXT and data
    }


def nodes_by_prefix(forest: Forest) -> dict[tuple[int, bytes], int]:
    """All nodes by group and the bytes on the way to them, found from the roots on."""
    found: dict[tuple[int, bytes], int] = {}
    waiting = [
        (group, b"", range(forest.root_begins[group], forest.root_begins[group + 1]))
        for group in range(len(forest.root_begins) - 1)
    ]
    while waiting:
        group, before, children = waiting.pop()
        assert forest.node_bytes[children].tolist() == sorted(set(forest.node_bytes[children].tolist()))
        for node in children:
            prefix = before + bytes([forest.node_bytes[node]])
            found[group, prefix] = node
            waiting.append((group, prefix, range(forest.nodes[node, FIRST_CHILD], forest.nodes[node, LAST_CHILD])))
    assert sorted(found.values()) == list(range(len(forest.nodes)))
    return found


def check_forest(forest: Forest, texts: dict[int, tuple[int, bytes]]) -> None:
    """Every figure of a forest against the list of tokens, each with its group and its bytes."""
    members: dict[tuple[int, bytes], list[bytes]] = {}
    for group, data in texts.values():
        for end in range(1, len(data) + 1):
            members.setdefault((group, data[:end]), []).append(data)
    nodes = nodes_by_prefix(forest)
    assert nodes.keys() == members.keys()
    for (group, prefix), node in nodes.items():
        row = forest.nodes[node]
        below = members[group, prefix]
        tokens = forest.token_ids[row[FIRST_TOKEN] : row[NEXT_TOKEN]].tolist()
        assert [texts[token] for token in tokens] == [(group, data) for data in below if data == prefix]
        tokens = forest.token_ids[row[FIRST_TOKEN] : row[LAST_TOKEN]].tolist()
        assert [texts[token] for token in tokens] == [(group, data) for data in sorted(below)]
        atoms_below = 0
        for data in below:
            atoms_below |= suffix_atoms(data, len(prefix))
        assert row[ATOMS_BELOW : ATOMS_BELOW + 2].tolist() == np.array([atoms_below]).view(np.int32).tolist()
        # The figure for a token that is cut inside a character here does not matter: its atoms say broken then.
        if not atoms_below >> BROKEN_ATOM & 1:
            most = max(len(characters_of(data[len(prefix) :])) for data in below)
            assert row[MAX_CHARACTERS_BELOW] == most
    assert sorted(forest.token_ids.tolist()) == sorted(texts)
    assert forest.max_token_bytes == max((len(data) for _, data in texts.values()), default=0)


def check(trie: TokenTrie, texts: dict[int, bytes]) -> None:
    """Every figure of the trie against the list of tokens."""
    check_forest(trie.forest, {token: (0, data) for token, data in texts.items()})
    for entry, token in enumerate(trie.token_ids.tolist()):
        data = texts[token]
        assert trie.flat[trie.ends[entry] : trie.ends[entry + 1]].tobytes() == data
        assert trie.token_atoms[entry] == suffix_atoms(data, 0)
        assert trie.num_characters[entry] == len(characters_of(data))


@pytest.mark.parametrize("seed", range(40))
def test_random_vocabularies(seed: int) -> None:
    vocabulary = vocabulary_of(random_tokens(Random(seed)))
    check(build_trie(vocabulary), texts_of(vocabulary))


@pytest.mark.parametrize(
    "vocabulary",
    [
        nasty_vocabulary(),
        byte_vocabulary(),
        text_vocabulary([]),
        text_vocabulary(["", ""]),
        text_vocabulary(["a"]),
        text_vocabulary(["a", "a", "ab", "ab", "abc"]),
        text_vocabulary(["x" * 90, "x" * 89 + "y", "é" * 40, "在" * 40 + "\ud7ff"]),
        text_vocabulary(["never text"], control=["a", "ab"], never=["abc"]),
        text_vocabulary([*PIECES, *BROKEN]),
        text_vocabulary([first + second for first in BROKEN for second in BROKEN]),
    ],
)
def test_chosen_vocabularies(vocabulary: Vocabulary) -> None:
    check(build_trie(vocabulary), texts_of(vocabulary))


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_every_kind_of_first_and_later_byte(length: int) -> None:
    """The bytes at the borders of table 3-7 of the Unicode Standard in every combination, each one a token."""
    leads = (0x7F, 0x80, 0xBF, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF)
    seconds = (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)
    later = (0x7F, 0x80, 0xBF, 0xC0)
    vocabulary = text_vocabulary([bytes(data) for data in product(*[leads, seconds, later, (0x80, 0xC0)][:length])])
    check(build_trie(vocabulary), texts_of(vocabulary))


class TestAtoms:
    def test_they_are_a_partition_of_all_characters(self) -> None:
        covered = np.zeros(MAX_CODE_POINT + 1, np.int64)
        for ranges in ATOM_RANGES:
            for low, high in ranges:
                covered[low : high + 1] += 1
        assert covered.min() == covered.max() == 1

    def test_a_set_fits_into_a_word_of_63_bits(self) -> None:
        assert len(ATOM_RANGES) == BROKEN_ATOM == NUM_ASCII_ATOMS + 3 <= 62

    def test_ascii_is_looked_up_by_byte(self) -> None:
        for byte in range(128):
            assert 1 << int(ATOM_OF_ASCII[byte]) == atoms_of([chr(byte)])
            assert ATOM_OF_ASCII[byte] < NUM_ASCII_ATOMS
        assert all(high < 128 for ranges in ATOM_RANGES[:NUM_ASCII_ATOMS] for _, high in ranges)

    def test_white_space_beyond_ascii_is_ecmascripts(self) -> None:
        """WhiteSpace is U+FEFF and general category Zs, LineTerminator U+2028 and U+2029 (ECMA-262, 12.2 and 12.3)."""
        spaces = {c for c in range(128, MAX_CODE_POINT + 1) if unicodedata.category(chr(c)) == "Zs"} | {0xFEFF}
        members = [
            {code for low, high in ATOM_RANGES[atom] for code in range(low, high + 1)}
            for atom in (WIDE_SPACE_ATOM, LINE_SEPARATOR_ATOM)
        ]
        assert members == [spaces, {0x2028, 0x2029}]

    def test_an_unfinished_character_can_become_one_of_its_atom(self) -> None:
        encodings = list(utf8_sequences(ATOM_RANGES[NON_ASCII_ATOM]))
        beginnings = {
            bytes(data)
            for encoding in encodings
            for length in range(1, len(encoding))
            for data in _corners(encoding[:length])
        }
        for data in sorted(beginnings):
            assert atoms_of(characters_of(data)) == 1 << NON_ASCII_ATOM
        for code in range(128, MAX_CODE_POINT + 1, 61):
            if not 0xD800 <= code <= 0xDFFF:
                encoded = chr(code).encode()
                for length in range(1, len(encoded)):
                    assert any(
                        all(low <= byte <= high for byte, (low, high) in zip(encoded[:length], encoding, strict=False))
                        for encoding in encodings
                    )


def _corners(ranges: Sequence[tuple[int, int]]) -> list[list[int]]:
    corners: list[list[int]] = [[]]
    for low, high in ranges:
        corners = [[*corner, byte] for corner in corners for byte in (low, high)]
    return corners


@pytest.mark.parametrize("seed", range(10))
def test_the_forest_of_some_of_the_tokens(seed: int) -> None:
    rng = Random(1000 + seed)
    vocabulary = vocabulary_of(random_tokens(rng))
    trie = build_trie(vocabulary)
    texts = texts_of(vocabulary)
    for num_groups in (0, 1, 2, 5):
        groups = np.array([rng.randint(-1, num_groups - 1) for _ in trie.token_ids], np.int64)
        chosen = zip(trie.token_ids.tolist(), groups.tolist(), strict=True)
        check_forest(trie.grouped(groups), {token: (group, texts[token]) for token, group in chosen if group >= 0})


@pytest.mark.parametrize("seed", range(20))
def test_tokens_without_what_they_begin_with(seed: int) -> None:
    rng = Random(2000 + seed)
    vocabulary = vocabulary_of(random_tokens(rng))
    trie = build_trie(vocabulary)
    texts = texts_of(vocabulary)
    atoms = rng.choice((0, 1 << NON_ASCII_ATOM, rng.getrandbits(BROKEN_ATOM), (1 << BROKEN_ATOM) - 1))
    prefixes = trie.prefixes(atoms)
    groups = np.full(len(trie.token_ids), -1)
    expected: dict[int, tuple[int, bytes]] = {}
    for entry, token in enumerate(trie.token_ids.tolist()):
        data = texts[token]
        num_characters, num_bytes = 0, 0
        for character in characters_of(data):
            if character is None or atoms_of([character]) & ~atoms:
                break
            num_characters += 1
            is_cut = character == "\ufffd" and data[num_bytes : num_bytes + 3] != character.encode()
            num_bytes = len(data) if is_cut else num_bytes + len(character.encode())
        assert (prefixes.num_bytes[entry], prefixes.num_characters[entry]) == (num_bytes, num_characters)
        if num_bytes < len(data) and rng.random() < 0.9:
            groups[entry] = min(num_characters, 2)
            expected[token] = (min(num_characters, 2), data[num_bytes:])
    check_forest(trie.suffixes(prefixes, groups), expected)
