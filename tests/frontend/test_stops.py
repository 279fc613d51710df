from __future__ import annotations

from random import Random

import pytest

from infernix.frontend.stops import StopFilter


def plain(stops: tuple[bytes, ...], text: bytes) -> tuple[bytes, int | None]:
    """Byte by byte: the first end at which a string is complete, and there the first that was declared."""
    for end in range(len(text) + 1):
        for index, stop in enumerate(stops):
            if text[:end].endswith(stop):
                return text[: end - len(stop)], index
    return text, None


@pytest.mark.parametrize(
    ("stops", "text", "published", "index"),
    [
        ((b"b",), b"abc", b"a", 0),
        ((b"abc", b"b"), b"abc", b"a", 1),
        ((b"b", b"ab"), b"ab", b"a", 0),
        ((b"ab", b"b"), b"ab", b"", 0),
        ((b"aab",), b"aaab", b"a", 0),
        ((), b"abc", b"abc", None),
    ],
)
def test_the_first_complete_string_is_found(
    stops: tuple[bytes, ...], text: bytes, published: bytes, index: int | None
) -> None:
    assert StopFilter(stops).feed(text) == (published, index)


def test_what_may_begin_a_string_is_held_back() -> None:
    found = StopFilter((b"\n\n", b"END"))
    assert found.feed(b"a\n") == (b"a", None)
    assert found.feed(b"EN") == (b"\n", None)
    twin = found.copy()
    assert twin.feed(b"D!") == (b"", 1)
    assert found.feed(b"d") == (b"ENd", None)
    assert found.feed(b"\n") == (b"", None)
    assert found.flush() == b"\n"
    assert found.flush() == b""


def test_what_is_found_does_not_depend_on_the_cuts() -> None:
    rng = Random(8)
    for _ in range(2000):
        stops = tuple(bytes(rng.choices(b"ab", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 3)))
        text = bytes(rng.choices(b"abc", k=rng.randint(0, 12)))
        finder, published, index, begin = StopFilter(stops), b"", None, 0
        while begin < len(text) and index is None:
            end = rng.randint(begin + 1, len(text))
            piece, index = finder.feed(text[begin:end])
            published, begin = published + piece, end
        assert (published + finder.flush(), index) == plain(stops, text)
