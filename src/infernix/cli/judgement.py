"""Does a text belong to a language, and if not, where does it leave it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from infernix.cli.expectation import (
    ByteTable,
    describe_bytes,
    describe_characters,
    next_characters,
    utf8_tail_bytes,
)
from infernix.errors import TextLocation
from infernix.matching import DEAD


class LanguageTable(ByteTable, Protocol):
    """The part of `infernix.matching.ConfigurationTable` that is needed here."""

    @property
    def start(self) -> int: ...

    def may_end(self, configuration: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to be said of a text.

    offset       the first byte that cannot stand where it stands; the text's length where it only ends too early
    location     the line and column, from 1, of the character that this byte is part of
    expected     what could stand there, for a reader
    """

    belongs: bool
    offset: int = 0
    ends_early: bool = False
    location: TextLocation | None = None
    expected: str = ""
    only_final_newline: bool = False

    def describe(self, name: str) -> str:
        """The lines to print; `name` is what the text is called."""
        if self.location is None:
            return f"{name} belongs to the language"
        place = f"byte {self.offset} (line {self.location.line}, column {self.location.column})"
        if self.ends_early:
            return f"{name} ends too early, at {place}\n{self.location.excerpt()}\ncould follow: {self.expected}"
        hint = "\nwithout its final line break the text would belong" if self.only_final_newline else ""
        head = f"{name} leaves the language at {place}\n{self.location.excerpt()}"
        return f"{head}\ncould stand there: {self.expected}{hint}"


def judge(table: LanguageTable, data: bytes) -> Judgement:
    """Follows `data` byte by byte until it leaves the language."""
    configuration = character_configuration = table.start
    character_offset = num_tail_bytes = 0
    for offset, byte in enumerate(data):
        if num_tail_bytes and byte & 0xC0 == 0x80:
            num_tail_bytes -= 1
        else:
            character_offset, character_configuration = offset, configuration
            num_tail_bytes = utf8_tail_bytes(byte) or 0
        following = table.step_byte(configuration, byte)
        if following == DEAD:
            return Judgement(
                belongs=False,
                offset=offset,
                location=_location(data, character_offset),
                expected=_expected(table, character_configuration),
                only_final_newline=data[offset:] in (b"\n", b"\r\n") and table.may_end(configuration),
            )
        configuration = following
    if table.may_end(configuration):
        return Judgement(belongs=True)
    inside_character = next_characters(table, configuration) == ()
    return Judgement(
        belongs=False,
        offset=len(data),
        ends_early=True,
        location=_location(data, len(data)),
        expected=describe_bytes(table.allowed_bytes(configuration))
        if inside_character
        else _expected(table, configuration),
    )


def _expected(table: LanguageTable, configuration: int) -> str:
    ranges = next_characters(table, configuration)
    if not table.may_end(configuration):
        return describe_characters(ranges)
    return f"{describe_characters(ranges)}, or the end of the text" if ranges else "only the end of the text"


def _location(data: bytes, offset: int) -> TextLocation:
    # Bytes that are no UTF-8 count as one replacement character each, or a few together.
    return TextLocation.at(data.decode("utf-8", "replace"), len(data[:offset].decode("utf-8", "replace")))
