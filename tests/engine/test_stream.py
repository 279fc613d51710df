from __future__ import annotations

import threading

import numpy as np
import pytest
from numpy.typing import ArrayLike

from infernix.engine import Engine
from infernix.errors import InvalidPrompt, NonFiniteLogits
from infernix.options import RequestOptions, SamplingOptions
from infernix.results import FinishReason
from support.scripted_model import preferring, saying, scripted_loaded
from support.vocabularies import EOS_IDS, nasty_token, nasty_vocabulary

VOCABULARY = nasty_vocabulary()
NUM_TOKENS = VOCABULARY.num_tokens
LETTER_A, LETTER_B, EOS = nasty_token("a"), nasty_token("b"), EOS_IDS[0]
HALF = nasty_token(b"\xe5\x9c")


def say(*tokens: int) -> Engine:
    return Engine(scripted_loaded(saying(tokens, 1, NUM_TOKENS), VOCABULARY))


def random_logits(so_far: tuple[int, ...]) -> ArrayLike:
    return np.random.default_rng(list(so_far)).standard_normal(NUM_TOKENS)


def test_pieces_come_as_they_are_committed() -> None:
    stream = say(LETTER_A, nasty_token(b"\xc3"), nasty_token(b"\xa9"), EOS).stream("a")
    assert iter(stream) is stream
    assert list(stream) == ["a", "é"]
    assert (stream.result.text, stream.result.finish_reason) == ("aé", FinishReason.STOP_TOKEN)
    assert list(stream) == []


@pytest.mark.parametrize("seed", range(20))
def test_the_pieces_joined_are_the_text_of_generate(seed: int) -> None:
    """Random tokens of a vocabulary full of halves of characters."""
    engine = Engine(scripted_loaded(random_logits, VOCABULARY))
    options = RequestOptions(max_new_tokens=30, sampling=SamplingOptions(temperature=1.0, seed=seed))
    stream = engine.stream([seed], options)
    text = "".join(stream)
    whole = engine.generate([seed], options)
    assert text == stream.result.text == whole.text
    assert stream.result.token_ids == whole.token_ids


def test_a_wrong_request_fails_when_the_stream_is_made() -> None:
    with pytest.raises(InvalidPrompt):
        say(LETTER_A).stream("")


def test_a_stream_that_nobody_reads_runs_to_its_end() -> None:
    loaded = scripted_loaded(saying([LETTER_A], 1, NUM_TOKENS), VOCABULARY)
    engine = Engine(loaded, max_concurrency=1)
    stream = engine.stream("a", RequestOptions(max_new_tokens=3))
    engine.generate("a", RequestOptions(max_new_tokens=1))  # has its turn after the stream
    assert loaded.model.units == [1] * 4
    assert list(stream) == ["a"] * 3


def test_there_is_no_result_before_the_end() -> None:
    stream = say(LETTER_A).stream("a", RequestOptions(max_new_tokens=2))
    next(stream)
    with pytest.raises(RuntimeError, match="has not finished"):
        _ = stream.result
    next(stream)
    assert stream.result.text == "aa"


def held_back(num_tokens: int) -> tuple[Engine, threading.Event]:
    """An engine that says "a" so many times at once, and again only after the event."""
    go_on = threading.Event()

    def script(so_far: tuple[int, ...]) -> ArrayLike:
        assert len(so_far) <= num_tokens or go_on.wait(60)
        return preferring(NUM_TOKENS, {LETTER_A: 1.0})

    return Engine(scripted_loaded(script, VOCABULARY)), go_on


def test_cancelling_between_pieces() -> None:
    engine, go_on = held_back(2)
    stream = engine.stream("a")
    assert [next(stream), next(stream)] == ["a", "a"]
    stream.cancel()
    go_on.set()
    # A unit that was running is committed, no other is begun.
    rest = "".join(stream)
    assert rest in ("", "a")
    result = stream.result
    assert (result.text, result.finish_reason) == ("aa" + rest, FinishReason.CANCELLED)
    assert result.token_ids == (LETTER_A,) * len(result.text)


def test_a_cancelled_stream_has_a_result_without_being_read_on() -> None:
    engine, go_on = held_back(0)
    stream = engine.stream("a")
    stream.cancel()
    go_on.set()
    assert stream.result.finish_reason is FinishReason.CANCELLED
    assert stream.result.text == "".join(stream)
    assert stream.result.text in ("", "a")


def test_cancelling_after_the_end_changes_nothing() -> None:
    stream = say(LETTER_A, EOS).stream("a")
    assert list(stream) == ["a"]
    stream.cancel()
    assert stream.result.finish_reason is FinishReason.STOP_TOKEN


def test_cancelling_inside_a_character() -> None:
    is_running, go_on = threading.Event(), threading.Event()
    wants = [LETTER_A, HALF, HALF]

    def script(so_far: tuple[int, ...]) -> ArrayLike:
        if len(so_far) == 3:
            is_running.set()
            assert go_on.wait(60)
        return preferring(NUM_TOKENS, {wants[len(so_far) - 1]: 1.0})

    stream = Engine(scripted_loaded(script, VOCABULARY)).stream("a")
    assert next(stream) == "a"
    assert is_running.wait(60)
    stream.cancel()
    go_on.set()
    # The second half shows that the first belongs to nothing, and the end that the second does not either.
    assert list(stream) == ["\ufffd", "\ufffd"]
    assert stream.result.text == "a\ufffd\ufffd"
    assert stream.result.finish_reason is FinishReason.CANCELLED


def test_leaving_the_block_cancels(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, go_on = held_back(1)
    with engine.stream("a") as stream:
        for _ in stream:
            break
        cancel = stream._handle.cancel

        def cancel_and_go_on() -> None:
            cancel()
            go_on.set()

        monkeypatch.setattr(stream._handle, "cancel", cancel_and_go_on)
    assert stream.result.finish_reason is FinishReason.CANCELLED
    assert stream.result.text in ("a", "aa")


def test_leaving_the_block_after_the_end_does_not() -> None:
    with say(LETTER_A, EOS).stream("a") as stream:
        assert list(stream) == ["a"]
    assert stream.result.finish_reason is FinishReason.STOP_TOKEN


def test_cancelling_from_another_thread_while_a_unit_runs() -> None:
    unit_started, go_on = threading.Event(), threading.Event()

    def script(so_far: tuple[int, ...]) -> ArrayLike:
        if len(so_far) == 3:
            unit_started.set()
            assert go_on.wait(60)
        return preferring(NUM_TOKENS, {LETTER_A: 1.0})

    stream = Engine(scripted_loaded(script, VOCABULARY)).stream("a")

    def cancel() -> None:
        assert unit_started.wait(60)
        stream.cancel()
        go_on.set()

    thread = threading.Thread(target=cancel)
    thread.start()
    pieces = list(stream)
    thread.join()
    # The unit that was running is committed, no other is begun.
    assert pieces == ["a", "a", "a"]
    assert stream.result.finish_reason is FinishReason.CANCELLED


def test_an_error_comes_after_the_pieces_before_it_and_stays_the_result() -> None:
    def script(so_far: tuple[int, ...]) -> ArrayLike:
        return np.full(NUM_TOKENS, np.nan) if len(so_far) == 3 else preferring(NUM_TOKENS, {LETTER_A: 1.0})

    stream = Engine(scripted_loaded(script, VOCABULARY)).stream("a")
    assert [next(stream), next(stream)] == ["a", "a"]
    with pytest.raises(NonFiniteLogits):
        next(stream)
    assert list(stream) == []
    with pytest.raises(NonFiniteLogits):
        _ = stream.result
    stream.close()


def test_an_abandoned_stream_holds_up_nobody() -> None:
    engine = say(LETTER_A)
    abandoned = engine.stream("a")
    assert next(abandoned) == "a"
    assert engine.generate("a", RequestOptions(max_new_tokens=3)).text == "aaa"
    assert next(abandoned) == "a"


def test_interleaved_streams_get_what_they_would_get_alone() -> None:
    engine = Engine(scripted_loaded(random_logits, VOCABULARY))
    options = [
        RequestOptions(max_new_tokens=25, sampling=SamplingOptions(temperature=1.0, seed=seed)) for seed in (1, 2)
    ]
    alone = [engine.generate("a", option).text for option in options]
    streams = [engine.stream("a", option) for option in options]
    texts = ["", ""]
    for _ in range(25):
        for place, stream in enumerate(streams):
            texts[place] += next(stream, "")
    assert texts == alone
