"""Something breaks before the first unit, or in a consumer: at the start of an engine, and in callbacks."""

from __future__ import annotations

from typing import Any

import pytest

from infernix.engine import Engine
from infernix.errors import InvalidOptions
from infernix.results import GenerationResult
from support.chat_engine import FORCED_TEXT
from support.chat_output import XML
from tests.engine.simulation.memory_model import MemoryModel, MemoryPool
from tests.engine.simulation.scenario import TIGHT_REPLAY, WANTED, Scenario
from tests.engine.simulation.world import NUM_TOKENS, counting_compiler, loaded_model, script


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory\nand more")])
def test_an_engine_that_finds_no_memory_says_so(error: Exception) -> None:
    class _Starved(MemoryModel):
        def new_pool(self, num_positions: int, num_sequences: int) -> MemoryPool:
            raise error

    model = _Starved(script, NUM_TOKENS, 200, is_recurrent=False)
    with pytest.raises(InvalidOptions, match="cache_tokens: there is no memory for 777 tokens") as refusal:
        Engine(loaded_model(XML, model), cache_tokens=777, compiler=counting_compiler(), thinking_end=FORCED_TEXT)
    assert refusal.value.__cause__ is error
    assert "and more" not in str(refusal.value)


@pytest.mark.parametrize("memory", [None, TIGHT_REPLAY], ids=["ample", "tight"])
@pytest.mark.parametrize("index", range(len(WANTED)))
def test_a_consumer_that_raises_ends_its_own_request(index: int, memory: Any) -> None:
    """At each of its calls, one after another: the first publication, any later one, and the last."""
    for fails_at in range(1, 30):
        scenario = Scenario(memory)
        scenario.submit_all()
        client = scenario.clients[index]
        client.subscribe(fails_at)
        scenario.run()
        for other in scenario.clients:
            other.check_end()
            if other is not client:
                assert isinstance(other.answer, GenerationResult)
            other.collect()
        assert scenario.core.statistics().num_outstanding == 0
        if client.consumer_error is None:
            assert fails_at > 4
            break
        assert client.answer is client.consumer_error
    else:
        pytest.fail("the request published for ever")


def test_a_consumer_that_raises_at_once_hears_it_itself() -> None:
    """`subscribe` calls back at once where there is something: what that raises is the caller's."""
    scenario = Scenario()
    client = scenario.submit(1)
    scenario.run()
    with pytest.raises(ZeroDivisionError):
        client.handle.subscribe(lambda: 1 // 0)
    client.check_end()
    assert isinstance(client.answer, GenerationResult)


def test_a_consumer_may_do_as_it_likes_in_its_callback() -> None:
    """It cancels, lets go, submits and stops; all in the middle of the worker's unit."""
    for act in ("cancel", "close", "submit", "stop"):
        scenario = Scenario()
        scenario.submit_all()
        first, second = scenario.clients[:2]
        has_acted = False

        def callback(scenario: Scenario = scenario, second: Any = second, act: str = act) -> None:
            nonlocal has_acted
            if has_acted:
                return
            has_acted = True
            match act:
                case "cancel":
                    second.handle.cancel()
                case "close":
                    second.close()
                case "submit":
                    scenario.submit(3)
                case _:
                    scenario.core.stop()

        first.handle.subscribe(callback)
        scenario.run()
        assert has_acted
        assert len(scenario.clients) == 4 + (act == "submit")
        for client in scenario.clients:
            client.check_end()
            if not client.is_released:
                client.collect()
        assert scenario.core.is_stopped == (act == "stop")
        assert scenario.core.statistics().num_outstanding == 0
