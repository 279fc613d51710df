"""The thread behind an engine: when it starts, when it cannot, and where it does not exist."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from infernix.engine import Engine
from infernix.errors import EngineClosed
from infernix.options import RequestOptions
from support.scripted_model import preferring, scripted_loaded
from support.vocabularies import nasty_token, nasty_vocabulary

VOCABULARY = nasty_vocabulary()
A = nasty_token("a")
THREE = RequestOptions(max_new_tokens=3)


def engine_that_says_a(**options: Any) -> Engine:
    return Engine(scripted_loaded(lambda _: preferring(VOCABULARY.num_tokens, {A: 5.0}), VOCABULARY), **options)


def succeeds_in_a_fork(check: Callable[[], bool]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads and forks: that is what this is about
        child = os.fork()
    if child == 0:
        signal.alarm(60)
        is_right = False
        try:
            is_right = check()
        finally:
            os._exit(0 if is_right else 1)
    return os.waitpid(child, 0)[1] == 0


def test_without_a_thread_no_request_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_that_says_a(max_concurrency=1, max_pending_requests=0)
    with monkeypatch.context() as patch:

        def fail(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        patch.setattr(threading.Thread, "start", fail)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                engine.generate([A], THREE)
    assert engine.statistics().num_outstanding == 0
    assert engine.generate([A], THREE).text == "aaa"
    engine.close()


def test_an_engine_whose_thread_never_started_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_that_says_a()

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        engine.generate([A], THREE)
    engine.close()
    with pytest.raises(EngineClosed):
        engine.generate([A], THREE)


def test_a_fork_is_refused_what_only_the_first_process_has() -> None:
    engine = engine_that_says_a()
    assert engine.generate([A], THREE).text == "aaa"

    def is_refused() -> bool:
        with pytest.raises(EngineClosed, match="another process"):
            engine.generate([A], THREE)
        engine.close()
        return True

    assert succeeds_in_a_fork(is_refused)
    assert engine.generate([A], THREE).text == "aaa"


def test_an_engine_that_was_not_used_before_works_in_a_fork() -> None:
    engine = engine_that_says_a()
    assert succeeds_in_a_fork(lambda: engine.generate([A], THREE).text == "aaa")
    assert engine.generate([A], THREE).text == "aaa"
