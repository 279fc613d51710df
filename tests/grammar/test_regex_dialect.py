"""Regular expressions against another implementation, Python's `re`, and against expressions in use.

Where the two dialects read the same text, `re.fullmatch` with ASCII classes must agree. They differ in characters that
the texts here avoid: `.` matches a carriage return and two other line terminators in Python, and `\\s` is larger here.
"""

from __future__ import annotations

import json
import random
import re
import warnings
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from infernix.errors import InvalidRegex
from infernix.grammar import ir
from infernix.grammar.regex import parse_regex
from support.recognizer import Recognizer
from support.shared_data import shared_data


def _compile_in_python(regex: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        # "[[" and "--" in a class might mean a nested set or a difference one day.
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(regex, re.ASCII)


# Expressions are built as text from parts whose precedence is known, so that no tree has to be printed.

ALPHABET = "ab-1_ .\né"
_CLASSES = st.builds(
    lambda negation, atoms, dash: f"[{negation}{''.join(atoms)}{dash}]",
    st.sampled_from(["", "^"]),
    st.lists(st.sampled_from(["a", "b", "1", "_", " ", "é", "\\n", "\\-", "\\.", ".", "\\d", "a-b", "1-a"]), min_size=1)
    | st.lists(st.sampled_from(["\\w", "\\W", "\\D", "a", "é"]), min_size=1, max_size=1),
    st.sampled_from(["", "-"]),
)
_ATOMS = (
    st.sampled_from(
        [*"ab1_ é-", "\\.", "\\n", "\\x61", "\\u00e9", ".", "\\d", "\\D", "\\w", "\\W", "ab", "", "]", "}", "{}", '{"']
    )
    | _CLASSES
)


def _extended(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = st.builds("{}{})".format, st.sampled_from(["(", "(?:"]), inner)
    quantifiers = st.builds(
        "{}{}".format,
        st.sampled_from(["*", "+", "?", "{0}", "{1}", "{2}", "{0,1}", "{1,3}", "{2,}"]),
        st.sampled_from(["", "?"]),
    )
    repetitions = st.builds("{}{}".format, groups | _CLASSES | st.sampled_from(["a", "é", ".", "\\w"]), quantifiers)
    sequences = st.builds("{}{}".format, inner | repetitions, repetitions | groups)
    return groups | repetitions | sequences | st.builds("{}|{}".format, inner, inner)


REGEXES = st.recursive(_ATOMS, _extended, max_leaves=8)
TEXTS = st.lists(st.text(ALPHABET + '{}]"', max_size=5), min_size=1, max_size=12)


@settings(max_examples=400, deadline=None)
@given(REGEXES, TEXTS)
def test_random_expressions_match_what_python_matches(regex: str, texts: list[str]) -> None:
    recognizer = Recognizer(parse_regex(regex))
    expected = _compile_in_python(regex)
    for text in [*texts, *_mutants(random.Random(len(regex)), texts[0], 4)]:
        assert recognizer.matches(text.encode()) == (expected.fullmatch(text) is not None), text


def _random_member(rng: random.Random, expression: ir.Expression) -> str:
    match expression:
        case ir.Literal(data):
            return data.decode()
        case ir.CharacterClass(ranges):
            printable = [chr(code) for low, high in ranges for code in range(max(low, 0x20), min(high, 0x7E) + 1)]
            return rng.choice(printable or [chr(ranges[0][0])])
        case ir.Sequence(items):
            return "".join(_random_member(rng, item) for item in items)
        case ir.Choice(options):
            return _random_member(rng, rng.choice(options))
        case ir.Repeat(body, minimum, maximum):
            most = minimum + 2 if maximum is None else min(maximum, minimum + 2)
            return "".join(_random_member(rng, body) for _ in range(rng.randint(minimum, most)))
    raise AssertionError(expression)


def _mutants(rng: random.Random, text: str, num_mutants: int) -> list[str]:
    """Texts that differ from `text` in one character: changed, added or left out."""
    mutants = []
    for _ in range(num_mutants):
        start = rng.randint(0, len(text))
        stop = min(len(text), start + rng.randint(0, 1))
        mutants.append(text[:start] + rng.choice(["", *text, *"aZ0-. /\n"]) + text[stop:])
    return mutants


def _schema_patterns() -> list[str]:
    lines = shared_data("regex/schema_patterns.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["pattern"] for line in lines]


def test_patterns_in_use_are_read_or_refused_for_a_known_reason() -> None:
    outcomes: Counter[str] = Counter()
    for pattern in _schema_patterns():
        try:
            parse_regex(pattern)
            outcomes["accepted"] += 1
        except InvalidRegex as error:
            outcomes[error.message.split(" at line ")[0]] += 1
    assert outcomes == {
        "accepted": 1505,
        "^ is supported only at the start of a top-level alternative": 13,
        "$ is supported only at the end of a top-level alternative": 6,
        "lookahead is not supported": 11,
        "Unicode property classes (\\p) are not supported": 1,
        "back-references (\\1) are not supported": 1,
        "word boundaries (\\b) are not supported": 1,
    }


def test_patterns_in_use_match_what_python_matches() -> None:
    rng = random.Random(1)
    num_members = num_mutants = num_matching_mutants = 0
    for pattern in _schema_patterns():
        try:
            grammar = parse_regex(pattern)
        except InvalidRegex:
            continue
        recognizer = Recognizer(grammar)
        expected = _compile_in_python(pattern)
        member = _random_member(rng, grammar.rules[0].body)
        if len(member) > 40:
            continue
        num_members += 1
        assert recognizer.matches(member.encode()), (pattern, member)
        assert expected.fullmatch(member), (pattern, member)
        for mutant in _mutants(rng, member, 3):
            matches = recognizer.matches(mutant.encode())
            assert matches == (expected.fullmatch(mutant) is not None), (pattern, mutant)
            num_mutants += 1
            num_matching_mutants += matches
    # The comparison says little unless texts of both sorts were among the mutants.
    assert num_members > 1300
    assert num_mutants // 10 < num_matching_mutants < num_mutants * 9 // 10
