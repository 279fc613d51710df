"""Requests without a constraint, and what holds for all requests."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from infernix.engine import Engine
from infernix.errors import (
    ContextLengthExceeded,
    EngineClosed,
    InvalidOptions,
    InvalidPrompt,
    NonFiniteLogits,
)
from infernix.options import RequestOptions, SamplingOptions, SamplingParameters
from infernix.results import FinishReason
from support.scripted_model import preferring, saying, scripted_loaded
from support.vocabularies import (
    EOS_IDS,
    PADDING,
    THINK_CLOSE,
    THINK_CLOSE_AS_TEXT,
    nasty_token,
    nasty_vocabulary,
)

VOCABULARY = nasty_vocabulary()
NUM_TOKENS = VOCABULARY.num_tokens
EOS = EOS_IDS[0]
LETTER_A, LETTER_B, OK = nasty_token("a"), nasty_token("b"), nasty_token("ok")
SAMPLED = SamplingOptions(temperature=1.0, seed=3)


def engine_for(script: Any, **options: Any) -> Engine:
    engine_options = {name: options.pop(name) for name in ("prefill_chunk_tokens", "cache_tokens") if name in options}
    return Engine(scripted_loaded(script, VOCABULARY, **options), **engine_options)


def spread(so_far: tuple[int, ...]) -> ArrayLike:
    """Logits that depend on every token so far; the end is rarely wanted."""
    logits = np.random.default_rng(list(so_far)).standard_normal(NUM_TOKENS)
    logits[list(EOS_IDS)] = -3.0
    return logits


def say(*tokens: int) -> Engine:
    """An engine that answers a one-token prompt with these tokens."""
    return engine_for(saying(tokens, 1, NUM_TOKENS))


# Ends


@pytest.mark.parametrize("eos", EOS_IDS)
def test_every_end_token_ends_the_text_without_being_text(eos: int) -> None:
    result = say(OK, LETTER_A, eos).generate("a")
    assert (result.text, result.token_ids, result.finish_reason) == (
        "oka",
        (OK, LETTER_A, eos),
        FinishReason.STOP_TOKEN,
    )
    assert (result.num_prompt_tokens, result.num_generated_tokens) == (1, 3)
    assert result.constraint is None


def test_the_output_limit_ends_the_text() -> None:
    result = say(LETTER_A).generate("a", RequestOptions(max_new_tokens=5))
    assert (result.text, result.finish_reason) == ("aaaaa", FinishReason.OUTPUT_LIMIT)


def test_the_context_ends_the_text_with_its_last_position_used() -> None:
    engine = engine_for(saying([LETTER_A], 3, NUM_TOKENS), max_context=8)
    result = engine.generate([1, 2, 3], RequestOptions(max_new_tokens=100))
    assert (result.text, result.finish_reason) == ("a" * 6, FinishReason.CONTEXT_CAPACITY)
    exactly = engine.generate([1, 2, 3], RequestOptions(max_new_tokens=6))
    assert (exactly.text, exactly.finish_reason) == ("a" * 6, FinishReason.OUTPUT_LIMIT)


def test_a_prompt_that_fills_the_context_gets_one_token_and_a_longer_one_none() -> None:
    engine = engine_for(saying([LETTER_A], 8, NUM_TOKENS), max_context=8)
    assert engine.generate([1] * 8).text == "a"
    with pytest.raises(ContextLengthExceeded, match="9 tokens and the context holds 8"):
        engine.generate([1] * 9)


def test_a_smaller_context_can_be_asked_for_and_a_larger_one_not() -> None:
    loaded = scripted_loaded(saying([LETTER_A], 1, NUM_TOKENS), VOCABULARY, max_context=32)
    engine = Engine(loaded, max_context=4)
    assert engine.max_context == 4
    assert engine.generate([1], RequestOptions(max_new_tokens=9)).text == "aaaa"
    for asked in (0, 33):
        with pytest.raises(InvalidOptions, match=f"max_context: {asked} is outside 1..32"):
            Engine(loaded, max_context=asked)


@pytest.mark.parametrize("chunk", [2, 512])
def test_no_budget_processes_the_prompt_and_nothing_else(chunk: int) -> None:
    loaded = scripted_loaded(saying([LETTER_A], 3, NUM_TOKENS), VOCABULARY)
    result = Engine(loaded, prefill_chunk_tokens=chunk).generate([1, 2, 3], RequestOptions(max_new_tokens=0))
    assert (result.text, result.token_ids, result.finish_reason) == ("", (), FinishReason.OUTPUT_LIMIT)
    assert sum(loaded.model.units) == 3


def test_a_limit_inside_a_character_shows_as_one_replacement_character() -> None:
    engine = say(LETTER_A, nasty_token(b"\xf0\x9f\x98"), nasty_token(b"\x80"), EOS)
    cut = engine.generate("a", RequestOptions(max_new_tokens=2))
    assert (cut.text, cut.finish_reason) == ("a\ufffd", FinishReason.OUTPUT_LIMIT)
    assert engine.generate("a").text == "a😀"


def test_padding_is_never_generated_and_control_tokens_are_no_text() -> None:
    wanted = preferring(NUM_TOKENS, {PADDING: 90.0, THINK_CLOSE: 9.0})
    result = engine_for(lambda _: wanted).generate("a", RequestOptions(max_new_tokens=3))
    assert (result.text, result.token_ids) == ("", (THINK_CLOSE,) * 3)


# Prompts


def test_the_three_forms_of_a_prompt() -> None:
    seen: list[tuple[int, ...]] = []

    def script(so_far: tuple[int, ...]) -> ArrayLike:
        seen.append(so_far)
        return preferring(NUM_TOKENS, {EOS: 1.0})

    engine = engine_for(script)
    for prompt in ("ok</think>", [OK, 5], [{"role": "user", "content": "ok</think>"}]):
        engine.generate(prompt)
    # Special tokens may be spelled in a raw text and not in a message.
    assert seen == [(OK, THINK_CLOSE), (OK, 5), (OK, THINK_CLOSE_AS_TEXT)]


@pytest.mark.parametrize("prompt", ["", [], [0, NUM_TOKENS], [-1], [1, "a"], [True], {"role": "user"}, 7, b"ok", None])
def test_a_prompt_that_is_none_is_refused(prompt: Any) -> None:
    loaded = scripted_loaded(spread, VOCABULARY)
    with pytest.raises(InvalidPrompt):
        Engine(loaded).generate(prompt)
    assert loaded.model.units == []


# Sampling


def test_one_seed_gives_one_answer_and_another_seed_another() -> None:
    engine = engine_for(spread)
    first = engine.generate("ok", RequestOptions(sampling=SAMPLED))
    assert engine.generate("ok", RequestOptions(sampling=SAMPLED)).token_ids == first.token_ids
    other = RequestOptions(sampling=SamplingOptions(temperature=1.0, seed=4))
    assert engine.generate("ok", other).token_ids != first.token_ids


@pytest.mark.parametrize("chunk", [1, 3])
def test_the_answer_does_not_depend_on_prefill_chunks(chunk: int) -> None:
    prompt, options = [1, 2, 3, 4, 5, 6, 7], RequestOptions(sampling=SAMPLED)
    expected = engine_for(spread).generate(prompt, options)
    assert engine_for(spread, prefill_chunk_tokens=chunk).generate(prompt, options).token_ids == expected.token_ids


def test_the_models_defaults_apply_where_the_caller_says_nothing() -> None:
    wanted = preferring(NUM_TOKENS, {LETTER_A: 2.0, LETTER_B: 1.5})
    defaults = SamplingParameters(temperature=0.0, presence_penalty=1.0)
    engine = engine_for(lambda _: wanted, sampling_defaults=defaults)
    assert engine.generate("1", RequestOptions(max_new_tokens=2)).text == "ab"
    plain = RequestOptions(max_new_tokens=2, sampling=SamplingOptions(presence_penalty=0.0))
    assert engine.generate("1", plain).text == "aa"


def test_penalties_do_not_count_the_prompt() -> None:
    wanted = preferring(NUM_TOKENS, {LETTER_A: 2.0, LETTER_B: 1.5})
    sampling = SamplingOptions(temperature=0.0, presence_penalty=1.0)
    options = RequestOptions(max_new_tokens=3, sampling=sampling)
    assert engine_for(lambda _: wanted).generate("aaa", options).text == "aba"


# Failures


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_logits_that_are_no_numbers_fail_the_request_only(bad: float) -> None:
    def script(so_far: tuple[int, ...]) -> ArrayLike:
        if so_far[0] == OK and len(so_far) == 3:
            return np.full(NUM_TOKENS, bad)
        return preferring(NUM_TOKENS, {LETTER_A: 1.0})

    engine = engine_for(script)
    with pytest.raises(NonFiniteLogits, match="after 2 new tokens"):
        engine.generate([OK])
    assert engine.generate([LETTER_A], RequestOptions(max_new_tokens=3)).text == "aaa"


def test_an_exception_of_the_model_fails_the_request_only() -> None:
    def script(so_far: tuple[int, ...]) -> ArrayLike:
        if so_far == (OK, LETTER_A):
            raise MemoryError("no memory for this one")
        return preferring(NUM_TOKENS, {LETTER_A: 1.0})

    engine = engine_for(script)
    with pytest.raises(MemoryError):
        engine.generate([OK])
    assert engine.generate([LETTER_A], RequestOptions(max_new_tokens=3)).text == "aaa"


def test_a_closed_engine_takes_no_request_and_ends_those_that_run() -> None:
    endless = engine_for(lambda _: preferring(NUM_TOKENS, {LETTER_A: 1.0}), max_context=10**7, cache_tokens=10**7)
    with endless as engine:
        stream = engine.stream("a")
        assert next(stream) == "a"
    with pytest.raises(EngineClosed):
        engine.generate("a")
    assert not engine.is_available
    with pytest.raises(EngineClosed):
        "".join(stream)
    with pytest.raises(EngineClosed):
        _ = stream.result


def test_closing_keeps_what_was_done_before() -> None:
    engine = say(LETTER_A, EOS)
    stream = engine.stream("a")
    assert list(stream) == ["a"]
    engine.close()
    engine.close()
    assert stream.result.finish_reason is FinishReason.STOP_TOKEN


# Several at once


def test_requests_of_many_threads_get_what_they_would_get_alone() -> None:
    engine = engine_for(spread)
    options = [
        RequestOptions(max_new_tokens=20, sampling=SamplingOptions(temperature=1.0, seed=seed)) for seed in range(6)
    ]
    alone = [engine.generate([seed + 1], option).token_ids for seed, option in enumerate(options)]
    together: dict[int, tuple[int, ...]] = {}

    def request(seed: int) -> None:
        together[seed] = engine.generate([seed + 1], options[seed]).token_ids

    threads = [threading.Thread(target=request, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[seed] for seed in range(6)] == alone


def test_units_never_overlap() -> None:
    is_running = threading.Lock()

    def script(_: tuple[int, ...]) -> ArrayLike:
        assert is_running.acquire(blocking=False), "two units ran at once"
        time.sleep(0.001)
        is_running.release()
        return preferring(NUM_TOKENS, {LETTER_A: 1.0})

    engine = engine_for(script)
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda: texts.append(engine.generate("a", RequestOptions(10)).text)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["a" * 10] * 3


@pytest.mark.parametrize("end", ["stop", "cancel", "error"])
def test_the_models_memory_is_given_back_at_every_end(end: str) -> None:
    go_on = threading.Event()

    def script(so_far: tuple[int, ...]) -> ArrayLike:
        assert len(so_far) < 3 or go_on.wait(60)
        if len(so_far) == 3 and end == "error":
            return np.full(NUM_TOKENS, np.nan)
        return preferring(NUM_TOKENS, {EOS if len(so_far) == 3 and end == "stop" else LETTER_A: 1.0})

    loaded = scripted_loaded(script, VOCABULARY)
    engine = Engine(loaded)
    stream = engine.stream("a")
    assert [next(stream), next(stream)] == ["a", "a"]
    [cache] = loaded.model.caches
    assert cache.pool.num_held > 0
    if end == "cancel":
        stream.cancel()
    go_on.set()
    if end != "cancel":
        with contextlib.suppress(NonFiniteLogits):
            assert list(stream) == []
    stream.close()
    assert cache.pool.num_held == cache.num_tokens == 0
    statistics = engine.statistics()
    assert (statistics.num_running, statistics.num_outstanding) == (0, 0)


def test_timings_are_parts_of_the_total() -> None:
    timings = say(LETTER_A).generate("a", RequestOptions(max_new_tokens=5)).timings
    parts = (timings.prepare_seconds, timings.prefill_seconds, timings.decode_seconds)
    assert all(part > 0.0 for part in parts)
    assert sum(parts) <= timings.total_seconds


def test_options_and_numbers_of_another_kind_are_refused() -> None:
    engine = say(LETTER_A, EOS)
    with pytest.raises(InvalidOptions, match="options: expected RequestOptions, got dict"):
        engine.generate("a", {"max_new_tokens": 1})  # type: ignore[arg-type]
    with pytest.raises(InvalidPrompt, match="an integer of 16610 bits is outside"):
        engine.generate([10**5000])
    loaded = scripted_loaded(saying([LETTER_A], 1, NUM_TOKENS), VOCABULARY)
    for asked in ("5", True, 10**5000):
        with pytest.raises(InvalidOptions, match="max_context: "):
            Engine(loaded, max_context=asked)  # type: ignore[arg-type]


def test_a_cache_that_does_not_fit_in_memory_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = scripted_loaded(saying([LETTER_A, EOS], 1, NUM_TOKENS), VOCABULARY)

    def refuse(num_positions: int, num_sequences: int) -> Any:
        raise RuntimeError("not enough memory\nframes")

    monkeypatch.setattr(loaded.model, "new_pool", refuse)
    with pytest.raises(InvalidOptions, match=r"^cache_tokens: there is no memory for 256 tokens: not enough memory$"):
        Engine(loaded)
