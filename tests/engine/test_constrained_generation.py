"""Models that want the wrong token, and constraints that do not let them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from infernix.engine import Engine
from infernix.errors import ConstraintDeadEnd, ConstraintError, InvalidGrammar, NonFiniteLogits
from infernix.matching import GrammarCompiler
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions, SamplingParameters
from infernix.results import CacheAccess, ConstraintObservation, FinishReason, GenerationResult
from support.scripted_model import preferring, saying, scripted_loaded
from support.vocabularies import (
    EOS_IDS,
    NASTY_TOKENS,
    PADDING,
    THINK_CLOSE,
    THINK_CLOSE_AS_TEXT,
    TOOL_CALL,
    nasty_token,
    nasty_vocabulary,
    text_vocabulary,
)

VOCABULARY = nasty_vocabulary()
NUM_TOKENS = VOCABULARY.num_tokens
EOS = EOS_IDS[0]
OK = nasty_token("ok")
FLAG = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    """One compiler for all engines of this file."""
    return GrammarCompiler(VOCABULARY)


@pytest.fixture
def run(compiler: GrammarCompiler) -> Any:
    """Generates with fixed wishes (scores of tokens) or with a script."""

    def generate(
        wishes: Mapping[int, float] | Any, constraint: OutputConstraint, max_new_tokens: int = 40, **sampling: Any
    ) -> GenerationResult:
        script = (lambda _: preferring(NUM_TOKENS, wishes)) if isinstance(wishes, Mapping) else wishes
        loaded = scripted_loaded(script, VOCABULARY, max_context=400)
        options = RequestOptions(max_new_tokens, constraint, SamplingOptions(**{"temperature": 0.0, **sampling}))
        return Engine(loaded, compiler=compiler).generate("a", options)

    return generate


def seen(result: GenerationResult) -> ConstraintObservation:
    assert result.constraint is not None
    return result.constraint


def finished(result: GenerationResult) -> bool:
    """Whether the request is a normal constrained completion, in all places that say so."""
    is_stop = result.finish_reason is FinishReason.STOP_TOKEN
    assert is_stop == seen(result).terminated
    assert not is_stop or seen(result).complete
    return is_stop


def test_a_model_that_wants_something_else_gives_a_text_of_the_language(run: Any) -> None:
    result = run({0: 9.0, THINK_CLOSE: 8.0, EOS: 7.0}, OutputConstraint.grammar('root ::= "ok" "}" "ok"'))
    assert result.text == "ok}ok"
    assert finished(result)


@pytest.mark.parametrize(
    "constraint",
    [
        OutputConstraint.grammar('root ::= ""'),
        OutputConstraint.regex(""),
        OutputConstraint.choice(["", "ok"]),
        OutputConstraint.choice([""]),
    ],
    ids=lambda constraint: str(constraint.kind),
)
def test_an_empty_text_ends_with_the_first_token(run: Any, constraint: OutputConstraint) -> None:
    result = run({EOS: 1.0}, constraint)
    assert (result.text, result.token_ids) == ("", (EOS,))
    assert finished(result)


def test_a_choice_that_begins_another_may_end_or_go_on(run: Any) -> None:
    constraint = OutputConstraint.choice(["ok", "okok"])
    assert run(saying([OK, EOS], 1, NUM_TOKENS), constraint).text == "ok"
    assert run(saying([OK, OK, EOS], 1, NUM_TOKENS), constraint).text == "okok"


@pytest.mark.parametrize("eos", EOS_IDS)
def test_no_end_token_ends_the_text_in_its_middle(run: Any, eos: int) -> None:
    result = run({eos: 90.0}, OutputConstraint.json_schema(FLAG))
    assert json.loads(result.text) in ({"a": True}, {"a": False})
    assert result.token_ids[-1] == eos
    assert not set(result.token_ids[:-1]) & set(EOS_IDS)
    assert finished(result)


def test_after_a_text_that_must_end_only_the_end_is_legal(run: Any) -> None:
    """Token 0 is wanted everywhere, as by an argmax over nothing."""
    result = run({0: 90.0, EOS: -90.0}, OutputConstraint.json_schema({"type": "boolean"}))
    assert (result.text, finished(result)) == ("true", True)


def test_whitespace_runs_are_bounded(run: Any) -> None:
    wishes = {nasty_token(data): 9.0 for data in (b" ", b"\n", b"\t", b"\n\n")}
    result = run(wishes, OutputConstraint.json_schema(FLAG), max_new_tokens=390)
    assert finished(result)
    json.loads(result.text)
    runs = [len(found) for found in re.findall(r"[ \n\t\r]+", result.text)]
    assert max(runs) == 32


def test_a_pretty_printed_layout_is_legal(run: Any) -> None:
    pieces = [b"{", b"\n", b'"', b"a", b'":', b" ", b"true", b"\n", b"}"]
    wanted = [*map(nasty_token, pieces), EOS]
    result = run(saying(wanted, 1, NUM_TOKENS), OutputConstraint.json_schema(FLAG))
    assert result.token_ids == tuple(wanted)
    assert result.text == '{\n"a": true\n}'


@pytest.mark.parametrize("wanted", [PADDING, THINK_CLOSE, TOOL_CALL])
def test_tokens_that_are_no_text_are_no_content(run: Any, wanted: int) -> None:
    result = run({wanted: 90.0}, OutputConstraint.regex(r"[\s\S]*"), max_new_tokens=10)
    assert wanted not in result.token_ids
    assert result.num_generated_tokens == 10


def test_a_control_token_spelled_as_text_is_content(run: Any) -> None:
    result = run({THINK_CLOSE: 90.0}, OutputConstraint.choice(["</think>ok"]))
    assert (result.text, result.token_ids[0]) == ("</think>ok", THINK_CLOSE_AS_TEXT)


def test_constrained_text_is_published_byte_for_byte(run: Any) -> None:
    text = ' \n\n é在"😀\t'
    result = run({}, OutputConstraint.choice([text]))
    assert (result.text, finished(result)) == (text, True)


def test_legal_tokens_outside_the_best_twenty_share_the_probability() -> None:
    """Four legal letters at ranks 30 to 33 of the model's own order, and top-k is 20."""
    vocabulary = text_vocabulary([chr(ord("!") + place) for place in range(60)])
    letters = [vocabulary.token_bytes[place].decode() for place in range(30, 34)]
    logits = np.linspace(6.0, 0.0, vocabulary.num_tokens)
    engine = Engine(scripted_loaded(lambda _: logits, vocabulary))
    constraint = OutputConstraint.choice(letters)
    num_draws = 2000
    drawn = Counter(
        engine.generate([0], RequestOptions(1, constraint, SamplingOptions(temperature=1.0, top_k=20, seed=seed))).text
        for seed in range(num_draws)
    )
    weights = np.exp(logits[30:34])
    for letter, probability in zip(letters, weights / weights.sum(), strict=True):
        assert drawn[letter] / num_draws == pytest.approx(probability, abs=0.04)
    assert set(drawn) == set(letters)


# Penalties


COMMA_WISHES = {nasty_token(b'"'): 3.0, nasty_token(b'", "'): 2.0}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [({}, '"" ""'), ({"presence_penalty": 1.5}, '"", "')],
    ids=["the model's own", "the caller's"],
)
def test_only_the_callers_penalties_apply(compiler: GrammarCompiler, asked: dict[str, Any], expected: str) -> None:
    """A penalty on a quotation mark that is in the text drives the model to a merged token."""
    script_wishes = preferring(NUM_TOKENS, {**COMMA_WISHES, nasty_token(b" "): 2.5, EOS: 2.2})
    loaded = scripted_loaded(
        lambda _: script_wishes,
        VOCABULARY,
        sampling_defaults=SamplingParameters(temperature=0.0, presence_penalty=1.5),
    )
    constraint = OutputConstraint.choice(['"" ""', '"", "'])
    result = Engine(loaded, compiler=compiler).generate("a", RequestOptions(20, constraint, SamplingOptions(**asked)))
    assert result.text == expected


# Limits


@pytest.mark.parametrize("max_new_tokens", range(8))
def test_a_limit_leaves_a_beginning_and_says_so(run: Any, max_new_tokens: int) -> None:
    pieces = [b'{"', b"a", b'":', b"true", b"}"]
    result = run(
        saying([*map(nasty_token, pieces), EOS], 1, NUM_TOKENS), OutputConstraint.json_schema(FLAG), max_new_tokens
    )
    assert result.text == b"".join(pieces[:max_new_tokens]).decode()
    assert seen(result).complete == (max_new_tokens >= 5)
    assert finished(result) == (max_new_tokens >= 6)
    if max_new_tokens < 6:
        assert result.finish_reason is FinishReason.OUTPUT_LIMIT


def test_without_a_budget_the_empty_text_is_judged_and_nothing_ends_normally(run: Any) -> None:
    for constraint, is_complete in ((OutputConstraint.regex("[ok]*"), True), (OutputConstraint.json_object(), False)):
        result = run({}, constraint, 0)
        assert (result.text, result.finish_reason) == ("", FinishReason.OUTPUT_LIMIT)
        assert (seen(result).complete, seen(result).terminated) == (is_complete, False)


def test_a_limit_inside_a_character_is_not_complete(run: Any) -> None:
    result = run({nasty_token(b"\xe5\x9c"): 1.0}, OutputConstraint.regex("[a-z在]*"), 1)
    assert (result.text, seen(result).complete) == ("\ufffd", False)


# Dead ends


def test_a_language_that_no_token_can_begin_is_a_request_error_before_anything_runs() -> None:
    loaded = scripted_loaded(lambda _: np.zeros(NUM_TOKENS), VOCABULARY)
    engine = Engine(loaded)
    for max_new_tokens in (0, 5):
        with pytest.raises(ConstraintDeadEnd, match="can begin"):
            engine.stream("a", RequestOptions(max_new_tokens, OutputConstraint.grammar('root ::= "zebra"')))
    assert loaded.model.units == []


def test_a_dead_end_keeps_what_was_committed_and_spares_the_next_request() -> None:
    loaded = scripted_loaded(lambda _: np.zeros(NUM_TOKENS), VOCABULARY)
    engine = Engine(loaded)
    options = RequestOptions(constraint=OutputConstraint.grammar('root ::= "[" "]" "zebra" | "{" "}"'))
    script = loaded.model.script
    loaded.model.script = lambda _: preferring(NUM_TOKENS, {nasty_token(b"["): 5.0})
    stream = engine.stream("a", options)
    assert [next(stream), next(stream)] == ["[", "]"]
    with pytest.raises(ConstraintDeadEnd, match=r"after 2 new tokens, ending in '\[\]'"):
        next(stream)
    assert loaded.model.units == [1, 1]  # the dead end itself costs no forward pass
    loaded.model.script = script
    assert engine.generate("a", RequestOptions(constraint=OutputConstraint.choice(["}"]))).text == "}"


def test_broken_logits_are_no_dead_end(compiler: GrammarCompiler) -> None:
    def script(so_far: tuple[int, ...]) -> ArrayLike:
        return np.full(NUM_TOKENS, np.nan) if len(so_far) == 2 else preferring(NUM_TOKENS, {OK: 1.0})

    engine = Engine(scripted_loaded(script, VOCABULARY), compiler=compiler)
    options = RequestOptions(constraint=OutputConstraint.grammar('root ::= "ok"+'))
    with pytest.raises(NonFiniteLogits):
        engine.generate("a", options)
    # Illegal tokens may have any logit at all.
    odd = np.full(NUM_TOKENS, np.nan)
    odd[[OK, EOS]] = 1.0, 0.5
    odd[nasty_token("o")] = 0.0
    engine = Engine(scripted_loaded(lambda _: odd, VOCABULARY), compiler=compiler)
    assert engine.generate("a", RequestOptions(1, OutputConstraint.choice(["ok"]))).text == "ok"


def test_bad_constraints_leave_the_engine_usable() -> None:
    engine = Engine(scripted_loaded(lambda _: preferring(NUM_TOKENS, {OK: 1.0}), VOCABULARY))
    for constraint in (
        OutputConstraint.grammar('root ::= "a'),
        OutputConstraint.regex("(a"),
        OutputConstraint.choice([]),
        OutputConstraint.json_schema({"type": "object", "uniqueItems": True}),
    ):
        with pytest.raises(ConstraintError):
            engine.generate("a", RequestOptions(constraint=constraint))
    with pytest.raises(InvalidGrammar, match="line 2"):
        engine.generate("a", RequestOptions(constraint=OutputConstraint.grammar('root ::= "a"\nroot ::= "b"')))
    assert engine.generate("a", RequestOptions(constraint=OutputConstraint.choice(["ok"]))).text == "ok"


# Observation and company


def test_the_observation_counts() -> None:
    engine = Engine(scripted_loaded(saying([OK, OK, EOS], 1, NUM_TOKENS), VOCABULARY))
    options = RequestOptions(constraint=OutputConstraint.grammar('root ::= "ok"+'))
    first, second = (seen(engine.generate("a", options)) for _ in range(2))
    assert (first.cache, second.cache) == (CacheAccess.BUILT, CacheAccess.HIT)
    assert first.mask_positions == second.mask_positions == 3
    assert all(seconds >= 0.0 for seconds in (first.prepare_seconds, first.mask_seconds, first.matcher_seconds))


def test_a_free_request_makes_no_compiler() -> None:
    class Forbidden:
        def compile(self, constraint: OutputConstraint) -> Any:
            raise AssertionError("a free request was compiled")

    engine = Engine(scripted_loaded(saying([OK, EOS], 1, NUM_TOKENS), VOCABULARY), compiler=Forbidden())
    assert engine.generate("a").text == "ok"


def test_a_constrained_neighbour_does_not_touch_a_free_request(compiler: GrammarCompiler) -> None:
    def script(so_far: tuple[int, ...]) -> ArrayLike:
        return np.random.default_rng(list(so_far)).standard_normal(NUM_TOKENS)

    engine = Engine(scripted_loaded(script, VOCABULARY, max_context=400), compiler=compiler)
    free = RequestOptions(30, sampling=SamplingOptions(temperature=1.0, seed=8))
    bound = RequestOptions(30, OutputConstraint.json_object(), SamplingOptions(temperature=1.0, seed=8))
    alone = [engine.generate("a", free).text, engine.generate("a", bound).text]
    streams = [engine.stream("a", free), engine.stream("a", bound)]
    texts = ["", ""]
    for _ in range(30):
        for place, stream in enumerate(streams):
            texts[place] += next(stream, "")
    assert texts == alone


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "a": {"type": "null"}},
    "required": ["name"],
    "additionalProperties": False,
}
CHOICES = ["ok", "okok", "name", 'a", "b']


@pytest.mark.parametrize(
    ("constraint", "is_member"),
    [
        (OutputConstraint.json_schema(PERSON), lambda text: len(json.loads(text)["name"]) <= 5),
        (OutputConstraint.regex("(ok|a1*){2,4}"), re.compile("(ok|a1*){2,4}").fullmatch),
        (OutputConstraint.choice(CHOICES), CHOICES.__contains__),
        (OutputConstraint.grammar('root ::= "[" root? "]" | "-"'), re.compile(r"\[*-?\]*").fullmatch),
    ],
    ids=lambda value: str(value.kind) if isinstance(value, OutputConstraint) else "",
)
def test_a_random_model_always_gives_the_shape(run: Any, constraint: OutputConstraint, is_member: Any) -> None:
    """Noise wants every token alike; the vocabulary can spell all of these languages to their end."""
    num_finished = 0
    for seed in range(25):
        noise = np.random.default_rng(seed).standard_normal((400, NUM_TOKENS)) * 2
        script = lambda so_far, noise=noise: noise[len(so_far)]  # noqa: E731
        result = run(script, constraint, 200, temperature=1.0, seed=seed, top_k=5)
        num_finished += finished(result)
        assert not finished(result) or is_member(result.text)
        data = b"".join(NASTY_TOKENS[token][0] for token in result.token_ids if token not in EOS_IDS)
        assert result.text == data.decode("utf-8", "replace")
    assert num_finished >= 20
