"""Everything that makes masks cheap, at once and in small: loops, slices, clamped counts, table moves.

Vocabularies are full of tokens of several characters, white space beyond ASCII and cut characters; slices apply however
few tokens they have; every other text moves to another table at each token. The plain recognizer judges every bit.
`check_case(seed)` runs one case again.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from infernix.errors import EmptyLanguage
from infernix.grammar import ir
from infernix.grammar.unicode import character_class
from infernix.matching import CompiledGrammar, analysis, slices
from infernix.matching.masks import VocabularyIndex
from infernix.matching.matcher import Matcher
from infernix.matching.vocabulary import TokenClass, Vocabulary
from support.recognizer import Recognizer

# A stretch without grammars so ambiguous that the recognizer takes seconds.
SEEDS = range(28, 64)
WALK_LENGTH = 9
# The recognizer takes long for long ambiguous texts.
MAX_TEXT_BYTES = 24

# A letter of each of two groups, a digit, ends of loops, white space of one to three bytes, other characters.
CHARACTERS = ("a", "z", "0", '"', "\\", "/", " ", "\n", "\u00a0", "é", "\u2028", "\u3000", "\ufeff", "在", "😀")
_LINE_ENDS = [(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)]
_WHITE_SPACE = [(0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x2028, 0x2029), (0x3000, 0x3000), (0xFEFF, 0xFEFF)]
CLASSES = (
    character_class([(ord('"'), ord('"'))], negated=True),
    character_class([(ord('"'), ord('"')), (ord("\\"), ord("\\")), (0, 0x1F)], negated=True),
    character_class(_LINE_ENDS, negated=True),
    character_class(_WHITE_SPACE),
    character_class(_WHITE_SPACE, negated=True),
    character_class([(ord("a"), ord("z"))]),
    character_class([(ord("a"), ord("f")), (ord("0"), ord("9"))]),
    character_class([(0x80, 0x10FFFF)]),
    character_class([(0xE9, 0xE9), (0x4E00, 0x9FFF)]),
    character_class([(0, 0x10FFFF)]),
    character_class([(0x2028, 0x2028), (0xA0, 0xA0)]),
)


def random_vocabulary(rng: Random) -> Vocabulary:
    """Single bytes of the characters, and forty tokens of up to seven characters, a third of them cut."""
    texts = [bytes([byte]) for byte in sorted(set("".join(CHARACTERS).encode()))]
    for _ in range(40):
        some = rng.sample(CHARACTERS, rng.choice((1, 2, 3, len(CHARACTERS))))
        data = "".join(rng.choice(some) for _ in range(rng.randint(1, 7))).encode()
        begin = rng.randint(0, min(2, len(data) - 1)) if rng.random() < 0.2 else 0
        end = rng.randint(begin + 1, len(data)) if rng.random() < 0.3 else len(data)
        texts.append(data[begin:end])
    texts += [b"", rng.choice((b"\xed\xa0\x80", b"a\xff", b"\xc0\x80", b"\xf4\x90", b"aa\xf4\x8f", b"\xe0\x80a"))]
    classes = [TokenClass.TEXT] * len(texts) + [TokenClass.CONTROL, TokenClass.CONTROL, TokenClass.EOS]
    return Vocabulary([*texts, b"a", b"<x>", b"</s>"], classes)


class RandomLoops:
    """Grammars of loops, beside each other, inside each other, and with token terminals around them."""

    def __init__(self, rng: Random, token_ids: tuple[int, ...]) -> None:
        self.rng = rng
        self.token_ids = token_ids

    def bounds(self) -> tuple[int, int | None]:
        rng = self.rng
        minimum = rng.choice((0, 0, 1, 2, 3, 7, 20))
        return minimum, rng.choice((None, minimum + rng.randint(0, 6), minimum + rng.randint(1, 60), 1_000_000_000))

    def border(self) -> ir.Expression:
        """What comes before or after a loop."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.3:
            return ir.TokenSet(tuple(sorted(rng.sample(self.token_ids, rng.randint(1, 3)))), rng.random() < 0.25)
        if kind < 0.45:
            return ir.EMPTY
        return ir.text("".join(rng.choice(CHARACTERS) for _ in range(rng.randint(1, 2))))

    def body(self, depth: int) -> ir.Expression:
        """What a loop goes round on: a class, a class with escapes, several characters, another loop, or nothing."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.4 or depth == 0:
            return rng.choice(CLASSES)
        if kind < 0.6:
            return ir.choice(rng.choice(CLASSES), ir.sequence(ir.text("\\"), rng.choice(CLASSES)))
        if kind < 0.7:
            return ir.sequence(rng.choice(CLASSES), ir.optional(self.border()))
        if kind < 0.8:
            return ir.optional(self.loop(depth - 1))
        if kind < 0.9:
            return ir.choice(rng.choice(CLASSES), self.border())
        return self.loop(depth - 1)

    def loop(self, depth: int) -> ir.Expression:
        return ir.Repeat(self.body(depth), *self.bounds())

    def part(self) -> ir.Expression:
        rng = self.rng
        if rng.random() < 0.3:
            return ir.choice(self.part(), self.part())
        return ir.sequence(self.border(), self.loop(1), self.border())

    def grammar(self) -> ir.Grammar:
        rng = self.rng
        builder = ir.GrammarBuilder()
        root, other = builder.declare("root"), builder.declare("other")
        builder.define(other, self.part())
        options = [
            self.part(),
            ir.sequence(other, self.part()),
            ir.sequence(root, other),
            ir.sequence(self.part(), root),
            ir.sequence(self.border(), root, self.border()),
            ir.Repeat(ir.choice(other, ir.sequence(self.border(), root)), *self.bounds()),
        ]
        builder.define(root, ir.choice(self.part(), *rng.sample(options, rng.randint(0, 2))))
        return builder.build(root)


def check_case(seed: int) -> bool:
    """One random grammar and vocabulary; False if the language is empty."""
    rng = Random(seed)
    vocabulary = random_vocabulary(rng)
    text_ids = np.flatnonzero(vocabulary.classes != TokenClass.EOS).tolist()
    grammar = RandomLoops(rng, tuple(text_ids)).grammar()
    try:
        compiled = CompiledGrammar(grammar, VocabularyIndex(vocabulary))
    except EmptyLanguage:
        return False
    recognizer = Recognizer(grammar)
    for is_moving in (False, True):
        matcher: Matcher = compiled.new_matcher()
        state = recognizer.start()
        tokens: list[int] = []
        text = b""
        while len(tokens) < WALK_LENGTH and len(text) < MAX_TEXT_BYTES:
            expected = recognizer.legal_tokens(state, vocabulary)
            row = np.zeros(vocabulary.num_mask_words, np.int32)
            matcher.fill(row)
            found = set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())
            where = f"check_case({seed}) after {tokens}: missing {expected - found}, too many {found - expected}"
            assert found == expected, where
            assert matcher.may_end == recognizer.may_end(state), where
            content = sorted(expected - vocabulary.eos_ids)
            if not content:
                break
            long_ones = [token for token in content if len(vocabulary.token_bytes[token]) > 3]
            token = rng.choice(long_ones if long_ones and rng.random() < 0.6 else content)
            if is_moving:
                compiled.epoch.limit_bytes = 0
            assert matcher.accept(token), where
            after = recognizer.accept(state, token, vocabulary)
            assert after is not None
            state = after
            tokens.append(token)
            text += vocabulary.token_bytes[token]
    return True


@pytest.fixture(autouse=True)
def _shortcuts_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MIN_SHARE", 0)
    monkeypatch.setattr(slices, "MIN_ENTRY_SHARE", 0)
    monkeypatch.setattr(slices, "ENTRY_REQUESTS", 1)
    monkeypatch.setattr(slices, "CHARACTER_STEPS", (1 << 30, 4, 2))
    monkeypatch.setattr(analysis, "MAX_EXPANDED_EDGES", 0)


def test_masks_of_random_loops() -> None:
    assert sum(map(check_case, SEEDS)) > len(SEEDS) // 2
