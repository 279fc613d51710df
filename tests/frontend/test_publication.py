from __future__ import annotations

from infernix.frontend.publication import Publisher
from infernix.frontend.reading import ContentPiece, ReadingEvent, ReasoningPiece
from infernix.results import OutputChannel, OutputDelta, PublishedDelta
from infernix.tools import ToolCallDelta


def content(text: str) -> OutputDelta:
    return OutputDelta(OutputChannel.CONTENT, text)


def reasoning(text: str) -> OutputDelta:
    return OutputDelta(OutputChannel.REASONING, text)


def publish(publisher: Publisher, *events: ReadingEvent) -> list[PublishedDelta]:
    deltas: list[PublishedDelta] = []
    publisher.publish(events, deltas)
    return deltas


def finish(publisher: Publisher) -> list[PublishedDelta]:
    deltas: list[PublishedDelta] = []
    publisher.finish(deltas)
    return deltas


def test_pieces_of_one_commit_and_one_channel_are_one_delta() -> None:
    publisher = Publisher(())
    events = [ReasoningPiece(b"a"), ReasoningPiece(b"b"), ContentPiece(b"c"), ContentPiece(b"d")]
    assert publish(publisher, *events) == [reasoning("ab"), content("cd")]
    assert publish(publisher, ContentPiece(b"e")) == [content("e")]


def test_a_character_is_held_until_it_is_whole() -> None:
    publisher = Publisher(())
    assert publish(publisher, ContentPiece(b"a\xe5\x9c")) == [content("a")]
    assert publish(publisher.copy(), ContentPiece(b"x")) == [content("\ufffdx")]
    assert publish(publisher, ContentPiece(b"\xa8")) == [content("在")]
    assert finish(publisher) == []


def test_a_character_does_not_go_from_one_channel_to_the_next() -> None:
    publisher = Publisher(())
    assert publish(publisher, ReasoningPiece(b"\xe5\x9c")) == []
    assert publish(publisher, ContentPiece(b"\xa8")) == [reasoning("\ufffd"), content("\ufffd")]
    assert publish(publisher, ContentPiece(b"\xe5"), ToolCallDelta(0, "f", "")) == [
        content("\ufffd"),
        ToolCallDelta(0, "f", ""),
    ]


def test_pieces_of_a_call_are_joined_but_the_one_with_the_name() -> None:
    pieces = [
        ToolCallDelta(0, "f", ""),
        ToolCallDelta(0, None, "{"),
        ToolCallDelta(0, None, "}"),
        ToolCallDelta(1, "g", ""),
    ]
    assert publish(Publisher(()), *pieces) == [pieces[0], ToolCallDelta(0, None, "{}"), pieces[3]]


def test_a_stop_string_ends_everything() -> None:
    publisher = Publisher(("END", "é"))
    assert publish(publisher, ContentPiece(b"aE")) == [content("a")]
    assert publish(publisher, ContentPiece(b"NDx"), ToolCallDelta(0, "f", "")) == []
    assert publisher.matched_stop_string == "END"
    assert publish(publisher, ContentPiece(b"y")) == finish(publisher) == []
    publisher = Publisher(("END", "é"))
    assert publish(publisher, ReasoningPiece(b"a\xc3"), ReasoningPiece(b"\xa9b")) == [reasoning("a")]
    assert publisher.matched_stop_string == "é"


def test_stop_strings_do_not_reach_over_channels() -> None:
    publisher = Publisher(("ab",))
    assert publish(publisher, ReasoningPiece(b"xa")) == [reasoning("x")]
    assert publish(publisher, ContentPiece(b"b")) == [reasoning("a"), content("b")]
    assert publish(publisher, ContentPiece(b"a"), ToolCallDelta(0, "f", "")) == [
        content("a"),
        ToolCallDelta(0, "f", ""),
    ]
