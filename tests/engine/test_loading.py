"""Opening an engine, with the model files left out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import infernix.engine.engine
import infernix.matching
from infernix.engine import Engine
from infernix.errors import InvalidOptions, ModelLoadError
from infernix.options import OutputConstraint, RequestOptions
from support.scripted_model import saying, scripted_loaded
from support.vocabularies import EOS_IDS, nasty_token, nasty_vocabulary

VOCABULARY = nasty_vocabulary()
OK = nasty_token("ok")
CONSTRAINED = RequestOptions(constraint=OutputConstraint.choice(["ok"]))


@pytest.fixture(autouse=True)
def _same_threads() -> Iterator[None]:
    num_threads = torch.get_num_threads()
    yield
    torch.set_num_threads(num_threads)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `open_model` was asked for; it gives a model that says ok."""
    asked: list[Any] = []

    def open_model(path: Any, **options: Any) -> Any:
        asked.append((path, options))
        if path == "broken":
            raise ModelLoadError("broken/config.json: not JSON")
        return scripted_loaded(saying([OK, EOS_IDS[0]], 1, VOCABULARY.num_tokens), VOCABULARY)

    monkeypatch.setattr(infernix.engine.engine, "open_model", open_model)
    return asked


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set this and the kernels are warm; they give up waiting in the end."""
    are_warm = threading.Event()
    monkeypatch.setattr(infernix.matching, "warm_kernels", lambda progress: are_warm.wait(60))
    return are_warm


def test_options_reach_the_model(opened: list[Any], kernels: threading.Event) -> None:
    kernels.set()
    engine = Engine.load("somewhere", device="cpu", num_threads=2, max_context=16)
    ((path, options),) = opened
    assert (path, options["device"]) == ("somewhere", "cpu")
    assert torch.get_num_threads() == 2
    assert (engine.model_name, engine.max_context) == ("scripted", 16)


def test_one_thread_is_the_default(opened: list[Any], kernels: threading.Event) -> None:
    kernels.set()
    torch.set_num_threads(2)
    Engine.load()
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize("num_threads", [0, -1])
def test_no_threads_is_refused_before_anything_is_opened(
    opened: list[Any], kernels: threading.Event, num_threads: int
) -> None:
    with pytest.raises(InvalidOptions, match="num_threads"):
        Engine.load(num_threads=num_threads)
    assert opened == []


def test_a_model_that_cannot_be_opened_is_the_callers_error(opened: list[Any], kernels: threading.Event) -> None:
    kernels.set()
    with pytest.raises(ModelLoadError, match="not JSON"):
        Engine.load("broken")


def test_free_requests_do_not_wait_for_the_kernels_and_constrained_ones_do(
    opened: list[Any], kernels: threading.Event
) -> None:
    engine = Engine.load()
    assert engine.generate("a").text == "ok"
    texts: list[str] = []
    waiting = threading.Thread(target=lambda: texts.append(engine.generate("a", CONSTRAINED).text))
    waiting.start()
    assert engine.generate("a").text == "ok"  # and the wait holds up nobody else
    assert texts == []
    kernels.set()
    waiting.join()
    assert texts == ["ok"]


@pytest.mark.parametrize("num_threads", [0, 1025, 10**30, True, "2", None])
def test_a_number_of_threads_that_would_crash_is_refused(
    opened: list[Any], kernels: threading.Event, num_threads: Any
) -> None:
    kernels.set()
    with pytest.raises(InvalidOptions, match=r"num_threads: expected an integer of 1\.\.1024"):
        Engine.load(num_threads=num_threads)
    assert opened == []


def test_the_kernels_tell_their_progress_like_the_model(opened: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(infernix.matching, "warm_kernels", lambda progress: progress("compiling"))
    engine = Engine.load("somewhere", progress=lines.append)
    assert engine._compiler_source.warm_up is not None
    engine._compiler_source.warm_up.join()
    assert lines == ["compiling"]
    ((_, options),) = opened
    assert options["progress"] == lines.append


def test_a_warm_up_that_fails_is_silent(opened: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(progress: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(infernix.matching, "warm_kernels", fail)  # pytest turns an exception in a thread into an error
    engine = Engine.load("somewhere")
    assert engine._compiler_source.warm_up is not None
    engine._compiler_source.warm_up.join()
    assert engine.generate("ok").text == "ok"
