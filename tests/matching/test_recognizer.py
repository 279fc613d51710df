"""The oracle itself: cases by hand, and against sets of strings that are built up without any parsing."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from random import Random

import pytest

from infernix.grammar import ir
from infernix.grammar.unicode import character_class
from support.random_grammars import FAMILIES, fixed_grammars, random_grammar
from support.recognizer import Recognizer, State, possible_code_points
from support.vocabularies import (
    EMPTY_TEXT,
    EOS_IDS,
    PADDING,
    SECOND_A,
    THINK_CLOSE,
    THINK_CLOSE_AS_TEXT,
    TOOL_CALL,
    nasty_token,
    nasty_vocabulary,
)

A, B, C = ir.text("a"), ir.text("b"), ir.text("c")


def recognizer_of(body: ir.Expression) -> Recognizer:
    return Recognizer(ir.Grammar.of(body))


def walk(recognizer: Recognizer, tokens: list[int]) -> State | None:
    state: State | None = recognizer.start()
    for token in tokens:
        assert state is not None
        state = recognizer.accept(state, token, nasty_vocabulary())
    return state


def legal_after(recognizer: Recognizer, tokens: list[int]) -> set[int]:
    state = walk(recognizer, tokens)
    assert state is not None
    return recognizer.legal_tokens(state, nasty_vocabulary())


class TestLanguages:
    @pytest.mark.parametrize(
        ("name", "members", "others"),
        [
            ("s_s", ["a", "aa", "aaaaaaa"], ["", "b", "ab"]),
            ("s_s_s_empty", ["", "a", "aaaa"], ["b"]),
            ("sums", ["a", "a+a*a", "(a+a)*(a)"], ["", "a+", "(a", "a)", "()", "aa"]),
            ("palindromes", ["", "aa", "abba", "baab"], ["a", "ab", "aab", "abab"]),
            ("balanced", ["", "ab", "aabb", "abab", "aabbab"], ["a", "ba", "abb", "aab"]),
            ("hidden_left", ["c", "cb", "acb", "aacb", "aaaacbb"], ["ac", "aaacb", "b", "cba"]),
            ("hidden_mutual", ["a", "b", "ca", "ba", "bba", "caba", "aa"], ["", "c", "ab", "cb"]),
            ("unit_cycle", ["", "a", "ab", "abb", "b"], ["ba", "aa"]),
            ("dead_branches", ["ac"], ["", "a", "ab", "b", "acb"]),
            ("ambiguous_count", ["aab", "aaab", "a" * 14 + "b"], ["ab", "a" * 15 + "b", "aa"]),
            ("nullable_count", ["", "a", "b", "a" * 9 + "b"], ["a" * 10, "ba"]),
            ("nullable_minimum", ["", "a", "abab", "a" * 30], ["b", "abb"]),
            ("ambiguous_minimum", ["aaaaab", "a" * 40 + "b"], ["aaaab", "b"]),
            ("nested_counts", ["aa", "abac", "aaa", "a" * 12, "acac"], ["a", "a" * 13, "aabca" + "bb", "ca"]),
            ("count_of_counts", ["aaaa", "a" * 9], ["aaa", "a" * 10]),
            ("long_count", ["ac", "a" + "ab" * 500 + "c"], ["a" + "ab" * 500 + "bc", "c"]),
            ("exact_count", ["a" * 12], ["a" * 11, "a" * 13, ""]),
            ("characters", ["è", "é在😀"], ["", "e", "ééé在", "ê"]),
            ("only_empty", [""], ["a"]),
        ],
    )
    def test_members_and_others(self, name: str, members: list[str], others: list[str]) -> None:
        recognizer = Recognizer(fixed_grammars()[name])
        assert [text for text in members if not recognizer.matches(text.encode())] == []
        assert [text for text in others if recognizer.matches(text.encode())] == []

    def test_a_text_can_be_completed_only_where_a_member_goes_on(self) -> None:
        recognizer = Recognizer(fixed_grammars()["dead_branches"])
        assert recognizer.is_prefix(b"")
        assert recognizer.is_prefix(b"a")
        assert recognizer.is_prefix(b"ac")
        assert not recognizer.is_prefix(b"b")
        assert not recognizer.is_prefix(b"ab")
        assert not recognizer.is_prefix(b"acb")

    @pytest.mark.parametrize(
        "body",
        [
            ir.NOTHING,
            ir.RuleReference(0),
            ir.Sequence((A, ir.RuleReference(0))),
            ir.Sequence((A, ir.CharacterClass(()))),
            ir.Repeat(A, 3, 2),
            ir.Repeat(ir.NOTHING, 1, None),
            ir.TokenSet(()),
            ir.Automaton(2, ((0, 0x61, 0x61, 1),), frozenset()),
        ],
    )
    def test_empty_languages(self, body: ir.Expression) -> None:
        recognizer = recognizer_of(body)
        assert recognizer.is_empty
        assert not recognizer.is_prefix(b"")
        assert not recognizer.matches(b"")
        assert recognizer.legal_tokens(recognizer.start(), nasty_vocabulary()) == set()

    def test_a_repetition_of_nothing_is_the_empty_string(self) -> None:
        recognizer = recognizer_of(ir.sequence(ir.Repeat(ir.NOTHING, 0, None), A))
        assert recognizer.matches(b"a")
        assert not recognizer.is_prefix(b"b")

    def test_an_automaton_is_left_where_it_cannot_reach_its_end(self) -> None:
        edges = ((0, 0x61, 0x63, 1), (0, 0x78, 0x7A, 2), (1, 0x61, 0x61, 0), (2, 0x61, 0x61, 2))
        recognizer = recognizer_of(ir.sequence(ir.Automaton(3, edges, frozenset({1})), B))
        assert recognizer.matches(b"ab")
        assert recognizer.matches(b"babb")
        assert recognizer.matches(b"aacb")
        assert not recognizer.is_prefix(b"x")

    def test_a_deep_expression_needs_no_deep_stack(self) -> None:
        body: ir.Expression = A
        for _ in range(5000):
            body = ir.Sequence((body,))
        assert recognizer_of(body).matches(b"a")


class TestCharacters:
    @pytest.mark.parametrize(
        "code_point", [0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF], ids=hex
    )
    def test_borders_of_encoding_lengths(self, code_point: int) -> None:
        data = chr(code_point).encode()
        assert possible_code_points(data) == [(code_point, code_point)]
        exactly = recognizer_of(ir.CharacterClass(((code_point, code_point),)))
        anything_else = recognizer_of(character_class([(code_point, code_point)], negated=True))
        assert exactly.matches(data)
        assert not anything_else.matches(data)
        assert all(exactly.is_prefix(data[:end]) and not exactly.matches(data[:end]) for end in range(len(data)))

    @pytest.mark.parametrize(
        "data",
        [
            b"\x80",
            b"\xbf",
            b"\xc0",
            b"\xc1",
            b"\xf5",
            b"\xff",
            b"\xed\xa0",
            b"\xe0\x9f",
            b"\xf0\x8f",
            b"\xf4\x90",
            b"\xc3a",
        ],
    )
    def test_bytes_that_no_character_begins_with(self, data: bytes) -> None:
        anything = recognizer_of(ir.Repeat(character_class([], negated=True), 0, None))
        assert possible_code_points(data) == []
        assert not anything.is_prefix(data)

    def test_every_pair_of_bytes_against_python(self) -> None:
        anything = recognizer_of(character_class([], negated=True))
        for first, second in product(range(0x80, 0x100, 3), range(0x70, 0xD0, 5)):
            data = bytes((first, second))
            tails = (b"", b"\x80", b"\x80\x80")
            assert anything.is_prefix(data) == any(_is_one_character(data + tail) for tail in tails), data


class TestTokens:
    def test_bytes_are_legal_through_every_token_that_spells_them(self) -> None:
        assert legal_after(recognizer_of(ir.text("aa")), []) == {nasty_token("a"), SECOND_A}

    def test_end_tokens_are_legal_where_the_text_may_end(self) -> None:
        recognizer = recognizer_of(ir.sequence(ir.text("ok"), ir.optional(ir.text("ok"))))
        assert legal_after(recognizer, []) == {nasty_token("ok"), nasty_token("o")}
        assert legal_after(recognizer, [nasty_token("ok")]) == {nasty_token("ok"), nasty_token("o"), *EOS_IDS}
        assert legal_after(recognizer, [nasty_token("ok"), nasty_token("ok")]) == set(EOS_IDS)
        assert legal_after(recognizer, [nasty_token("ok"), EOS_IDS[1]]) == set()

    def test_control_padding_and_empty_tokens_never_match_by_bytes(self) -> None:
        anything = recognizer_of(ir.Repeat(ir.ByteRange(0, 255), 0, None))
        expected = set(range(50)) - {THINK_CLOSE, TOOL_CALL, PADDING, EMPTY_TEXT}
        assert legal_after(anything, []) == expected

    def test_named_tokens(self) -> None:
        named = (nasty_token("a"), EMPTY_TEXT, THINK_CLOSE, EOS_IDS[0], PADDING)
        recognizer = recognizer_of(ir.sequence(ir.TokenSet(named), B))
        assert legal_after(recognizer, []) == {nasty_token("a"), EMPTY_TEXT, THINK_CLOSE}
        assert legal_after(recognizer, [EMPTY_TEXT]) == {nasty_token("b")}

    def test_excluded_tokens_leave_every_other_text_token(self) -> None:
        recognizer = recognizer_of(ir.TokenSet((nasty_token("a"),), excluded=True))
        not_text = {THINK_CLOSE, TOOL_CALL, PADDING, *EOS_IDS}
        assert legal_after(recognizer, []) == set(range(50)) - not_text - {nasty_token("a")}

    def test_a_named_text_token_follows_both_ways(self) -> None:
        by_token = ir.sequence(ir.TokenSet((nasty_token("ok"),)), A)
        recognizer = recognizer_of(ir.choice(by_token, ir.text("okb"), ir.text("c")))
        assert legal_after(recognizer, [nasty_token("ok")]) == {nasty_token("a"), SECOND_A, nasty_token("b")}
        assert legal_after(recognizer, [nasty_token("o"), nasty_token("k")]) == {nasty_token("b")}

    def test_a_token_terminal_never_stands_inside_a_token(self) -> None:
        recognizer = recognizer_of(ir.sequence(ir.text("o"), ir.TokenSet((nasty_token("k"),))))
        assert legal_after(recognizer, []) == {nasty_token("o")}
        assert not recognizer.matches(b"ok")

    def test_the_spelling_of_a_control_token_is_text(self) -> None:
        by_text, by_token = recognizer_of(ir.text("</think>")), recognizer_of(ir.TokenSet((THINK_CLOSE,)))
        assert legal_after(by_text, []) == {THINK_CLOSE_AS_TEXT}
        assert legal_after(by_token, []) == {THINK_CLOSE}

    def test_a_token_path_may_end_the_text_while_the_byte_path_goes_on(self) -> None:
        recognizer = recognizer_of(ir.choice(ir.TokenSet((nasty_token("o"),)), ir.text("ok")))
        assert legal_after(recognizer, [nasty_token("o")]) == {nasty_token("k"), *EOS_IDS}


# Only members out of these bytes are looked for, or there would be too many.
UNITS = sorted(set("abcéè".encode()))
MAX_BYTES = 5


class TestAgainstEnumeration:
    """Members of up to `MAX_BYTES` bytes, found by building sets of strings instead of by parsing."""

    @pytest.mark.parametrize("family", FAMILIES)
    def test_random_grammars(self, family: str) -> None:
        num_members = 0
        for seed in range(30):
            rng = Random(f"{family} {seed}")
            grammar = random_grammar(rng, family)
            members = enumerate_language(grammar)
            recognizer = Recognizer(grammar)
            num_members += len(members)
            sample = sorted(members) if len(members) <= 200 else rng.sample(sorted(members), 200)
            for data in sample:
                assert recognizer.matches(data), (family, seed, data)
                assert all(recognizer.is_prefix(data[:end]) for end in range(len(data))), (family, seed, data)
            for data in {_spoil(rng, rng.choice(sample) if sample else b"") for _ in range(60)}:
                if len(data) <= MAX_BYTES:
                    assert recognizer.matches(data) == (data in members), (family, seed, data)
        assert num_members > 100

    @pytest.mark.parametrize("name", fixed_grammars())
    def test_every_live_state_can_be_completed(self, name: str) -> None:
        recognizer = Recognizer(fixed_grammars()[name])
        rng = Random(name)
        state = recognizer.start()
        for _ in range(5):
            assert _can_complete(recognizer, state)
            choices = recognizer.allowed_bytes(state)
            if not choices:
                assert recognizer.may_end(state)
                break
            after = recognizer.step_byte(state, rng.choice(choices))
            assert after is not None
            state = after

    @pytest.mark.parametrize("family", FAMILIES)
    def test_live_states_of_random_grammars_can_be_completed(self, family: str) -> None:
        for seed in range(12):
            rng = Random(f"{family} {seed}")
            recognizer = Recognizer(random_grammar(rng, family))
            state: State | None = recognizer.start()
            for _ in range(3 if not recognizer.is_empty else 0):
                assert state is not None
                assert _can_complete(recognizer, state), (family, seed)
                choices = recognizer.allowed_bytes(state)
                state = recognizer.step_byte(state, rng.choice(choices)) if choices else state


def _spoil(rng: Random, data: bytes) -> bytes:
    place = rng.randint(0, len(data))
    middle = bytes(rng.choice(UNITS) for _ in range(rng.randint(0, 2)))
    return data[:place] + middle + data[place + rng.randint(0, 2) :]


def _can_complete(recognizer: Recognizer, state: State) -> bool:
    """Breadth-first search for an end, bounded in width: three ways on from each state."""
    level = [state]
    for _ in range(40):
        if any(recognizer.may_end(candidate) for candidate in level):
            return True
        followers = []
        for candidate in level:
            for byte in recognizer.allowed_bytes(candidate)[:3]:
                after = recognizer.step_byte(candidate, byte)
                if after is not None:
                    followers.append(after)
        Random(0).shuffle(followers)
        level = followers[:300]
    return False


def _is_one_character(data: bytes) -> bool:
    try:
        return len(data.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False


@lru_cache
def _characters() -> tuple[bytes, ...]:
    """Every character that `UNITS` can spell, found by decoding all combinations."""
    combinations = (bytes(units) for num_bytes in range(1, 5) for units in product(UNITS, repeat=num_bytes))
    return tuple(data for data in combinations if _is_one_character(data))


def enumerate_language(grammar: ir.Grammar) -> frozenset[bytes]:
    """All members of up to `MAX_BYTES` bytes out of `UNITS`: a fixpoint over sets of strings."""
    found: list[frozenset[bytes]] = [frozenset() for _ in grammar.rules]
    while True:
        updated = [_strings(rule.body, found) for rule in grammar.rules]
        if updated == found:
            return found[grammar.root]
        found = updated


def _strings(expression: ir.Expression, rules: list[frozenset[bytes]]) -> frozenset[bytes]:
    match expression:
        case ir.Literal(data):
            return frozenset({data} if len(data) <= MAX_BYTES and set(data) <= set(UNITS) else ())
        case ir.ByteRange(low, high):
            return frozenset(bytes([byte]) for byte in UNITS if low <= byte <= high)
        case ir.CharacterClass(ranges):
            return frozenset(
                data for data in _characters() if any(low <= ord(data.decode()) <= high for low, high in ranges)
            )
        case ir.RuleReference(index):
            return rules[index]
        case ir.Choice(options):
            return frozenset().union(*(_strings(option, rules) for option in options))
        case ir.Sequence(items):
            joined = frozenset({b""})
            for item in items:
                joined = _concatenate(joined, _strings(item, rules))
            return joined
        case ir.Repeat(body, minimum, maximum):
            bodies = _strings(body, rules)
            power = frozenset({b""})
            collected: frozenset[bytes] = power if minimum == 0 else frozenset()
            # Beyond the minimum, a body that adds anything adds a byte, so a few more powers reach every length.
            for count in range(1, (minimum + MAX_BYTES if maximum is None else min(maximum, minimum + MAX_BYTES)) + 1):
                power = _concatenate(power, bodies)
                if count >= minimum:
                    collected |= power
            return collected
        case ir.Automaton(_, edges, accepting):
            level = {(0, b"")}
            reached = set(level)
            for _ in range(MAX_BYTES):
                level = {
                    (target, data + bytes([byte]))
                    for state, data in level
                    for source, low, high, target in edges
                    if source == state
                    for byte in UNITS
                    if low <= byte <= high
                }
                reached |= level
            return frozenset(data for state, data in reached if state in accepting)
        case _:
            raise AssertionError(expression)


def _concatenate(left: frozenset[bytes], right: frozenset[bytes]) -> frozenset[bytes]:
    short_first = sorted(right, key=len)
    joined = set()
    for first in left:
        for second in short_first:
            if len(first) + len(second) > MAX_BYTES:
                break
            joined.add(first + second)
    return frozenset(joined)
