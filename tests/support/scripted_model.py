"""A language model whose logits are whatever a test wants, and what else an engine needs around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from infernix.frontend.framing import Framing
from infernix.frontend.template_values import Conversation
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.models.model import ModelRow, SequenceCache
from infernix.options import SamplingParameters

Script = Callable[[tuple[int, ...]], ArrayLike]


@dataclass
class ScriptedSnapshot:
    """The tokens; a byte each."""

    tokens: tuple[int, ...]

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    @property
    def num_bytes(self) -> int:
        return len(self.tokens)


@dataclass
class ScriptedPool:
    """Counts positions one by one; nothing is shared."""

    num_positions: int
    is_recurrent: bool = False
    num_held: int = 0
    caches: list[ScriptedCache] = field(default_factory=list)

    @property
    def num_free_positions(self) -> int:
        return self.num_positions - self.num_held

    def new_cache(self, max_tokens: int) -> ScriptedCache:
        self.caches.append(ScriptedCache(max_tokens, self))
        return self.caches[-1]


@dataclass
class ScriptedCache:
    """Remembers the tokens themselves, so that a wrong commit or truncation changes what the script sees.

    Of a recurrent model it can go back only within the last pass, and be forked only where it ends.
    """

    max_tokens: int
    pool: ScriptedPool
    tokens: list[int] = field(default_factory=list)
    num_reserved: int = 0
    last_begin: int = 0

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    def reserve(self, num_tokens: int) -> bool:
        num_more = max(0, num_tokens - self.num_reserved)
        if num_tokens > self.max_tokens or num_more > self.pool.num_free_positions:
            return False
        self._hold(self.num_reserved + num_more)
        return True

    def truncate(self, num_tokens: int) -> None:
        assert num_tokens <= len(self.tokens), "a cache cannot be truncated to more than it holds"
        assert num_tokens >= self.last_begin or not self.pool.is_recurrent, "there is no state for so few tokens"
        del self.tokens[num_tokens:]

    def num_forkable(self, num_tokens: int) -> int:
        if self.pool.is_recurrent:
            return self.num_tokens if self.num_tokens <= num_tokens else 0
        return min(num_tokens, self.num_tokens)

    def fork(self, num_tokens: int, max_tokens: int) -> ScriptedCache:
        assert self.num_forkable(num_tokens) == num_tokens, "the cache cannot be forked there"
        other = self.pool.new_cache(max_tokens)
        other.tokens = self.tokens[:num_tokens]
        other.last_begin = num_tokens
        other._hold(num_tokens)
        return other

    def snapshot(self) -> ScriptedSnapshot:
        return ScriptedSnapshot(tuple(self.tokens))

    def restore(self, snapshot: ScriptedSnapshot) -> bool:
        assert not self.tokens, "only an empty cache is restored"
        if not self.reserve(snapshot.num_tokens):
            return False
        self.tokens = list(snapshot.tokens)
        self.last_begin = len(self.tokens)
        return True

    def release(self) -> None:
        self.tokens = []
        self.last_begin = 0
        self._hold(0)

    def append(self, token_ids: Sequence[int]) -> None:
        self.last_begin = len(self.tokens)
        self.tokens += token_ids

    def _hold(self, num_tokens: int) -> None:
        self.pool.num_held += num_tokens - self.num_reserved
        self.num_reserved = num_tokens


class ScriptedModel:
    """Calls `script(all tokens so far)` for the logits after each token.

    `units` records the length of each row, `batches` the lengths of the rows of each pass.
    """

    device = torch.device("cpu")

    def __init__(self, script: Script, num_logits: int, max_context: int = 64, *, is_recurrent: bool = False) -> None:
        self.script = script
        self.num_logits = num_logits
        self.max_context = max_context
        self.is_recurrent = is_recurrent
        self.units: list[int] = []
        self.batches: list[list[int]] = []
        self.pools: list[ScriptedPool] = []

    @property
    def caches(self) -> list[ScriptedCache]:
        """Every cache there was, pool by pool."""
        return [cache for pool in self.pools for cache in pool.caches]

    def new_pool(self, num_positions: int, num_sequences: int = 1) -> ScriptedPool:
        self.pools.append(ScriptedPool(num_positions, self.is_recurrent))
        return self.pools[-1]

    def new_cache(self, max_tokens: int) -> ScriptedCache:
        return self.new_pool(max_tokens).new_cache(max_tokens)

    def forward(self, token_ids: Sequence[int], cache: SequenceCache, num_logits_rows: int = 1) -> torch.Tensor:
        return self.forward_rows([ModelRow(token_ids, cache, num_logits_rows)])

    def forward_rows(self, rows: Sequence[ModelRow]) -> torch.Tensor:
        self.batches.append([len(row.token_ids) for row in rows])
        for row in rows:
            if not row.cache.reserve(row.cache.num_tokens + len(row.token_ids)):
                raise ValueError("no room")
        return torch.cat([self._append(row) for row in rows])

    def _append(self, row: ModelRow) -> torch.Tensor:
        cache = row.cache
        assert isinstance(cache, ScriptedCache)
        assert row.token_ids, "a forward pass needs a token"
        self.units.append(len(row.token_ids))
        cache.append(row.token_ids)
        ends = range(cache.num_tokens - row.num_logits_rows + 1, cache.num_tokens + 1)
        if row.num_logits_rows == 0:
            return torch.empty((0, self.num_logits))
        logits = [np.asarray(self.script(tuple(cache.tokens[:end])), dtype=np.float32) for end in ends]
        assert all(given.shape == (self.num_logits,) for given in logits)
        return torch.from_numpy(np.stack(logits))


def preferring(num_logits: int, scores: Mapping[int, float], rest: float = -20.0) -> np.ndarray[Any, Any]:
    """Logits with these scores and `rest` everywhere else."""
    logits = np.full(num_logits, rest, dtype=np.float32)
    for token, score in scores.items():
        logits[token] = score
    return logits


def saying(tokens: Sequence[int], num_prompt_tokens: int, num_logits: int) -> Script:
    """A script that wants exactly these tokens after the prompt, and the last one for ever."""

    def script(so_far: tuple[int, ...]) -> ArrayLike:
        return preferring(num_logits, {tokens[min(len(so_far) - num_prompt_tokens, len(tokens) - 1)]: 10.0})

    return script


class ScriptedTokenizer:
    """Takes the longest token of the allowed classes at each place."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    @property
    def num_tokens(self) -> int:
        return self._vocabulary.num_tokens

    @property
    def eos_ids(self) -> frozenset[int]:
        return self._vocabulary.eos_ids

    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    def encode_prompt(self, text: str) -> list[int]:
        return self.encode(text, allow_special=True)

    def encode(self, text: str, *, allow_special: bool) -> list[int]:
        classes = {TokenClass.TEXT, TokenClass.CONTROL} if allow_special else {TokenClass.TEXT}
        ids = {
            data: token
            for token, data in reversed(list(enumerate(self._vocabulary.token_bytes)))
            if data and self._vocabulary.classes[token] in classes
        }
        # Where two tokens are spelled alike, the control token is meant if it may be.
        ids |= {
            self._vocabulary.token_bytes[token]: token
            for token in np.flatnonzero(self._vocabulary.classes == TokenClass.CONTROL).tolist()
            if allow_special
        }
        data, tokens = text.encode(), []
        while data:
            piece = max((piece for piece in ids if data.startswith(piece)), key=len)
            tokens.append(ids[piece])
            data = data[len(piece) :]
        return tokens


class ScriptedTemplate:
    """Renders the contents one after another."""

    def __init__(self, tokenizer: ScriptedTokenizer) -> None:
        self._tokenizer = tokenizer

    def render(self, conversation: Conversation) -> list[int]:
        return [
            token
            for message in conversation.messages
            for token in self._tokenizer.encode(message.content, allow_special=False)
        ]


def scripted_loaded(
    script: Script,
    vocabulary: Vocabulary,
    *,
    num_logits: int | None = None,
    max_context: int = 64,
    sampling_defaults: SamplingParameters | None = None,
    framing: Framing | None = None,
) -> Any:
    """A loaded model, as `infernix.models.open_model` gives one."""
    tokenizer = ScriptedTokenizer(vocabulary)
    return SimpleNamespace(
        model=ScriptedModel(script, num_logits or vocabulary.num_tokens, max_context),
        tokenizer=tokenizer,
        template=ScriptedTemplate(tokenizer),
        framing=framing or Framing(),
        sampling_defaults=sampling_defaults or SamplingParameters(temperature=0.0),
        name="scripted",
    )
