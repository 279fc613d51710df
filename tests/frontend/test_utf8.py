from __future__ import annotations

import itertools
import random

import pytest

from infernix.frontend.utf8 import decode_piece, decode_rest

NASTY_TEXTS = [
    b"plain",
    "é在😀\U0010ffff".encode(),
    b"\xff\xfe",
    b"\xc3(",
    b"\xed\xa0\x80",  # a surrogate
    b"\xf4\x90\x80\x80",  # past U+10FFFF
    b"\xc0\xaf",  # too long a form
    b"\xe2\x82",  # cut short
    b"\xf0\x9f\x98a",  # cut short, then a letter
    b"\x80\x80a\xe2\x28\xa1",
    b"\xf0\x9f\xe5\x9c\xa8",  # cut short by another character
]


def decode(pieces: list[bytes]) -> str:
    held, texts = b"", []
    for piece in pieces:
        text, held = decode_piece(held, piece)
        texts.append(text)
    return "".join([*texts, decode_rest(held)])


@pytest.mark.parametrize("data", NASTY_TEXTS)
def test_every_way_to_cut_gives_the_same_text(data: bytes) -> None:
    expected = data.decode("utf-8", errors="replace")
    places = range(1, len(data))
    for num_cuts in range(len(data)):
        for cuts in itertools.combinations(places, num_cuts):
            borders = [0, *cuts, len(data)]
            assert decode([data[a:b] for a, b in itertools.pairwise(borders)]) == expected


def test_random_bytes_in_random_pieces() -> None:
    rng = random.Random(1)
    alphabet = b"a\x80\xa8\xbf\xc3\xe0\xe5\xed\xef\xf0\xf4\xff"
    for _ in range(2000):
        data = bytes(rng.choices(alphabet, k=rng.randint(0, 12)))
        cuts = sorted(rng.choices(range(len(data) + 1), k=3))
        borders = [0, *cuts, len(data)]
        pieces = [data[a:b] for a, b in itertools.pairwise(borders)]
        assert decode(pieces) == data.decode("utf-8", errors="replace")


def test_an_unfinished_character_is_held_back() -> None:
    text, held = decode_piece(b"", b"ab\xf0\x9f\x98")
    assert (text, held) == ("ab", b"\xf0\x9f\x98")
    assert decode_piece(held, b"\x80c") == ("😀c", b"")
    assert decode_rest(held) == "\ufffd"
    assert decode_rest(b"") == ""


def test_bytes_that_can_belong_to_nothing_are_replaced_at_once() -> None:
    assert decode_piece(b"", b"a\xffb") == ("a\ufffdb", b"")
    assert decode_piece(b"\xe5", b"(") == ("\ufffd(", b"")
