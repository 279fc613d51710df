"""The multi-token predictor of Qwen3.5: one more layer that guesses the token after next.

At position t it reads the token x(t + 1) and the model's hidden state h(t), which stands behind the final norm:

    u = fc [norm(embedding of x(t + 1)) | norm(h(t))];   h' = norm(layer(u));   logits of x(t + 2) = head(h')

Embedding and head are the model's own. For more tokens h' takes the place of h at the next position. The layer attends
to what it has read at earlier positions, in keys and values of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from infernix.errors import ModelLoadError
from infernix.models.attention import AttentionRow, BatchAttention
from infernix.models.cache import KVCache, KVPool
from infernix.models.features import FeatureModel
from infernix.models.qwen3_5_config import Qwen35Config
from infernix.models.qwen3_5_layers import Batch, DecoderLayer, GatedAttention, float32_norm
from infernix.models.rope_cache import RopeCache
from infernix.models.tensor_reader import TensorReader, read_checked
from infernix.models.weights import WeightFiles


@dataclass(frozen=True, slots=True)
class MtpRow:
    """One sequence of a batch: for each of T positions behind those of the cache, the token that follows it and the
    hidden state [T, hidden] at it.
    """

    token_ids: Sequence[int]
    hidden: torch.Tensor
    cache: KVCache


class TokenPredictor(Protocol):
    """One more layer behind a model, which reads the next tokens and what the model said before them."""

    def new_pool(self, num_positions: int) -> KVPool:
        """Memory for what it keeps of `num_positions` tokens of all sequences together."""
        ...

    def forward_rows(self, rows: Sequence[MtpRow]) -> torch.Tensor:
        """Reads the rows' positions, behind those that their caches hold; its output [N, width] at them, row after row,
        of the width of the model's hidden states, whose place it takes for the positions after.

        Raises ValueError, with every cache's tokens unchanged, where a row is empty or of another length than its
        hidden states, or has no room, or a cache is there twice.
        """
        ...

    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits float32 [N, num_logits] of its output [N, width]."""
        ...


class MtpPredictor:
    """The predictor that a Qwen3.5 checkpoint brings along in tensors named `mtp.*`."""

    def __init__(self, config: Qwen35Config, weights: WeightFiles, model: FeatureModel) -> None:
        """`model` is the checkpoint's own.

        Raises ModelLoadError where the checkpoint has no predictor or one of another kind, naming every tensor that is
        missing, misshapen or not expected.
        """
        if not weights.names_from("mtp."):
            raise ModelLoadError("the checkpoint has no multi-token predictor: no tensor's name begins with 'mtp.'")
        self._config = config
        self._model = model
        read_checked(weights, self._read)
        self._rope = RopeCache(config.rope, config.rotary_dim, config.max_positions, model.dtype, model.device)

    def _read(self, reader: TensorReader) -> None:
        config, hidden = self._config, self._config.hidden_size
        self._embedding_norm = reader.offset_norm("mtp.pre_fc_norm_embedding.weight", hidden)
        self._hidden_norm = reader.offset_norm("mtp.pre_fc_norm_hidden.weight", hidden)
        self._fc = reader.linear("mtp.fc.weight", hidden, 2 * hidden)
        attention = GatedAttention(reader, "mtp.layers.0.self_attn.", config, 0)
        self._layer = DecoderLayer(attention, reader, "mtp.layers.0.", config)
        self._final_norm = reader.offset_norm("mtp.norm.weight", hidden)
        reader.refuse_from("mtp.layers.1.", "is beyond the one layer that is supported")
        reader.refuse_from("mtp.embed_tokens.", "is an embedding of the predictor's own, which is not supported")

    def new_pool(self, num_positions: int) -> KVPool:
        """Memory for the predictor's keys and values of `num_positions` tokens of all sequences together."""
        config = self._config
        return KVPool(
            1, config.num_kv_heads, num_positions, config.head_dim, dtype=self._model.dtype, device=self._model.device
        )

    @torch.inference_mode()
    def forward_rows(self, rows: Sequence[MtpRow]) -> torch.Tensor:
        """Reads the rows' positions, behind those that their caches hold; h' [N, hidden] at them, row after row.

        Raises ValueError, with every cache's tokens unchanged, where a row is empty or of another length than its
        hidden states, or has no room, or a cache is there twice.
        """
        config = self._config
        laid_out = _laid_out(rows)
        positions = [place for row in laid_out for place in range(row.cache.num_tokens, row.num_keys)]
        cosines, sines = self._rope.rows(torch.tensor(positions, device=self._model.device), max(positions) + 1)
        token_ids = [token for row in rows for token in row.token_ids]
        embedded = self._model.embed(torch.tensor(token_ids, device=self._model.device))
        hidden = torch.cat([row.hidden for row in rows])
        stem = torch.cat(
            (
                float32_norm(embedded, self._embedding_norm, config.rms_norm_eps),
                float32_norm(hidden, self._hidden_norm, config.rms_norm_eps),
            ),
            dim=-1,
        )
        x = self._layer(self._fc(stem), Batch(BatchAttention(laid_out), None, cosines, sines))
        for row in laid_out:
            row.cache.advance(row.num_new)
        return float32_norm(x, self._final_norm, config.rms_norm_eps)

    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits float32 [N, num_logits] of h' [N, hidden]."""
        return self._model.head(hidden)


def _laid_out(rows: Sequence[MtpRow]) -> list[AttentionRow]:
    """The rows, with room for their new positions, one behind another."""
    if not rows or len({id(row.cache) for row in rows}) < len(rows):
        raise ValueError("a batch has at least one row, and each row a cache of its own")
    laid_out, begin = [], 0
    for row in rows:
        num_new = len(row.token_ids)
        if num_new == 0 or len(row.hidden) != num_new:
            raise ValueError(f"{num_new} tokens cannot be read with {len(row.hidden)} hidden states")
        if not row.cache.reserve(row.cache.num_tokens + num_new):
            raise ValueError(f"no room for {num_new} tokens after {row.cache.num_tokens} of {row.cache.max_tokens}")
        laid_out.append(AttentionRow(row.cache, begin, num_new))
        begin += num_new
    return laid_out
