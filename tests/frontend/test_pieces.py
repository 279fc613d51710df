from __future__ import annotations

from random import Random

import pytest

from infernix.frontend.pieces import appended, num_held, split_at


@pytest.mark.parametrize(
    ("data", "delimiter", "expected"),
    [
        (b"ab", b"x", (b"ab", b"", False)),
        (b"abx", b"xy", (b"ab", b"x", False)),
        (b"abxyc", b"xy", (b"ab", b"c", True)),
        (b"xyxy", b"xy", (b"", b"xy", True)),
        (b"aab", b"aab", (b"", b"", True)),
        (b"aaab", b"aab", (b"a", b"", True)),
        (b"zaaa", b"aab", (b"za", b"aa", False)),
        (b"", b"xy", (b"", b"", False)),
    ],
)
def test_what_may_begin_the_delimiter_is_kept_apart(
    data: bytes, delimiter: bytes, expected: tuple[bytes, bytes, bool]
) -> None:
    assert split_at(data, delimiter) == expected


def test_a_delimiter_is_found_however_the_text_is_cut() -> None:
    rng = Random(1)
    for _ in range(2000):
        delimiter = bytes(rng.choices(b"ab", k=rng.randint(1, 4)))
        data = bytes(rng.choices(b"ab", k=rng.randint(0, 12)))
        before, held, found, begin = b"", b"", False, 0
        while begin < len(data) and not found:
            end = rng.randint(begin + 1, len(data))
            piece, held, found = split_at(held + data[begin:end], delimiter)
            before += piece
            begin = end
        assert found == (delimiter in data)
        if found:
            assert (before, held + data[begin:]) == tuple(data.split(delimiter, 1))
        else:
            assert before + held == data
            assert len(held) == num_held(data, delimiter)


def test_appended_pieces_join_and_older_tuples_stay() -> None:
    rng = Random(2)
    parts: tuple[bytes, ...] = ()
    text = b""
    for _ in range(3000):
        older = parts
        piece = bytes(rng.choices(b"xyz", k=rng.randint(0, 9)))
        parts = appended(parts, piece)
        assert b"".join(older) == text
        text += piece
        assert b"".join(parts) == text
        assert len(parts) <= max(1, len(text)).bit_length() + 1
