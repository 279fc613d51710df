"""Handles of requests that a worker thread runs."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from numpy.typing import ArrayLike

from infernix.engine import Engine
from infernix.errors import EngineClosed, InvalidOptions, InvalidPrompt, InvalidRegex, NonFiniteLogits, Overloaded
from infernix.options import OutputConstraint, RequestOptions
from infernix.results import FinishReason, GenerationStarted
from support.driven_core import text_of
from support.scripted_model import preferring, saying, scripted_loaded
from support.vocabularies import EOS_IDS, nasty_token, nasty_vocabulary

VOCABULARY = nasty_vocabulary()
NUM_TOKENS = VOCABULARY.num_tokens
A, B, EOS = nasty_token("a"), nasty_token("b"), EOS_IDS[0]
THREE = RequestOptions(max_new_tokens=3)


class Gate:
    """A model that always says "a", each pass when it is let through."""

    def __init__(self, num_open: int = 0) -> None:
        self._permits = threading.Semaphore(num_open)
        self.is_waiting = threading.Event()

    def __call__(self, _: tuple[int, ...]) -> ArrayLike:
        self.is_waiting.set()
        assert self._permits.acquire(timeout=60)
        return preferring(NUM_TOKENS, {A: 5.0})

    def open(self, num_passes: int = 1000) -> None:
        self._permits.release(num_passes)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open()


def engine_for(script: Any, **options: Any) -> Engine:
    return Engine(scripted_loaded(script, VOCABULARY), **options)


def endless_engine(**options: Any) -> Engine:
    """It says "a" so often that it is not done before anybody has done anything."""
    loaded = scripted_loaded(lambda _: preferring(NUM_TOKENS, {A: 5.0}), VOCABULARY, max_context=10**7)
    return Engine(loaded, cache_tokens=10**7, **options)


ENDLESS = RequestOptions()


def on_worker(action: Callable[[], None]) -> Callable[[], None]:
    """A subscriber that does something, but not where it is called back at once by the thread that subscribes."""
    subscribing = threading.current_thread()

    def hear() -> None:
        if threading.current_thread() is not subscribing:
            action()

    return hear


def submit(engine: Engine, options: RequestOptions = THREE, **more: Any) -> Any:
    return engine.submit(engine.prepare([A]), options, **more)


def test_waiting_for_a_result(gate: Gate) -> None:
    engine = engine_for(gate)
    handle = submit(engine)
    assert gate.is_waiting.wait(60)
    with pytest.raises(TimeoutError, match=r"not done after 0\.01 seconds"):
        handle.wait(0.01)
    with pytest.raises(RuntimeError, match="has not finished"):
        handle.result()
    assert not handle.is_done
    gate.open()
    result = handle.wait()
    assert (result.text, result.request_id, handle.num_prompt_tokens) == ("aaa", handle.request_id, 1)
    assert handle.is_done
    assert handle.result() is result
    assert engine.statistics().num_outstanding == 0


def test_streaming_events() -> None:
    engine = engine_for(saying([A, B, EOS], 1, NUM_TOKENS))
    handle = submit(engine)
    events = list(handle.stream())
    assert events[0] == GenerationStarted(1, 0)
    assert text_of(events) == handle.result().text == "ab"
    assert list(handle.stream()) == []
    assert engine.statistics().num_outstanding == 0


def test_a_stream_raises_behind_its_last_event() -> None:
    def script(so_far: tuple[int, ...]) -> ArrayLike:
        return preferring(NUM_TOKENS, {A: 5.0}) if len(so_far) < 3 else [float("nan")] * NUM_TOKENS

    handle = submit(engine_for(script))
    events = []
    with pytest.raises(NonFiniteLogits):
        events.extend(handle.stream())
    with pytest.raises(NonFiniteLogits):
        handle.wait()
    assert text_of(handle.take()) in ("", "aa")


def test_a_subscriber_takes_everything_without_waiting(gate: Gate) -> None:
    engine = engine_for(gate)
    handle = submit(engine)
    events: list[Any] = []
    is_done = threading.Event()

    def hear() -> None:
        events.extend(handle.take())
        if handle.is_done:
            is_done.set()

    handle.subscribe(hear)
    gate.open()
    assert is_done.wait(60)
    events += handle.take()
    assert events[0] == GenerationStarted(1, 0)
    assert text_of(events) == handle.result().text == "aaa"


def test_cancelling_from_the_worker_itself(gate: Gate) -> None:
    handle = submit(engine_for(gate), RequestOptions(max_new_tokens=60))
    handle.subscribe(on_worker(handle.cancel))
    gate.open()
    result = handle.wait(60)
    assert result.finish_reason is FinishReason.CANCELLED
    assert result.text in ("", "a")  # it began before or after the subscription


def test_closing_a_handle_cancels_its_request(gate: Gate) -> None:
    engine = engine_for(gate, max_concurrency=1, max_pending_requests=0)
    with submit(engine) as handle:
        assert gate.is_waiting.wait(60)
    with pytest.raises(Overloaded):
        submit(engine)
    gate.open()
    assert handle.wait(60).finish_reason is FinishReason.CANCELLED
    assert submit(engine).wait(60).text == "aaa"
    assert engine.statistics().num_outstanding == 0


def test_dropping_a_handle_cancels_its_request(gate: Gate) -> None:
    engine = engine_for(gate, max_concurrency=1)
    handle = submit(engine, RequestOptions(max_new_tokens=60))
    assert gate.is_waiting.wait(60)
    del handle
    gc.collect()
    gate.open()
    assert engine.generate([A], THREE).text == "aaa"
    statistics = engine.statistics()
    assert statistics.num_outstanding == 0
    assert statistics.counters.num_generated_tokens < 60


def test_a_deadline_that_is_given(gate: Gate) -> None:
    engine = engine_for(gate, pending_timeout_seconds=0.001)
    gate.open()
    assert submit(engine, pending_deadline=1e12).wait(60).text == "aaa"


def test_the_engine_lives_as_long_as_a_handle_and_no_longer() -> None:
    engine = engine_for(lambda _: preferring(NUM_TOKENS, {A: 5.0}))
    worker = weakref.ref(engine._worker)
    alive = weakref.ref(engine)
    handle = submit(engine)
    del engine
    gc.collect()
    assert handle.wait(60).text == "aaa"
    thread = worker()._thread  # type: ignore[union-attr]
    assert thread is not None
    del handle
    gc.collect()
    assert alive() is None
    thread.join(60)
    assert not thread.is_alive()


def test_closing_ends_the_worker_and_answers_all() -> None:
    engine = endless_engine(max_concurrency=1)
    running, waiting = submit(engine, ENDLESS), submit(engine, ENDLESS)
    assert next(running.stream()) == GenerationStarted(1, 0)
    engine.close()
    for handle in (running, waiting):
        assert handle.is_done
        with pytest.raises(EngineClosed):
            handle.wait()
    with pytest.raises(EngineClosed):
        submit(engine)
    assert engine.statistics().num_outstanding == 0


@pytest.mark.parametrize("is_closed", [True, False])
def test_an_engines_memory_goes_with_its_last_reference(is_closed: bool) -> None:
    engine = engine_for(lambda _: preferring(NUM_TOKENS, {A: 5.0}))
    assert engine.generate([A] * 20, THREE).text == "".join(engine.stream([A] * 20, THREE))
    program = weakref.ref(engine._core._program)  # type: ignore[union-attr]
    gc.disable()  # a pool of keys and values is large, and nothing tells the collector so
    try:
        if is_closed:
            engine.close()
        del engine
        assert program() is None
    finally:
        gc.enable()


def test_closing_from_two_threads_at_once_waits_for_the_end_in_both() -> None:
    engine = endless_engine()
    handle = submit(engine, ENDLESS)
    assert next(handle.stream()) == GenerationStarted(1, 0)
    are_done: list[bool] = []

    def close() -> None:
        engine.close()
        are_done.append(handle.is_done)

    threads = [threading.Thread(target=close) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert are_done == [True, True]
    assert engine.statistics().num_running == 0


def test_closing_gives_the_pools_memory_back_while_handles_live_on() -> None:
    loaded = scripted_loaded(lambda _: preferring(NUM_TOKENS, {A: 5.0}), VOCABULARY)
    engine = Engine(loaded)
    handle = submit(engine)
    assert handle.wait(60).text == "aaa"
    pool = weakref.ref(loaded.model.pools.pop())
    assert pool() is not None
    engine.close()
    gc.collect()
    assert pool() is None
    assert handle.result().text == "aaa"
    assert engine.statistics().counters.num_generated_tokens == 3


def test_a_callback_may_close_the_engine(gate: Gate) -> None:
    engine = engine_for(gate)
    handle = submit(engine, RequestOptions(max_new_tokens=60))
    handle.subscribe(on_worker(engine.close))
    gate.open()
    with pytest.raises(EngineClosed):
        handle.wait(60)


@pytest.mark.usefixtures("warmed_kernels")
def test_a_constraint_that_compiles_for_long_holds_up_its_own_request_only() -> None:
    is_compiling, go_on = threading.Event(), threading.Event()

    class Slow:
        def compile(self, constraint: Any) -> Any:
            is_compiling.set()
            assert go_on.wait(60)
            raise InvalidRegex("no")

    engine = engine_for(lambda _: preferring(NUM_TOKENS, {A: 5.0}), compiler=Slow(), max_pending_requests=0)
    problems: list[Exception] = []

    def request() -> None:
        try:
            submit(engine, RequestOptions(constraint=OutputConstraint.regex("a")))
        except InvalidRegex as error:
            problems.append(error)

    thread = threading.Thread(target=request)
    thread.start()
    assert is_compiling.wait(60)
    assert engine.statistics().num_outstanding == 1  # it has its slot
    assert engine.generate([A], THREE).text == "aaa"
    go_on.set()
    thread.join(60)
    assert len(problems) == 1
    assert engine.statistics().num_outstanding == 0


def test_counting_tokens_compiles_nothing() -> None:
    class Forbidden:
        def compile(self, constraint: Any) -> Any:
            raise AssertionError("compiled")

    engine = engine_for(saying([A, EOS], 1, NUM_TOKENS), compiler=Forbidden())
    assert engine.count_tokens("aab") == 3
    assert engine.prepare("aab").tokens == (A, A, B)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_concurrency", 0),
        ("max_concurrency", 65),
        ("max_pending_requests", -1),
        ("pending_timeout_seconds", 0.0),
        ("pending_timeout_seconds", float("nan")),
        ("pending_timeout_seconds", 10**400),
        ("cache_tokens", 0),
        ("snapshot_bytes", -1),
        ("max_cached_prefixes", True),
        ("prefill_chunk_tokens", 0),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidOptions, match=f"^{field}: "):
        engine_for(saying([A], 1, NUM_TOKENS), **{field: value})


def test_the_context_never_goes_beyond_the_memory() -> None:
    assert engine_for(saying([A], 1, NUM_TOKENS), cache_tokens=10).max_context == 10
    assert engine_for(saying([A], 1, NUM_TOKENS)).max_context == 64
    with pytest.raises(InvalidOptions, match=r"^max_context: 11 is more than cache_tokens, 10"):
        engine_for(saying([A], 1, NUM_TOKENS), cache_tokens=10, max_context=11)


@pytest.mark.parametrize("num_threads", [8])
def test_many_threads_with_everything_at_once(num_threads: int) -> None:
    """Generations, streams and cancellations from all sides: each gets its own answer, and nothing is left behind."""
    engine = engine_for(lambda _: preferring(NUM_TOKENS, {A: 5.0, EOS: 1.0}), max_concurrency=3)
    constraint = OutputConstraint.regex("a{2,5}")
    engine.generate([A], RequestOptions(max_new_tokens=9, constraint=constraint))
    problems: list[str] = []

    def use(number: int) -> None:
        for turn in range(6):
            kind = (number + turn) % 4
            if kind == 0:
                if engine.generate([A] * (number + 1), THREE).text != "aaa":
                    problems.append("generate")
            elif kind == 1:
                if "".join(engine.stream([A], RequestOptions(9, constraint))) != "aaaaa":
                    problems.append("stream")
            elif kind == 2:
                with engine.submit(engine.prepare([A] * 20), RequestOptions(40)) as handle:
                    handle.cancel()
                    if handle.wait(60).finish_reason not in (FinishReason.CANCELLED, FinishReason.OUTPUT_LIMIT):
                        problems.append("cancel")
            else:
                engine.submit(engine.prepare([A] * 20), RequestOptions(40)).close()

    threads = [threading.Thread(target=use, args=(number,)) for number in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    engine.close()
    statistics = engine.statistics()
    assert (statistics.num_running, statistics.num_waiting, statistics.num_outstanding) == (0, 0, 0)
    assert statistics.num_free_positions == statistics.num_positions


def test_an_error_that_is_kept_keeps_no_memory() -> None:
    """What was raised in the middle of a unit has seen the Program, and its traceback must not hold it."""

    def fail(so_far: tuple[int, ...]) -> ArrayLike:
        raise OSError(f"no device for {so_far}")

    loaded = scripted_loaded(fail, VOCABULARY)
    engine = Engine(loaded)
    handle = submit(engine)
    assert handle.wait_for_end(60)
    pool = weakref.ref(loaded.model.pools.pop())
    assert pool() is not None
    engine.close()
    gc.collect()
    assert pool() is None
    with pytest.raises(OSError, match="no device") as raised:
        handle.result()
    [note] = raised.value.__notes__
    assert "in fail" in note  # its lines are there


@pytest.mark.parametrize("wrong", ["a text", [A], None])
def test_only_what_was_prepared_is_submitted(wrong: Any) -> None:
    engine = engine_for(saying([A, EOS], 1, NUM_TOKENS))
    with pytest.raises(InvalidPrompt, match="what `prepare` gives"):
        engine.submit(wrong)
    assert engine.statistics().num_outstanding == 0


@pytest.mark.parametrize("wrong", ["soon", float("nan"), True, 10**400])
def test_a_deadline_is_a_number(wrong: Any) -> None:
    engine = engine_for(saying([A, EOS], 1, NUM_TOKENS))
    with pytest.raises(InvalidOptions, match=r"^pending_deadline: expected a number of seconds"):
        submit(engine, pending_deadline=wrong)
    assert submit(engine, pending_deadline=float("inf")).wait(60).finish_reason is FinishReason.STOP_TOKEN
