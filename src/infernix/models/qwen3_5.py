"""Qwen3.5 text models: three recurrent layers (gated DeltaNet) to each layer of gated attention, dense or with experts.

Tensor names and layouts are those of Hugging Face checkpoints, the multimodal releases among them, whose vision tower
is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from infernix.models.attention import AttentionRow, BatchAttention
from infernix.models.batch_delta import BatchDelta, DeltaRow
from infernix.models.cache import KVPool
from infernix.models.features import ForwardOutput
from infernix.models.model import ModelRow, SequenceCache
from infernix.models.qwen3_5_config import Qwen35Config
from infernix.models.qwen3_5_layers import Batch, float32_norm, read_layers
from infernix.models.recurrent_state import RecurrentCache, RecurrentPool
from infernix.models.rope_cache import RopeCache
from infernix.models.tensor_reader import TensorReader, read_checked
from infernix.models.weights import WeightFiles

_PREFIXES = ("model.language_model.", "model.")


class Qwen35Model:
    """A LanguageModel and FeatureModel over the weights of a Hugging Face directory."""

    def __init__(self, config: Qwen35Config, weights: WeightFiles) -> None:
        """Raises ModelLoadError that names every tensor which is missing or has another shape than `config` says."""
        self.config = config
        read_checked(weights, self._read)
        self._rope = RopeCache(config.rope, config.rotary_dim, config.max_positions, self.dtype, self.device)

    def _read(self, reader: TensorReader) -> None:
        config = self.config
        prefix = next((name for name in _PREFIXES if f"{name}embed_tokens.weight" in reader), _PREFIXES[-1])
        shape = config.vocab_size, config.hidden_size
        self._embedding = reader.tensor(f"{prefix}embed_tokens.weight", *shape)
        self._layers = read_layers(reader, f"{prefix}layers.", config)
        reader.refuse_from(
            f"{prefix}layers.{config.num_layers}.", f"is beyond the {config.num_layers} layers of config.json"
        )
        self._final_norm = reader.offset_norm(f"{prefix}norm.weight", config.hidden_size)
        head = self._embedding if config.tie_word_embeddings else reader.tensor("lm_head.weight", *shape)
        self._head = reader.matrix(head, is_delicate=True)

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
        """Width of the residual stream."""
        return self.config.hidden_size

    @property
    def num_layers(self) -> int:
        """Layers that may be tapped, counted from 0."""
        return self.config.num_layers

    @property
    def device(self) -> torch.device:
        """Where logits are."""
        return self._embedding.device

    @property
    def dtype(self) -> torch.dtype:
        """Number format of hidden states."""
        return self._embedding.dtype

    def new_pool(self, num_positions: int, num_sequences: int) -> RecurrentPool:
        """Memory for `num_positions` tokens of all sequences together, and for the state of `num_sequences` of them."""
        config = self.config
        num_recurrent = sum(config.is_recurrent)
        kv = KVPool(
            config.num_layers - num_recurrent,
            config.num_kv_heads,
            num_positions,
            config.head_dim,
            dtype=self.dtype,
            device=self.device,
        )
        return RecurrentPool(kv, num_recurrent, num_sequences, config.delta)

    def new_cache(self, max_tokens: int) -> RecurrentCache:
        """An empty cache with a pool of its own for `max_tokens` tokens; ValueError outside 1..max_context."""
        if not 1 <= max_tokens <= self.max_context:
            raise ValueError(f"max_tokens is outside 1..{self.max_context}: {max_tokens}")
        return self.new_pool(max_tokens, 1).new_cache(max_tokens)

    def forward(self, token_ids: Sequence[int], cache: SequenceCache, num_logits_rows: int = 1) -> torch.Tensor:
        """Append `token_ids` to the sequence of `cache`; float32 [num_logits_rows, vocab_size] after the last of them.

        Raises ValueError where there is nothing to append or no room for it; the cache's tokens are then unchanged.
        """
        return self.forward_rows([ModelRow(token_ids, cache, num_logits_rows)])

    @torch.inference_mode()
    def forward_rows(self, rows: Sequence[ModelRow]) -> torch.Tensor:
        """`forward` of several sequences at once; float32 [sum of num_logits_rows, vocab_size], row after row.

        Raises ValueError, with every cache's tokens unchanged, as `forward` does, and where a cache is there twice.
        """
        laid_out = _laid_out(rows)
        x, _ = self._run(rows, laid_out, ())
        wanted = _wanted(rows, laid_out)
        if len(wanted) < len(x):
            x = x[torch.tensor(wanted, dtype=torch.int64, device=self.device)]
        return self.head(float32_norm(x, self._final_norm, self.config.rms_norm_eps))

    @torch.inference_mode()
    def forward_features(self, rows: Sequence[ModelRow], taps: Sequence[int] = ()) -> ForwardOutput:
        """`forward_rows` that also gives hidden states, and the residual stream after the layers `taps`."""
        laid_out = _laid_out(rows)
        x, tapped = self._run(rows, laid_out, taps)
        hidden = float32_norm(x, self._final_norm, self.config.rms_norm_eps)
        wanted = torch.tensor(_wanted(rows, laid_out), dtype=torch.int64, device=self.device)
        return ForwardOutput(self.head(hidden[wanted]), hidden, torch.cat(tapped, dim=-1) if tapped else None)

    def embed(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Rows of the embedding, [*, hidden], for int64 [*]."""
        return F.embedding(token_ids, self._embedding)

    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits float32 [N, vocab_size] of hidden states [N, hidden] after the final norm."""
        return self._head(hidden).float()

    def _run(
        self, rows: Sequence[ModelRow], laid_out: Sequence[DeltaRow], taps: Sequence[int]
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """The residual stream [N, hidden] after the last layer and after each of `taps`; the caches have the tokens."""
        attention_rows = [AttentionRow(row.cache.kv, row.begin, row.num_new) for row in laid_out]
        positions = [place for row in attention_rows for place in range(row.cache.num_tokens, row.num_keys)]
        cosines, sines = self._rope.rows(torch.tensor(positions, device=self.device), max(positions) + 1)
        token_ids = torch.tensor([token for row in rows for token in row.token_ids], device=self.device)
        attention = BatchAttention(attention_rows)
        delta = BatchDelta(laid_out, self.config.delta)
        try:
            batch = Batch(attention, delta, cosines, sines)
            x = self.embed(token_ids)
            after: dict[int, torch.Tensor] = {}
            for index, layer in enumerate(self._layers):
                x = layer(x, batch)
                if index in taps:
                    after[index] = x
        except BaseException:
            delta.abandon()
            raise
        delta.finish()
        return x, [after[index] for index in taps]


def _laid_out(rows: Sequence[ModelRow]) -> list[DeltaRow]:
    """The rows, with room for their new tokens, one behind another."""
    if not rows or len({id(row.cache) for row in rows}) < len(rows):
        raise ValueError("a batch has at least one row, and each row a cache of its own")
    laid_out, begin = [], 0
    for row in rows:
        cache, num_new = row.cache, len(row.token_ids)
        if not isinstance(cache, RecurrentCache):
            raise TypeError(f"expected a RecurrentCache, got {type(cache).__name__}")
        if num_new == 0 or not 0 <= row.num_logits_rows <= num_new:
            raise ValueError(f"cannot give {row.num_logits_rows} rows of logits for {num_new} tokens")
        if not cache.reserve(cache.num_tokens + num_new):
            raise ValueError(f"no room for {num_new} tokens after {cache.num_tokens} of {cache.max_tokens}")
        laid_out.append(DeltaRow(cache, begin, num_new, row.num_logits_rows))
        begin += num_new
    return laid_out


def _wanted(rows: Sequence[ModelRow], laid_out: Sequence[DeltaRow]) -> list[int]:
    """Columns whose logits are wanted."""
    return [
        column
        for row, placed in zip(rows, laid_out, strict=True)
        for column in range(placed.begin + placed.num_new - row.num_logits_rows, placed.begin + placed.num_new)
    ]
