"""Cases from the field about pauses, prefixes and batches, and about sampling where that takes a whole request."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import jsonschema
import numpy as np
import pytest
from numpy.typing import ArrayLike

from infernix.engine import Engine
from infernix.engine.handle import GenerationHandle
from infernix.errors import ConstraintDeadEnd
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions, SamplingParameters
from infernix.results import CacheAccess, FinishReason, GenerationResult, OutputDelta
from support.chat_engine import FORCED_TEXT, chat_engine, converse, wanting
from support.chat_output import CHAT, XML
from support.scripted_model import ScriptedModel
from tests.engine.simulation.world import HOLE, counting_compiler, loaded_model

A_AND_B = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "integer"}}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
GREEDY = SamplingOptions.greedy()


def babble(so_far: tuple[int, ...]) -> ArrayLike:
    """Logits that depend on every token so far, and like digits, commas and quotes."""
    logits = np.random.default_rng(list(so_far)).standard_normal(CHAT.num_tokens).astype(np.float32)
    logits[list(b'0123456789,"[]{}:ab')] += 2.0
    return logits


def ask(text: str) -> ChatPrompt:
    return ChatPrompt([{"role": "user", "content": text}], thinking=False)


def together(engine: Engine, requests: Sequence[tuple[ChatPrompt, RequestOptions]]) -> list[GenerationResult]:
    """All at once, in this order: the model waits for the last."""
    model: Any = engine._loaded.model
    script, are_submitted = model.script, threading.Event()

    def waiting(so_far: tuple[int, ...]) -> ArrayLike:
        assert are_submitted.wait(60)
        return script(so_far)  # type: ignore[no-any-return]

    model.script = waiting
    prepared = [(engine.prepare(prompt), options) for prompt, options in requests]
    handles: list[GenerationHandle] = [engine.submit(prompt, options) for prompt, options in prepared]
    are_submitted.set()
    return [handle.wait() for handle in handles]


def with_schema(schema: Any, max_new_tokens: int = 60, sampling: SamplingOptions = GREEDY) -> RequestOptions:
    return RequestOptions(max_new_tokens, OutputConstraint.json_schema(schema), sampling)


# Preemption, prefix cache, batches


@pytest.mark.parametrize("snapshot_bytes", [0, 1 << 20])
def test_grammar_restarts_after_recomputation(snapshot_bytes: int) -> None:
    """TensorRT-LLM#18891: after a pause the output went on with a second document."""
    sampling = [SamplingOptions(temperature=1.0, seed=seed) for seed in range(3)]
    requests = [(ask(f"Number {seed}"), with_schema(A_AND_B, 60, sampling[seed])) for seed in range(3)]
    alone = [together(chat_engine(babble, max_context=96), [request])[0] for request in requests]
    with chat_engine(
        babble, max_concurrency=3, max_context=96, cache_tokens=160, snapshot_bytes=snapshot_bytes
    ) as engine:
        results = together(engine, requests)
    assert sum(result.scheduling.num_pauses for result in results) > 0
    restores = [(r.scheduling.num_replay_restores, r.scheduling.num_snapshot_restores) for r in results]
    assert any(replays if snapshot_bytes == 0 else copies for replays, copies in restores)
    assert [result.token_ids for result in results] == [result.token_ids for result in alone]
    for result in results:
        if result.finish_reason is FinishReason.STOP_TOKEN:
            jsonschema.validate(json.loads(result.text), A_AND_B)
        else:
            assert result.text.startswith("{")
            assert result.text.count("{") == 1


def test_prefix_cache_hit_and_grammar() -> None:
    """TensorRT-LLM#2660: the second of two equal prompts with a schema crashed. No constraint is part of a prefix."""
    prompt = ask("Say something, please.")
    options = [with_schema(OK), with_schema(A_AND_B), RequestOptions(30, sampling=GREEDY), with_schema(OK)]
    fresh = [together(chat_engine(babble), [(prompt, each)])[0] for each in options]
    with chat_engine(babble) as engine:
        results = [engine.generate(prompt, each) for each in options]
    assert [result.token_ids for result in results] == [result.token_ids for result in fresh]
    assert len({result.token_ids for result in results}) == 3
    reused = [result.num_reused_prompt_tokens for result in results]
    assert reused == [0] + [results[0].num_prompt_tokens] * 3


def test_unconstrained_rows_are_not_blocked_in_a_mixed_batch() -> None:
    """vllm-gaudi#1199: beside a constrained row a free one could only say token 0."""
    free = [
        (ask(f"Free {seed}"), RequestOptions(40, sampling=SamplingOptions(temperature=1.0, seed=seed), ignore_eos=True))
        for seed in range(3)
    ]
    alone = [together(chat_engine(babble), [request])[0] for request in free]
    with chat_engine(babble, max_concurrency=4) as engine:
        *mixed, constrained = together(engine, [*free, (ask("Schema"), with_schema(A_AND_B))])
    assert [result.token_ids for result in mixed] == [result.token_ids for result in alone]
    assert all(result.constraint is None for result in mixed)
    assert constrained.constraint is not None
    assert constrained.text.startswith("{")


def test_several_samples_do_not_share_a_matcher() -> None:
    """vllm#11312: three samples of one request advanced one state."""
    requests = [
        (ask("Three samples"), with_schema(OK, 60, SamplingOptions(temperature=1.5, seed=seed))) for seed in range(3)
    ]
    alone = [together(chat_engine(babble), [request])[0] for request in requests]
    with chat_engine(babble) as engine:
        results = together(engine, requests)
    assert [result.token_ids for result in results] == [result.token_ids for result in alone]
    for result in results:
        assert result.constraint is not None
        assert result.constraint.cache is CacheAccess.HIT
        assert result.finish_reason is FinishReason.STOP_TOKEN
        jsonschema.validate(json.loads(result.text), OK)


# Sampling


def test_compact_json_is_not_forced() -> None:
    """A model that wants its JSON laid out over lines gets it, and its values are those of its free answer."""
    text = json.dumps({"city": "Paris", "weather": {"degrees": [18, 21]}}, indent=2)
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "weather": {"type": "object"}},
        "required": ["city", "weather"],
    }
    free = converse(wanting(text), thinking=False)
    constrained = converse(wanting(text), thinking=False, constraint=OutputConstraint.json_schema(schema))
    assert (constrained.text, constrained.token_ids) == (free.text, free.token_ids)
    assert constrained.text == text


def test_an_empty_legal_set_is_not_free_text() -> None:
    """MiniOneRec#50: where nothing was legal, the mask was left out. Here it is the request's error, and no other's."""
    loaded = loaded_model(XML, ScriptedModel(babble, CHAT.num_tokens, 200))
    with Engine(loaded, compiler=counting_compiler(), thinking_end=FORCED_TEXT) as engine:
        constraint = OutputConstraint.choice(["ab" + HOLE])
        handle = engine.submit(engine.prepare(ask("Hi")), RequestOptions(9, constraint, GREEDY))
        beside = engine.submit(engine.prepare(ask("Hi")), RequestOptions(9, sampling=GREEDY, ignore_eos=True))
        with pytest.raises(ConstraintDeadEnd, match="after 2 new tokens"):
            handle.wait()
        assert "".join(event.text for event in handle.take() if isinstance(event, OutputDelta)) == "ab"
        assert beside.wait().num_generated_tokens == 9


def test_penalties_of_the_model_do_not_corrupt_structure() -> None:
    """A registered presence penalty made strings begin with a comma; one that the caller asks for stays."""
    text = '{"list": ["ok", "ok", "ok", "ok"]}'
    schema = {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "string"}}}}
    wants = wanting(text)
    penalized = SamplingParameters(temperature=0.0, presence_penalty=2.0, frequency_penalty=2.0)

    def close_call(num_prompt_tokens: int) -> Any:
        script = wants(num_prompt_tokens)
        return lambda so_far: np.asarray(script(so_far)) * 0.1  # the wish is 3 above everything else

    engine = chat_engine(lambda _: [], sampling_defaults=penalized)
    constraint = OutputConstraint.json_schema(schema)
    inherited = SamplingOptions()
    result = converse(close_call, thinking=False, engine=engine, constraint=constraint, sampling=inherited)
    assert result.text == text
    free = converse(close_call, thinking=False, engine=engine, sampling=inherited, max_new_tokens=40)
    assert free.text != text
    asked = SamplingOptions(temperature=0.0, presence_penalty=2.0, frequency_penalty=2.0)
    chosen = converse(close_call, thinking=False, engine=engine, constraint=constraint, sampling=asked)
    assert chosen.text != text
