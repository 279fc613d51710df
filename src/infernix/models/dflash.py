"""DFlash: a drafter that fills a whole block of tokens in one pass, from features of the model that it drafts for.

The residual streams after some layers of the target, side by side, become one context vector a token. The block is the
last accepted token, the anchor, and a mask token for every draft; the output at a mask's position is a guess of the
token at that very position. Embedding and output matrix are the target's.

Layout and names: checkpoints of z-lab's DFlash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from infernix.errors import ModelLoadError
from infernix.models.cache import KVCache, KVPool
from infernix.models.dflash_config import DFlashConfig
from infernix.models.dflash_layers import BlockBatch, DFlashLayer
from infernix.models.features import FeatureModel
from infernix.models.qwen3_5_layers import float32_norm
from infernix.models.rope_cache import RopeCache
from infernix.models.tensor_reader import TensorReader, read_checked
from infernix.models.weights import WeightFiles

_OWN_PARTS = ("d2t", "lm_head", "embed_tokens", "mask_embedding")


@dataclass(frozen=True, slots=True)
class ContextRow:
    """Features [T, taps * hidden] of one sequence at the T positions behind those that the cache holds."""

    features: torch.Tensor
    cache: KVCache


class DFlashDrafter:
    """A drafter over the weights of its directory, for one target model.

    A cache holds the context: exactly the tokens that the target has run over and that were accepted. Every layer keeps
    all of it, also a layer that looks back through a window.
    """

    def __init__(self, config: DFlashConfig, weights: WeightFiles, model: FeatureModel) -> None:
        """Raises ModelLoadError where the drafter is not for `model`, and where tensors are missing, misshapen or not
        expected, naming all of them.
        """
        _check_target(config, model)
        self.config = config
        self._model = model
        read_checked(weights, self._read)
        self._rope = RopeCache(config.rope, config.head_dim, model.max_context, model.dtype, model.device)

    def _read(self, reader: TensorReader) -> None:
        config = self.config
        prefix = "model." if "model.fc.weight" in reader else ""
        hidden = config.hidden_size
        self._fc = reader.linear(f"{prefix}fc.weight", hidden, len(config.taps) * self._model.hidden_size)
        self._context_norm = reader.tensor(f"{prefix}hidden_norm.weight", hidden, dtype=torch.float32)
        self._layers = [
            DFlashLayer(reader, f"{prefix}layers.{index}.", config, index) for index in range(len(config.spans))
        ]
        self._final_norm = reader.tensor(f"{prefix}norm.weight", hidden, dtype=torch.float32)
        reader.refuse_from(f"{prefix}layers.{len(config.spans)}.", f"is beyond the {len(config.spans)} layers")
        for name in _OWN_PARTS:
            reader.refuse_from(f"{prefix}{name}", "is a part of the drafter's own where the target's is used")
        self._read_more(reader, prefix)

    @property
    def max_drafts(self) -> int:
        """Drafts of one block of the size that it was trained on."""
        return self.config.block_size - 1

    def new_pool(self, num_positions: int) -> KVPool:
        """Memory for the contexts of `num_positions` tokens of all sequences together."""
        config = self.config
        return KVPool(
            len(config.spans),
            config.num_kv_heads,
            num_positions,
            config.head_dim,
            dtype=self._model.dtype,
            device=self._model.device,
        )

    @torch.inference_mode()
    def append_context(self, rows: Sequence[ContextRow]) -> None:
        """Adds the features of accepted tokens to the contexts.

        Raises ValueError, with every cache's tokens unchanged, where a row is empty or has no room, or a cache is there
        twice.
        """
        if not rows or len({id(row.cache) for row in rows}) < len(rows):
            raise ValueError("a batch has at least one row, and each row a cache of its own")
        for row in rows:
            num_new, cache = len(row.features), row.cache
            if not num_new or not cache.reserve(cache.num_tokens + num_new):
                raise ValueError(f"no room for {num_new} tokens after {cache.num_tokens} of {cache.max_tokens}")
        cosines, sines = self._tables([(row.cache.num_tokens, len(row.features)) for row in rows])
        context = self._fc(torch.cat([row.features for row in rows]))
        context = float32_norm(context, self._context_norm, self.config.rms_norm_eps)
        sizes = [len(row.features) for row in rows]
        places = [row.cache.positions(row.cache.num_tokens, row.cache.num_tokens + len(row.features)) for row in rows]
        for index, layer in enumerate(self._layers):
            keys, values = layer.keys_and_values(context, cosines, sines)
            for row, place, k, v in zip(
                rows, places, torch.split(keys, sizes), torch.split(values, sizes), strict=True
            ):
                all_keys, all_values = row.cache.pool.layers[index]
                all_keys[:, place] = k.transpose(0, 1)
                all_values[:, place] = v.transpose(0, 1)
        for row in rows:
            row.cache.advance(len(row.features))

    @torch.inference_mode()
    def forward_block(self, anchors: Sequence[int], caches: Sequence[KVCache], num_drafts: int) -> torch.Tensor:
        """Hidden states [R, num_drafts, hidden] at the drafts' positions; `FeatureModel.head` makes logits of them.

        The anchor of a row is the token behind its context. The caches stay as they are. What a block gives at a
        position may depend on `num_drafts`: the positions look at each other. Raises ValueError for fewer than one
        draft or more than the trained block has.
        """
        if not anchors or len(anchors) != len(caches):
            raise ValueError(f"{len(anchors)} anchors for {len(caches)} contexts")
        if not 1 <= num_drafts <= self.max_drafts:
            raise ValueError(f"num_drafts is outside 1..{self.max_drafts}: {num_drafts}")
        width, masks = 1 + num_drafts, [self.config.mask_token_id] * num_drafts
        token_ids = torch.tensor([[anchor, *masks] for anchor in anchors], device=self._model.device)
        cosines, sines = self._tables([(cache.num_tokens, width) for cache in caches])
        batch = BlockBatch(caches, width, cosines, sines)
        x = self._model.embed(token_ids.flatten())
        for layer in self._layers:
            x = layer(x, batch)
        x = float32_norm(x, self._final_norm, self.config.rms_norm_eps)
        return x.view(len(caches), width, -1)[:, 1:]

    @torch.inference_mode()
    def draft(
        self, anchors: Sequence[int], caches: Sequence[KVCache], num_drafts: int, num_tokens: int
    ) -> torch.Tensor:
        """The likeliest token at every position, int64 [R, num_drafts], of the first `num_tokens` ids; ties to the
        lowest id. Arguments and errors are those of `forward_block`.
        """
        hidden = self.forward_block(anchors, caches, num_drafts)
        return self._model.head(hidden.flatten(0, 1))[:, :num_tokens].argmax(dim=-1).view(len(caches), num_drafts)

    def _read_more(self, reader: TensorReader, prefix: str) -> None:
        """Reads what a further kind of drafter has; here there must be no such thing."""
        reader.refuse_from(
            f"{prefix}candidate_selector.", "belongs to a DFlash2 drafter, which the config does not describe"
        )

    def _tables(self, spans: Sequence[tuple[int, int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines for every row's positions, given as first position and number."""
        positions = [place for begin, count in spans for place in range(begin, begin + count)]
        return self._rope.rows(torch.tensor(positions, device=self._model.device), max(positions) + 1)


def _check_target(config: DFlashConfig, model: FeatureModel) -> None:
    for name, ours, theirs in (
        ("hidden_size", config.hidden_size, model.hidden_size),
        ("num_target_layers", config.num_target_layers, model.num_layers),
    ):
        if ours != theirs:
            raise ModelLoadError(f"the drafter is for another model: {name} is {ours}, the model's is {theirs}")
    if config.mask_token_id >= model.num_logits:
        raise ModelLoadError(
            f"mask_token_id {config.mask_token_id} has no row in the model's {model.num_logits} tokens"
        )
