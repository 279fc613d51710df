"""Qwen3.8-Flash-Next text models (`qwen4_exp`): transformers' modules, our state.

Layers are recurrent (gated DeltaNet) or attend to keys that an index chooses; they read and write several residual
streams, and the first ones add embeddings of n-grams. Rows of a batch run one after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from infernix.models.features import ForwardOutput
from infernix.models.indexed_cache import IndexedKVPool
from infernix.models.model import ModelRow, SequenceCache
from infernix.models.qwen4_exp_config import Qwen4ExpConfig
from infernix.models.qwen4_exp_network import build_network
from infernix.models.qwen4_exp_pass import PassRecord, PassState, causal_mask, pieces
from infernix.models.qwen4_exp_state import Qwen4ExpCache, Qwen4ExpPool
from infernix.models.recurrent_state import MAX_STEP_TOKENS
from infernix.models.weights import WeightFiles


class Qwen4ExpModel:
    """A LanguageModel and FeatureModel over the weights of a Hugging Face directory."""

    def __init__(self, config: Qwen4ExpConfig, weights: WeightFiles) -> None:
        """Raises ModelLoadError that names every tensor which is missing or has another shape than `config` says, and
        where transformers is not installed or refuses the config.
        """
        self.config = config
        self._network: Any = build_network(config, weights)
        for layer, recurrent in enumerate(config.is_recurrent):
            if recurrent:
                module = self._network.model.layers[layer].linear_attn
                module.register_forward_pre_hook(_record_input, with_kwargs=True)

    @property
    def num_logits(self) -> int:
        """Width of a row of logits: the rows of the output matrix."""
        return self.config.vocab_size

    @property
    def max_context(self) -> int:
        """Most tokens that one sequence may hold."""
        return self.config.max_positions

    @property
    def hidden_size(self) -> int:
        """Width of what `head` reads: the residual streams side by side."""
        return self.config.width

    @property
    def num_layers(self) -> int:
        """Layers of both kinds."""
        return self.config.num_layers

    @property
    def device(self) -> torch.device:
        """Where logits are."""
        device: torch.device = self._network.model.embed_tokens.weight.device
        return device

    @property
    def dtype(self) -> torch.dtype:
        """Number format of the residual streams."""
        dtype: torch.dtype = self._network.model.embed_tokens.weight.dtype
        return dtype

    def new_pool(self, num_positions: int, num_sequences: int) -> Qwen4ExpPool:
        """Memory for `num_positions` tokens of all sequences together, and for the state of `num_sequences` of them."""
        config = self.config
        kv = self.new_indexed_pool(config.num_layers - sum(config.is_recurrent), num_positions)
        return Qwen4ExpPool(kv, num_sequences, config, self._network.model.layers)

    def new_indexed_pool(self, num_layers: int, num_positions: int) -> IndexedKVPool:
        """Memory for the keys and values of so many layers like the model's own."""
        config = self.config
        return IndexedKVPool(
            num_layers,
            config.num_kv_heads,
            num_positions,
            config.head_dim,
            config.index_dim,
            dtype=self.dtype,
            device=self.device,
        )

    def new_cache(self, max_tokens: int) -> Qwen4ExpCache:
        """An empty cache with a pool of its own for `max_tokens` tokens; ValueError outside 1..max_context."""
        if not 1 <= max_tokens <= self.max_context:
            raise ValueError(f"max_tokens is outside 1..{self.max_context}: {max_tokens}")
        return self.new_pool(max_tokens, 1).new_cache(max_tokens)

    def forward(self, token_ids: Sequence[int], cache: SequenceCache, num_logits_rows: int = 1) -> torch.Tensor:
        """Append `token_ids` to the sequence of `cache`; float32 [num_logits_rows, vocab_size] after the last of them.

        Raises ValueError where there is nothing to append or no room for it; the cache's tokens are then unchanged.
        """
        return self.forward_rows([ModelRow(token_ids, cache, num_logits_rows)])

    def forward_rows(self, rows: Sequence[ModelRow]) -> torch.Tensor:
        """`forward` of several sequences, one after another; float32 [sum of num_logits_rows, vocab_size].

        Raises ValueError, with every cache's tokens unchanged, as `forward` does, and where a cache is there twice.
        """
        return self._forward(rows, keep_streams=False)[0]

    def forward_features(self, rows: Sequence[ModelRow], taps: Sequence[int] = ()) -> ForwardOutput:
        """`forward_rows` that also gives, as hidden states, the residual streams behind the last layer.

        ValueError for taps: no drafter says how it reads several streams.
        """
        if taps:
            raise ValueError("layers of several residual streams cannot be tapped")
        return ForwardOutput(*self._forward(rows, keep_streams=True), None)

    @torch.inference_mode()
    def embed(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Rows of the embedding, [*, hidden], for int64 [*]."""
        embedded: torch.Tensor = self._network.model.embed_tokens(token_ids)
        return embedded

    @torch.inference_mode()
    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits float32 [N, vocab_size] of streams [N, hidden_size], which are mixed to one."""
        return self.project(self._network.model.hyper_connection_mixer(hidden))

    def project(self, mixed: torch.Tensor) -> torch.Tensor:
        """Logits float32 [N, vocab_size] of streams that have been mixed to one."""
        logits: torch.Tensor = self._network.lm_head(mixed).float()
        return logits

    def rotations(self, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines [1, end, rotated dimensions] of the positions 0..end - 1."""
        places = torch.arange(end, device=self.device).expand(3, 1, -1)
        cosines, sines = self._network.model.rotary_emb(self._network.lm_head.weight, places)
        return cosines, sines

    @torch.inference_mode()
    def _forward(self, rows: Sequence[ModelRow], *, keep_streams: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [sum of num_logits_rows, vocab_size], and streams [N, hidden_size], which are none if not kept."""
        passes: list[_Pass] = []
        logits = [torch.empty(0, self.num_logits, device=self.device)]
        streams = [torch.empty(0, self.hidden_size, device=self.device, dtype=self.dtype)]
        caches = _with_room(rows)
        try:
            for row, cache in zip(rows, caches, strict=True):
                is_recorded = len(row.token_ids) <= MAX_STEP_TOKENS or row.num_logits_rows > 1
                passes.append(
                    _Pass(cache, cache.begin_pass(), len(row.token_ids), PassRecord() if is_recorded else None)
                )
                num_unscored = len(row.token_ids) - row.num_logits_rows
                for piece in self._pieces(row.token_ids, passes[-1]):
                    if num_unscored < len(piece):
                        logits.append(self.head(piece[max(0, num_unscored) :]))
                    num_unscored -= len(piece)
                    if keep_streams:
                        streams.append(piece)
        except BaseException:
            for begun in passes:
                begun.cache.abandon_pass(begun.slot)
            raise
        for begun in passes:
            begun.cache.take_over(begun.slot, begun.num_new, begun.record)
        return torch.cat(logits), torch.cat(streams)

    def _pieces(self, token_ids: Sequence[int], begun: _Pass) -> Iterator[torch.Tensor]:
        """Runs the tokens of a pass; the streams [T, hidden_size] behind the last layer, piece after piece."""
        cache, record, source = begun.cache, begun.record, begun.cache.slot
        before = cache.num_tokens
        every = torch.tensor(token_ids, device=self.device)
        for begin, end in pieces(before, before + begun.num_new, self.config.index_budget):
            ids = every[begin - before : end - before].unsqueeze(0)
            if record is not None:
                record.token_ids.append(ids[0])
            x = self.embed(ids).repeat(1, 1, self.config.num_streams)
            inputs = {
                "position_embeddings": self.rotations(end),
                "attention_mask": causal_mask(begin, end, self.device),
                "cache": PassState(cache.pool, cache.kv, (begin, end), (source, begun.slot), record),
                "ple_input_ids": ids,
            }
            for layer in self._network.model.layers:
                x = layer(x, **inputs)
            yield x[0]
            source = begun.slot


@dataclass(frozen=True, slots=True)
class _Pass:
    """A pass of `num_new` tokens that leaves its state in `slot`."""

    cache: Qwen4ExpCache
    slot: int
    num_new: int
    record: PassRecord | None


def _record_input(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What runs in front of a recurrent module."""
    kwargs["cache"].record_input(module.layer_idx, args[0])


def _with_room(rows: Sequence[ModelRow]) -> list[Qwen4ExpCache]:
    """The rows' caches, with room for their new tokens."""
    if not rows or len({id(row.cache) for row in rows}) < len(rows):
        raise ValueError("a batch has at least one row, and each row a cache of its own")
    caches = []
    for row in rows:
        cache, num_new = row.cache, len(row.token_ids)
        if not isinstance(cache, Qwen4ExpCache):
            raise TypeError(f"expected a Qwen4ExpCache, got {type(cache).__name__}")
        if num_new == 0 or not 0 <= row.num_logits_rows <= num_new:
            raise ValueError(f"cannot give {row.num_logits_rows} rows of logits for {num_new} tokens")
        if not cache.reserve(cache.num_tokens + num_new):
            raise ValueError(f"no room for {num_new} tokens after {cache.num_tokens} of {cache.max_tokens}")
        caches.append(cache)
    return caches
