"""Phases: reasoning, the separator behind it, and the rest."""

from __future__ import annotations

from random import Random

import pytest

from infernix.errors import InternalError
from infernix.frontend.answer_reader import AnswerReader
from infernix.frontend.content_reader import ContentReader
from infernix.frontend.framing import Framing
from infernix.frontend.phases import StartingPhase
from infernix.frontend.reading import ContentPiece, ReadingEvent, ReasoningPiece
from support.chat_output import CHAT, THINK_CLOSE, TURN_START, XML, answer_tokens, text_tokens

SPELLED = {token: CHAT.token_bytes[token] for token in XML.passing_ids}


def reader_in(phase: StartingPhase, *, is_exact: bool, framing: Framing = XML) -> AnswerReader:
    return AnswerReader(CHAT, framing, phase, ContentReader(SPELLED), is_exact=is_exact, spelled=SPELLED)


def split(events: list[ReadingEvent]) -> tuple[str, str]:
    """Reasoning and content."""
    kinds = (ReasoningPiece, ContentPiece)
    texts = [b"".join(event.data for event in events if isinstance(event, kind)).decode() for kind in kinds]
    return texts[0], texts[1]


def read(reader: AnswerReader, tokens: list[int], *, is_complete: bool = True) -> tuple[str, str]:
    events = [event for token in tokens for event in reader.feed(token)]
    return split(events + reader.finish(is_complete=is_complete))


@pytest.mark.parametrize(
    ("answer", "reasoning", "exact", "free"),
    [
        # (answer, reasoning, content under a grammar, content without one)
        ("hm\n</think>\n\nok", "hm", "ok", "ok"),
        ("hm</think>\n\nok", "hm", "ok", "ok"),
        ("</think>\n\nok", "", "ok", "ok"),
        ("\n</think>\n\nok", "", "ok", "ok"),
        # One line break before the close is framing; bytes behind the separator are content.
        ("hm\n\n</think>\n\n ok \n", "hm\n", " ok \n", "ok \n"),
        ("\n\nhm\n</think>\n\n\n\nok", "\n\nhm", "\n\nok", "ok"),
        ("hm\n</think>\n\n", "hm", "", ""),
        # Control tokens that pass are text, and so is a mark that is no token.
        ("a<tool_call>\n<think>b\n</tool_call>\n</think>\n\nok", "a<tool_call>\n<think>b\n</tool_call>", "ok", "ok"),
    ],
)
def test_reasoning_then_content(answer: str, reasoning: str, exact: str, free: str) -> None:
    rng = Random(answer)
    for _ in range(10):
        tokens = answer_tokens(answer, XML, rng)
        assert read(reader_in(StartingPhase.THINKING, is_exact=True), tokens) == (reasoning, exact)
        assert read(reader_in(StartingPhase.THINKING, is_exact=False), tokens) == (reasoning, free)


@pytest.mark.parametrize("is_exact", [True, False])
def test_the_close_in_ordinary_letters_is_reasoning(is_exact: bool) -> None:
    rng = Random(9)
    for _ in range(20):
        tokens = [*text_tokens(b"a</think>\n\nb\n", rng), THINK_CLOSE, *text_tokens(b"\n\nok", rng)]
        reader = reader_in(StartingPhase.THINKING, is_exact=is_exact)
        assert read(reader, tokens) == ("a</think>\n\nb", "ok")


def test_one_token_may_hold_the_separator_and_the_content() -> None:
    merged = CHAT.token_bytes.index(b"\n\n{")
    assert read(reader_in(StartingPhase.THINKING, is_exact=True), [THINK_CLOSE, merged]) == ("", "{")
    assert read(reader_in(StartingPhase.THINKING, is_exact=True), [THINK_CLOSE, ord("\n"), ord("\n")]) == ("", "")


def test_thinking_is_open_until_its_close() -> None:
    reader = reader_in(StartingPhase.THINKING, is_exact=True)
    seen = []
    for token in [ord("a"), THINK_CLOSE, ord("\n"), ord("\n"), ord("b")]:
        seen.append(reader.is_thinking)
        reader.feed(token)
    assert seen == [True, True, False, False, False]


@pytest.mark.parametrize("phase", [StartingPhase.CONTENT, StartingPhase.RAW])
@pytest.mark.parametrize("is_exact", [True, False])
def test_without_thinking_all_is_content_as_it_stands(phase: StartingPhase, is_exact: bool) -> None:
    reader = reader_in(phase, is_exact=is_exact)
    assert not reader.is_thinking
    assert read(reader, text_tokens(b"\n\n a</think>\n\nb ")) == ("", "\n\n a</think>\n\nb ")


def test_a_model_may_open_its_reasoning_itself_where_no_grammar_forbids_it() -> None:
    tokens = answer_tokens("<think>\nhm\n</think>\n\nok")
    assert read(reader_in(StartingPhase.CONTENT, is_exact=False), tokens) == ("hm", "ok")
    # Later, and in a raw text, the mark is only text.
    tokens = answer_tokens("a<think>b")
    assert read(reader_in(StartingPhase.CONTENT, is_exact=False), tokens) == ("", "a<think>b")
    assert read(reader_in(StartingPhase.RAW, is_exact=False), answer_tokens("<think>b")) == ("", "<think>b")


def test_a_limit_in_the_reasoning_leaves_what_there_is() -> None:
    for is_exact in (True, False):
        reader = reader_in(StartingPhase.THINKING, is_exact=is_exact)
        assert read(reader, text_tokens(b"hm\n"), is_complete=False) == ("hm\n", "")
        reader = reader_in(StartingPhase.THINKING, is_exact=is_exact)
        assert read(reader, answer_tokens("hm\n</think>\n"), is_complete=False) == ("hm", "")
    assert read(reader_in(StartingPhase.THINKING, is_exact=False), text_tokens(b"hm")) == ("hm", "")


@pytest.mark.parametrize(
    "answer", ["hm", "hm</think>", "hm</think>\n", "hm</think>ok", "hm</think>\nok", "hm</think></think>"]
)
def test_what_the_grammar_cannot_have_taken_is_an_internal_error(answer: str) -> None:
    with pytest.raises(InternalError):
        read(reader_in(StartingPhase.THINKING, is_exact=True), answer_tokens(answer))


def test_without_a_grammar_anything_may_follow_the_close() -> None:
    for answer, content in [
        ("hm</think>ok", "ok"),
        ("hm</think></think> ok", " ok"),
        ("hm</think>\n<tool_call>x", "<tool_call>x"),
    ]:
        assert read(reader_in(StartingPhase.THINKING, is_exact=False), answer_tokens(answer)) == ("hm", content)


def test_other_control_tokens_are_no_text() -> None:
    reader = reader_in(StartingPhase.THINKING, is_exact=False)
    assert read(reader, [ord("a"), TURN_START, THINK_CLOSE, ord("b"), TURN_START]) == ("a", "b")


def test_a_copy_goes_its_own_way() -> None:
    reader = reader_in(StartingPhase.THINKING, is_exact=True)
    reader.feed(ord("\n"))
    twin = reader.copy()
    assert read(twin, answer_tokens("</think>\n\nok")) == ("", "ok")
    assert reader.is_thinking
    assert read(reader, answer_tokens("a</think>\n\nno")) == ("\na", "no")
