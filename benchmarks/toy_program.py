"""Toy models behind the Program, so that outputs are drawn as the engine draws them: passes, masks, rounds, commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.toy_rounds import EOS, NUM_PADDING, Tokens, ToyModel
from infernix.matching.matcher import LookAhead
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.models.model import ModelRow
from infernix.program.program import Program

_MAX_TOKENS = 32


@dataclass(eq=False)
class ToyCache:
    """The tokens themselves."""

    tokens: list[int] = field(default_factory=list)

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    def reserve(self, num_tokens: int) -> bool:
        return num_tokens <= _MAX_TOKENS

    def truncate(self, num_tokens: int) -> None:
        del self.tokens[num_tokens:]

    def release(self) -> None:
        self.tokens.clear()


class ToyPool:
    """Caches without a bound on their number."""

    def new_cache(self, max_tokens: int) -> ToyCache:
        return ToyCache()


class ToyLanguageModel:
    """Several models as one: a sequence's first token, its whole prompt, is the number of the model that it asks.

    What a model says after a text that cannot come about (one with an illegal token, or past its end) is NaN.
    """

    device = torch.device("cpu")
    max_context = _MAX_TOKENS

    def __init__(self, models: Sequence[ToyModel]) -> None:
        [self.num_tokens] = {model.num_tokens for model in models}
        self.num_logits = self.num_tokens + NUM_PADDING
        self._models = models
        self._known: dict[Tokens, NDArray[np.float32]] = {}

    def new_pool(self, num_positions: int, num_sequences: int) -> ToyPool:
        return ToyPool()

    def forward_rows(self, rows: Sequence[ModelRow]) -> torch.Tensor:
        found = []
        for row in rows:
            tokens: list[int] = row.cache.tokens  # type: ignore[attr-defined]
            tokens += row.token_ids
            for end in range(len(tokens) - row.num_logits_rows + 1, len(tokens) + 1):
                found.append(self._after(tuple(tokens[:end])))
        return torch.from_numpy(np.stack(found))

    def _after(self, tokens: Tokens) -> NDArray[np.float32]:
        if tokens not in self._known:
            model, text = self._models[tokens[0]], tokens[1:]
            logits = np.full(self.num_logits, np.nan, dtype=np.float32)
            if _can_come_about(model, text):
                logits[:] = model.at(text)[0]
            self._known[tokens] = logits
        return self._known[tokens]


def _can_come_about(model: ToyModel, text: Tokens) -> bool:
    return EOS not in text and all(
        token < model.num_tokens and model.at(text[:place])[1][token] for place, token in enumerate(text)
    )


class ToyMasks:
    """The legal sets of a batch's rows, by their models and texts. Places that are not asked about allow everything."""

    def __init__(self, rows: Sequence[tuple[ToyModel, Tokens]]) -> None:
        self._rows = rows

    def constrained(self, row: int) -> bool:
        return self._rows[row][0].is_constrained

    def fill(self, row: int, drafts: Sequence[int], words: NDArray[np.int32]) -> LookAhead:
        model, text = self._rows[row]
        masks = model.row(text, tuple(drafts)).masks
        assert masks is not None, "only constrained rows are asked for masks"
        words[:] = -1
        words[: masks.num_ready] = masks.words[: masks.num_ready]
        return LookAhead(masks.num_ready, masks.dead_positions)

    def uploaded(self, row: int, num_bytes: int) -> None:
        raise AssertionError("the masks of a CPU are sent nowhere")


def toy_program(models: Sequence[ToyModel], max_rows: int, num_drafts: int) -> Program:
    """A Program for sequences of all these models, which have one vocabulary."""
    language_model = ToyLanguageModel(models)
    classes = [TokenClass.TEXT] * language_model.num_tokens
    classes[EOS], classes[-1] = TokenClass.EOS, TokenClass.NEVER
    return Program(
        language_model,
        Vocabulary([bytes([token]) for token in range(len(classes))], classes),
        max_rows=max_rows,
        num_cache_positions=_MAX_TOKENS * max_rows,
        num_draft_tokens=num_drafts,
    )
