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
from infernix.models.model import SequenceCache
from infernix.options import SamplingParameters

Script = Callable[[tuple[int, ...]], ArrayLike]


@dataclass
class ScriptedCache:
    """Remembers the tokens themselves, so that a wrong commit or truncation changes what the script sees."""

    max_tokens: int
    tokens: list[int] = field(default_factory=list)

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    def truncate(self, num_tokens: int) -> None:
        assert num_tokens <= len(self.tokens), "a cache cannot be truncated to more than it holds"
        del self.tokens[num_tokens:]


class ScriptedModel:
    """Calls `script(all tokens so far)` for the logits after each token; `units` records the length of each forward."""

    def __init__(self, script: Script, num_logits: int, max_context: int = 64) -> None:
        self.script = script
        self.num_logits = num_logits
        self.max_context = max_context
        self.units: list[int] = []
        self.caches: list[ScriptedCache] = []

    def new_cache(self, max_tokens: int) -> ScriptedCache:
        self.caches.append(ScriptedCache(max_tokens))
        return self.caches[-1]

    def forward(self, token_ids: Sequence[int], cache: SequenceCache, num_logits_rows: int = 1) -> torch.Tensor:
        assert isinstance(cache, ScriptedCache)
        assert token_ids, "a forward pass needs a token"
        self.units.append(len(token_ids))
        cache.tokens += token_ids
        assert cache.num_tokens <= cache.max_tokens, "the cache was made too small"
        ends = range(cache.num_tokens - num_logits_rows + 1, cache.num_tokens + 1)
        if num_logits_rows == 0:
            return torch.empty((0, self.num_logits))
        rows = [np.asarray(self.script(tuple(cache.tokens[:end])), dtype=np.float32) for end in ends]
        assert all(row.shape == (self.num_logits,) for row in rows)
        return torch.from_numpy(np.stack(rows))


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
