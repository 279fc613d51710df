from __future__ import annotations

import pytest

from infernix.cli.expectation import describe_bytes, describe_characters, next_characters
from infernix.cli.judgement import judge
from infernix.matching import DEAD


class FiniteTable:
    """A finite language as the plainest possible table: a configuration is a number of a known prefix."""

    def __init__(self, *members: str | bytes) -> None:
        self.members = {member.encode() if isinstance(member, str) else member for member in members}
        prefixes = {member[:end] for member in self.members for end in range(len(member) + 1)}
        self.prefixes = [None, *sorted(prefixes)]
        assert self.prefixes.index(None) == DEAD
        self.start = self.prefixes.index(b"")

    def step_byte(self, configuration: int, byte: int) -> int:
        following = self.prefixes[configuration] + bytes([byte])
        return self.prefixes.index(following) if following in self.prefixes else DEAD

    def may_end(self, configuration: int) -> bool:
        return self.prefixes[configuration] in self.members

    def allowed_bytes(self, configuration: int) -> list[int]:
        return [byte for byte in range(256) if self.step_byte(configuration, byte) != DEAD]


def test_a_member_belongs() -> None:
    assert judge(FiniteTable("yes", "no"), b"no").belongs
    assert judge(FiniteTable(""), b"").belongs


def test_the_place_is_byte_and_line_and_column() -> None:
    judgement = judge(FiniteTable("a\nöxy", "a\nöxz"), "a\nöxQ".encode())
    assert not judgement.belongs
    assert judgement.offset == 5
    assert judgement.location is not None
    assert (judgement.location.line, judgement.location.column) == (2, 3)
    assert judgement.describe("file") == (
        "file leaves the language at byte 5 (line 2, column 3)\nöxQ\n  ^\ncould stand there: 'y', 'z'"
    )


def test_inside_a_character_whole_characters_are_named() -> None:
    # é and à share their first byte: the text leaves at the second byte, and a reader wants characters.
    judgement = judge(FiniteTable("xà"), "xé".encode())
    assert judgement.offset == 2
    assert judgement.location is not None
    assert judgement.location.column == 2
    assert judgement.expected == "'à'"


def test_a_stray_continuation_byte_is_a_place_of_its_own() -> None:
    judgement = judge(FiniteTable("ab"), b"a\x80")
    assert judgement.offset == 1
    assert judgement.location is not None
    assert judgement.location.column == 2
    assert judgement.expected == "'b'"


def test_a_text_that_ends_early() -> None:
    judgement = judge(FiniteTable("abc", "ab}"), b"ab")
    assert judgement.ends_early
    assert (
        judgement.describe("t") == "t ends too early, at byte 2 (line 1, column 3)\nab\n  ^\ncould follow: 'c' or '}'"
    )


def test_a_text_that_ends_inside_a_character() -> None:
    judgement = judge(FiniteTable("é"), "é".encode()[:1])
    assert judgement.ends_early
    assert judgement.expected == "byte 0xa9"


def test_a_text_that_goes_on_after_the_end() -> None:
    assert judge(FiniteTable("a"), b"ab").expected == "only the end of the text"
    assert judge(FiniteTable("a", "ac"), b"ab").expected == "'c', or the end of the text"


@pytest.mark.parametrize("line_break", [b"\n", b"\r\n"])
def test_a_final_line_break_is_pointed_out(line_break: bytes) -> None:
    table = FiniteTable("a")
    assert judge(table, b"a" + line_break).describe("t").endswith("without its final line break the text would belong")
    assert "final line break" not in judge(table, b"a" + line_break + b"x").describe("t")
    assert "final line break" not in judge(FiniteTable("ab"), b"a" + line_break).describe("t")


def test_next_characters_of_every_encoded_length() -> None:
    alphabet = ["a", "b", "c", "\x7f", "\x80", "ߟ", "߿", "ࠀ", "힟", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
    table = FiniteTable(*alphabet)
    ranges = next_characters(table, table.start)
    assert [chr(point) for low, high in ranges for point in range(low, high + 1)] == alphabet


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(0x30, 0x39)], "'0'..'9'"),
        ([(0x22, 0x22), (0x7D, 0x7D)], "'\"' or '}'"),
        ([(0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20)], r"'\t', '\n', '\r' or ' '"),
        ([(0x20, 0x21), (0x23, 0xD7FF), (0xE000, 0x10FFFF)], "' ', '!' or '#'..U+10FFFF"),
        ([(0, 0), (0xA0, 0xA0)], "U+0000 or U+00A0"),
        ([(0x27, 0x27)], '"\'"'),
        ([], "nothing"),
    ],
)
def test_describe_characters(ranges: list[tuple[int, int]], expected: str) -> None:
    assert describe_characters(ranges) == expected


def test_a_scattered_set_is_cut_and_counted() -> None:
    assert describe_characters([(point, point) for point in range(0x400, 0x440, 2)]).endswith("or 8 more ranges")


def test_describe_bytes() -> None:
    assert describe_bytes([0x80, 0x81, 0x82, 0xA9]) == "byte 0x80..0x82 or byte 0xa9"
