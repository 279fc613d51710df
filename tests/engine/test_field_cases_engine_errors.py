"""Cases from the field about errors, denial of service and caches, on an engine that serves others meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from infernix.engine import Engine
from infernix.errors import (
    ConstraintError,
    ConstraintTooLarge,
    InvalidGrammar,
    InvalidJsonSchema,
    InvalidOptions,
    InvalidRegex,
)
from infernix.matching import GrammarCompiler
from infernix.matching.vocabulary import TokenClass
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import FinishReason
from support.chat_engine import chat_compiler, chat_engine, converse, strict_tool, wanting
from support.chat_output import CHAT, EOS, JSON, THINK_CLOSE, TOOL_OPEN, TURN_START, XML, text_tokens
from support.scripted_model import preferring

GREEDY = SamplingOptions.greedy()
PROMPT = ChatPrompt([{"role": "user", "content": "Hi"}], thinking=False)


def sulking(token: int = ord("z")) -> Callable[[tuple[int, ...]], Any]:
    """A model that wants one token for ever, and white space least of all."""
    return lambda so_far: preferring(CHAT.num_tokens, {**dict.fromkeys(b" \t\r\n", -40.0), token: 10.0})


def constrained(constraint: OutputConstraint, max_new_tokens: int = 40) -> RequestOptions:
    return RequestOptions(max_new_tokens, constraint, GREEDY)


MALFORMED: tuple[tuple[Callable[[], OutputConstraint], type[ConstraintError], str], ...] = (
    (lambda: OutputConstraint.grammar('root ::= "a"\nroot ::= "b"'), InvalidGrammar, "line 2, column 1"),
    (lambda: OutputConstraint.grammar('root ::= "a'), InvalidGrammar, "line 1"),
    (lambda: OutputConstraint.regex("^(|.*$"), InvalidRegex, "column"),
    (lambda: OutputConstraint.json_schema('{"properties": {"foo": "bar"}}'), InvalidJsonSchema, "/properties/foo"),
    (lambda: OutputConstraint.json_schema('{"type": "nothing"}'), InvalidJsonSchema, "/type"),
)


def test_a_malformed_grammar_does_not_kill_the_engine() -> None:
    """vllm#43920: one request with a grammar that could not be read ended the engine for all."""
    with chat_engine(sulking(), max_concurrency=2) as engine:
        others = engine.submit(engine.prepare(PROMPT), RequestOptions(200, sampling=GREEDY))
        good = OutputConstraint.regex("^(.*)$")
        assert engine.generate(PROMPT, constrained(good, 3)).text == "zzz"
        for make, kind, place in MALFORMED:
            with pytest.raises(kind, match=place):
                engine.generate(PROMPT, constrained(make()))
            assert engine.is_available
        assert engine.generate(PROMPT, constrained(good, 3)).text == "zzz"
        assert others.wait().text == "z" * 200
        assert engine.statistics().num_outstanding == 0


def _nested_one_of(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {"leaf": {"type": "integer"}}}
    for level in range(depth):
        branches = [
            {"type": "object", "properties": {f"k{level}": schema, "kind": {"const": name}}, "required": ["kind"]}
            for name in ("x", "y")
        ]
        schema = {"oneOf": branches}
    return schema


def test_compile_time_is_bounded_and_holds_up_nobody() -> None:
    """vllm#54003: time without bound, on the thread that serves everybody."""
    large = {"type": "object", "properties": {f"p{i}": {"type": "string", "maxLength": 99999} for i in range(1500)}}
    with chat_engine(sulking(), max_concurrency=2) as engine:
        for schema in (_nested_one_of(12), large):
            try:
                result = engine.generate(PROMPT, constrained(OutputConstraint.json_schema(schema), 2))
            except ConstraintTooLarge:
                continue  # told before the work, not after it
            assert result.text.startswith("{")
        tools = tuple(strict_tool(f"tool{i}", ("a",), a={"type": "string"}) for i in range(300))
        chat = ChatPrompt([{"role": "user", "content": "Hi"}], tools, False)
        assert engine.generate(chat, RequestOptions(4, sampling=GREEDY)).finish_reason is FinishReason.OUTPUT_LIMIT


def test_a_slow_compilation_does_not_stop_who_is_being_served() -> None:
    """The compiler of one request waits until another, submitted later, has all of its answer."""
    may_compile, is_compiling = threading.Event(), threading.Event()

    class _SlowCompiler:
        def compile(self, source: Any) -> Any:
            is_compiling.set()
            assert may_compile.wait(60)
            return chat_compiler().compile(source)

    loaded: Any = chat_engine(sulking())._loaded
    with Engine(loaded, compiler=_SlowCompiler()) as engine:
        results: list[Any] = []
        slow = threading.Thread(
            target=lambda: results.append(engine.generate(PROMPT, constrained(OutputConstraint.regex("a+"), 3)))
        )
        slow.start()
        assert is_compiling.wait(60)
        assert engine.generate(PROMPT, RequestOptions(50, sampling=GREEDY)).num_generated_tokens == 50
        assert not results
        may_compile.set()
        slow.join()
    assert results[0].text == "aaa"


def test_the_grammar_cache_is_bounded_and_live_requests_keep_theirs() -> None:
    """A cache of grammars that grew with every new property name."""
    compiler = GrammarCompiler(CHAT, cache_bytes=1 << 19)
    loaded: Any = chat_engine(sulking())._loaded
    schema = {"type": "object", "properties": {"first": {"type": "string"}}, "required": ["first"]}
    with Engine(loaded, max_concurrency=2, compiler=compiler) as engine:
        first = engine.submit(engine.prepare(PROMPT), constrained(OutputConstraint.json_schema(schema), 300))
        for number in range(60):
            name = f"property{number}"
            other = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
            result = engine.generate(PROMPT, constrained(OutputConstraint.json_schema(other), 30))
            assert result.text.startswith(f'{{"{name}"')
            assert compiler.num_cached_bytes <= 1 << 19
        assert first.wait().text.startswith('{"first"')
    assert len(compiler._cache) < 60


def test_the_key_of_a_compiled_grammar_is_all_that_it_depends_on() -> None:
    """LightLLM#933: all schemas shared one entry. Order of keys, white space in a value and framing each count."""
    const = [{"const": "a b"}, {"const": "a  b"}]
    ordered = [
        {
            "type": "object",
            "properties": {key: {"const": 1} for key in keys},
            "required": ["x", "y"],
            "additionalProperties": False,
        }
        for keys in (["x", "y"], ["y", "x"])
    ]
    texts = []
    for framing in (XML, JSON):
        for schema in (*const, *ordered):
            with chat_engine(sulking(), framing) as engine:
                options = constrained(OutputConstraint.json_schema(json.dumps(schema)), 100)
                result = engine.generate(PROMPT, options)
            assert result.finish_reason is FinishReason.STOP_TOKEN
            texts.append(json.loads(result.text))
            if isinstance(texts[-1], dict):
                assert list(texts[-1]) == list(schema["properties"])
    assert texts[:4] == texts[4:]
    assert texts[:2] == ["a b", "a  b"]


KINDS = {
    "grammar": (OutputConstraint.grammar('root ::= "yes" | "no"'), {"yes", "no"}),
    "regex": (OutputConstraint.regex("yes|no"), {"yes", "no"}),
    "choice": (OutputConstraint.choice(["yes", "no"]), {"yes", "no"}),
    "json_schema": (OutputConstraint.json_schema({"enum": ["yes", "no"]}), {'"yes"', '"no"'}),
    "json_object": (OutputConstraint.json_schema({"const": {}}), {"{}"}),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("wish", [ord("z"), EOS, TOOL_OPEN, 0xFF], ids=["z", "eos", "call", "no text"])
def test_what_is_accepted_is_enforced(name: str, wish: int) -> None:
    """ollama#17933: the format was accepted and dropped. Here the model wants anything else, on every way to ask."""
    constraint, allowed = KINDS[name]
    with chat_engine(sulking(wish)) as engine:
        options = constrained(constraint)
        prepared = engine.prepare(PROMPT)
        stream = engine.stream(PROMPT, options)
        handles = [engine.submit(prepared, options) for _ in range(3)]
        texts = {"".join(stream), engine.generate(PROMPT, options).text, *(handle.wait().text for handle in handles)}
        assert len(texts) == 1
        assert texts <= allowed


@pytest.mark.parametrize(
    "loose",
    [
        {"stop": ("x",)},
        {"stop_token_ids": (5,)},
        {"raw_output": True},
        {"publish_special_tokens": True},
        {"ignore_eos": True},
    ],
    ids=lambda loose: next(iter(loose)),
)
def test_what_cannot_be_enforced_is_refused(loose: dict[str, Any]) -> None:
    """ninfer#33: fields were ignored that should have been refused."""
    with chat_engine(sulking()) as engine:
        with pytest.raises(InvalidOptions, match=next(iter(loose))):
            engine.generate(PROMPT, RequestOptions(9, OutputConstraint.choice(["a"]), GREEDY, **loose))
        assert engine.statistics().num_outstanding == 0


@pytest.mark.parametrize("wish", [TURN_START, THINK_CLOSE, TOOL_OPEN])
def test_reserved_tokens_are_no_content(wish: int) -> None:
    """sglang#3108: a reserved token that the model liked best crashed the scheduler."""
    with chat_engine(sulking(wish)) as engine:
        result = engine.generate(PROMPT, constrained(OutputConstraint.regex(".*"), 12))
    assert all(CHAT.classes[token] in (TokenClass.TEXT, TokenClass.EOS) for token in result.token_ids)


def test_a_control_token_spelled_as_text_is_content() -> None:
    """llama.cpp#24382, on the side of the output: the letters are legal in a value, the token itself is not."""
    value = "a</think>b<tool_call>"
    wants = wanting([*text_tokens(b'"a'), THINK_CLOSE, *text_tokens(b'b<tool_call>"')])
    for thinking in (True, False):
        constraint = OutputConstraint.json_schema({"const": value})
        result = converse(
            wanting([THINK_CLOSE, *text_tokens(b"\n\n")]) if thinking else wants,
            thinking=thinking,
            constraint=constraint,
        )
        assert json.loads(result.text) == value
        assert result.finish_reason is FinishReason.STOP_TOKEN
        assert result.token_ids.count(THINK_CLOSE) == int(thinking)
        assert TOOL_OPEN not in result.token_ids
        assert result.tool_calls == ()


@pytest.mark.parametrize(
    "constraint",
    [OutputConstraint.regex(""), OutputConstraint.choice(["", "yes"]), OutputConstraint.grammar('root ::= ""')],
    ids=["regex", "choice", "grammar"],
)
def test_an_empty_text_may_be_all_that_there_is(constraint: OutputConstraint) -> None:
    """sglang#276: an empty regex hung the server."""
    with chat_engine(sulking(EOS)) as engine:
        result = engine.generate(PROMPT, constrained(constraint))
        assert (result.text, result.token_ids, result.finish_reason) == ("", (EOS,), FinishReason.STOP_TOKEN)
        assert result.constraint is not None
        assert result.constraint.terminated
        unasked = engine.generate(PROMPT, constrained(constraint, 0))
        assert unasked.constraint is not None
        assert (unasked.finish_reason, unasked.constraint.terminated) == (FinishReason.OUTPUT_LIMIT, False)
