"""What simulated requests live in: a vocabulary with a hole, a model whose every token counts, counted matchers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from infernix.engine.constraints import ConstraintService
from infernix.engine.preparation import Preparation
from infernix.frontend.constraint import TokenMatcher
from infernix.frontend.framing import Framing
from infernix.frontend.thinking import encode_forced_end
from infernix.matching import GrammarCompiler
from infernix.matching.matcher import Companion, LookAhead
from infernix.matching.sources import GrammarSource
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.options import SamplingParameters
from support.chat_engine import FORCED_TEXT, ChatTemplate, ChatTokenizer
from support.chat_output import CHAT, EOS, SECOND_EOS, THINK_CLOSE, TOOL_OPEN, answer_tokens, xml_call

# No token spells this character, so a language that insists on it has dead ends.
HOLE = "~"
# After a prompt with this token the model's numbers break down now and then.
BROKEN = 1
# After a prompt with this one it likes to repeat itself.
COPYING = 2

NUM_TOKENS = CHAT.num_tokens
_NUM_MOODS = 1024
# What the model repeats once it has begun it, so that calls and objects come about by themselves.
WISHES = (
    xml_call("sub", {"a": "12", "b": "-3"}),
    xml_call("now", {}),
    '{"ok": true, "n": [1, 22]}',
    "</think>\n\nyes",
)


def _vocabulary() -> Vocabulary:
    classes = [TokenClass(value) for value in CHAT.classes.tolist()]
    classes[ord(HOLE)] = TokenClass.NEVER
    return Vocabulary(list(CHAT.token_bytes), classes)


VOCABULARY = _vocabulary()


@cache
def _moods() -> NDArray[np.float32]:
    table = np.random.default_rng(1).standard_normal((_NUM_MOODS, NUM_TOKENS)).astype(np.float32) * 1.5
    for token, like in {EOS: 1.5, SECOND_EOS: 0.5, THINK_CLOSE: 3.0, TOOL_OPEN: 2.0, ord('"'): 2.0}.items():
        table[:, token] += like
    table[:, list(b'abcyes{}:,01 "\n')] += 1.0
    table.flags.writeable = False
    return table


@cache
def _following() -> dict[tuple[int, ...], int]:
    """What comes after three tokens of a wish."""
    following: dict[tuple[int, ...], int] = {}
    for wish in WISHES:
        tokens = answer_tokens(wish)
        for place in range(3, len(tokens)):
            following.setdefault(tuple(tokens[place - 3 : place]), tokens[place])
    return following


def script(so_far: tuple[int, ...]) -> ArrayLike:
    """Logits that depend on every token so far, the same ones each time."""
    mood = hash(so_far) % _NUM_MOODS
    if BROKEN in so_far[:8] and mood % 11 == 0:
        return np.full(NUM_TOKENS, np.nan if mood % 2 else -np.inf, dtype=np.float32)
    logits = _moods()[mood].copy()
    wish = _following().get(so_far[-3:])
    if wish is not None and mood % 9:
        logits[wish] += 8.0
    if COPYING in so_far[:8] and mood % 32:
        logits[_copied(so_far)] += 9.0
    return logits


def _copied(so_far: tuple[int, ...]) -> int:
    """What came after the last three tokens, or the last, when they came before; else what the prompt begins with."""
    for num_alike in (3, 1):
        for end in range(len(so_far) - 1, num_alike, -1):
            if so_far[end - num_alike : end] == so_far[-num_alike:]:
                return so_far[end]
    return so_far[(so_far.index(COPYING) + 1) % len(so_far)]


class CountedMatcher:
    """A matcher that counts what it is asked. `plain` is the matcher itself, for whoever must leave no trace."""

    def __init__(self, plain: TokenMatcher) -> None:
        self.plain = plain
        self.num_calls = 0

    @property
    def may_end(self) -> bool:
        return self.plain.may_end

    @property
    def is_terminated(self) -> bool:
        return self.plain.is_terminated

    def fill(self, row: NDArray[np.int32]) -> bool:
        self.num_calls += 1
        return self.plain.fill(row)

    def look_ahead(self, drafts: Sequence[int], rows: NDArray[np.int32]) -> LookAhead:
        self.num_calls += 1
        return self.plain.look_ahead(drafts, rows)

    def accept_bytes(self, data: bytes) -> bool:
        self.num_calls += 1
        return self.plain.accept_bytes(data)

    def preview(self, tokens: Sequence[int]) -> int:
        self.num_calls += 1
        return self.plain.preview(tokens)

    def confirm(self) -> None:
        self.num_calls += 1
        self.plain.confirm()

    def discard(self) -> None:
        self.num_calls += 1
        self.plain.discard()


class _CountedGrammar:
    def __init__(self, grammar: Any) -> None:
        self._grammar = grammar

    def new_matcher(self, companion: Companion | None = None) -> CountedMatcher:
        return CountedMatcher(self._grammar.new_matcher(companion))


class _CountingCompiler:
    def compile(self, constraint: GrammarSource) -> Any:
        compilation = _compiler().compile(constraint)
        return SimpleNamespace(grammar=_CountedGrammar(compilation.grammar), access=compilation.access)


@cache
def _compiler() -> GrammarCompiler:
    return GrammarCompiler(VOCABULARY)


class _Tokenizer(ChatTokenizer):
    def vocabulary(self) -> Vocabulary:
        return VOCABULARY


def loaded_model(framing: Framing, model: Any = None) -> Any:
    """A loaded model, as `infernix.models.open_model` gives one."""
    return SimpleNamespace(
        model=model,
        tokenizer=_Tokenizer(),
        template=ChatTemplate(framing),
        framing=framing,
        sampling_defaults=SamplingParameters(temperature=0.0),
        name="simulated",
    )


def counting_compiler() -> Any:
    """A compiler whose matchers are `CountedMatcher`s; all of them share what is compiled."""
    return _CountingCompiler()


def preparation(framing: Framing, max_context: int) -> Preparation:
    """Prepares requests with counted matchers."""
    loaded = loaded_model(framing)
    forced_end = encode_forced_end(loaded.tokenizer, framing, FORCED_TEXT)
    return Preparation(loaded, ConstraintService(counting_compiler, VOCABULARY), forced_end, max_context)


def matcher_of(session: Any) -> CountedMatcher | None:
    """The matcher of a session; None for a free output."""
    constraint = session._constraint
    if constraint is None:
        return None
    assert isinstance(constraint._matcher, CountedMatcher)
    return constraint._matcher
