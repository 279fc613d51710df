"""The multi-token predictor of Qwen3.8-Flash-Next: one more layer that guesses the token after next.

At position t it reads the token x(t + 1) and the model's residual streams X(t) behind the last layer, all S of them:

    U_s = fc_hidden(norm(X(t))_s) + fc_embedding(norm(embedding of x(t + 1)));   X' = layer(U)
    logits of x(t + 2) = head(mixer(X'))

The norm of the streams is one over all of them. Embedding and output matrix are the model's own, the mixer is the
predictor's. For more tokens X' takes the place of X at the next position. The layer attends to what it has read at
earlier positions, in keys, values and index keys of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from infernix.errors import ModelLoadError
from infernix.models.indexed_cache import IndexedKVCache, IndexedKVPool
from infernix.models.mtp import MtpRow
from infernix.models.qwen4_exp import Qwen4ExpModel
from infernix.models.qwen4_exp_network import library_config, load_library, read_module
from infernix.models.qwen4_exp_pass import AttentionState, causal_mask, pieces
from infernix.models.tensor_reader import TensorReader, read_checked
from infernix.models.weights import WeightFiles


class Qwen4ExpMtpPredictor:
    """The predictor that a checkpoint brings along in tensors named `mtp.*`."""

    def __init__(self, weights: WeightFiles, model: Qwen4ExpModel) -> None:
        """`model` is the checkpoint's own.

        Raises ModelLoadError where the checkpoint has no predictor or one of another kind, naming every tensor that is
        missing, misshapen or not expected.
        """
        if not weights.names_from("mtp."):
            raise ModelLoadError("the checkpoint has no multi-token predictor: no tensor's name begins with 'mtp.'")
        self._model = model
        self._network: Any = _lay_out(model)
        read_checked(weights, self._read)
        self._network.eval().requires_grad_(False)

    def _read(self, reader: TensorReader) -> None:
        read_module(reader, self._network, "mtp.", self._model.config)
        reader.refuse_from("mtp.layers.1.", "is beyond the one layer that is supported")
        reader.refuse_from("mtp.embed_tokens.", "is an embedding of the predictor's own, which is not supported")

    def new_pool(self, num_positions: int) -> IndexedKVPool:
        """Memory for the predictor's keys and values of `num_positions` tokens of all sequences together."""
        return self._model.new_indexed_pool(1, num_positions)

    @torch.inference_mode()
    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits float32 [N, vocab_size] of the predictor's streams [N, S * hidden]."""
        return self._model.project(self._network.hyper_connection_mixer(hidden))

    @torch.inference_mode()
    def forward_rows(self, rows: Sequence[MtpRow]) -> torch.Tensor:
        """Reads the rows' positions, behind those that their caches hold; X' [N, S * hidden] at them, row after row.

        Raises ValueError, with every cache's tokens unchanged, where a row is empty or of another length than its
        streams, or has no room, or a cache is there twice.
        """
        caches = _with_room(rows)
        streams = [piece for row, cache in zip(rows, caches, strict=True) for piece in self._run(row, cache)]
        for row, cache in zip(rows, caches, strict=True):
            cache.advance(len(row.token_ids))
        return torch.cat(streams)

    def _run(self, row: MtpRow, cache: IndexedKVCache) -> list[torch.Tensor]:
        config, network, model = self._model.config, self._network, self._model
        embedded = model.embed(torch.tensor(row.token_ids, device=model.device))
        stems = network.fc_hidden(network.pre_fc_norm_hidden(row.hidden).unflatten(-1, (config.num_streams, -1)))
        stems = stems + network.fc_embedding(network.pre_fc_norm_embedding(embedded)).unsqueeze(-2)
        x, before, streams = stems.flatten(-2), cache.num_tokens, []
        for begin, end in pieces(before, before + len(x), config.index_budget):
            piece = network.layers[0](
                x[begin - before : end - before].unsqueeze(0),
                position_embeddings=model.rotations(end),
                attention_mask=causal_mask(begin, end, model.device),
                cache=AttentionState(cache, {0: 0}, begin, end),
            )
            streams.append(piece[0])
        return streams


def _lay_out(model: Qwen4ExpModel) -> nn.Module:
    """The predictor's modules without memory, under the names of its tensors."""
    config, modeling = model.config, load_library("modeling_qwen4_exp")
    alone = {"num_hidden_layers": 1, "layer_types": ["indexed_attention"], "ple_layer_ids": []}
    settings = library_config(replace(config, network_fields={**config.network_fields, **alone}))
    hidden, eps = config.hidden_size, settings.rms_norm_eps
    with torch.device("meta"):
        return nn.ModuleDict(
            {
                "pre_fc_norm_embedding": modeling.Qwen4ExpTextRMSNorm(hidden, eps=eps),
                "pre_fc_norm_hidden": modeling.Qwen4ExpTextRMSNorm(config.width, eps=eps),
                "fc_embedding": nn.Linear(hidden, hidden, bias=False),
                "fc_hidden": nn.Linear(hidden, hidden, bias=False),
                "layers": nn.ModuleList([modeling.Qwen4ExpTextDecoderLayer(settings, 0)]),
                "hyper_connection_mixer": modeling.Qwen4ExpTextGatedResidual(settings, use_combine=False),
            }
        )


def _with_room(rows: Sequence[MtpRow]) -> list[IndexedKVCache]:
    """The rows' caches, with room for their new positions."""
    if not rows or len({id(row.cache) for row in rows}) < len(rows):
        raise ValueError("a batch has at least one row, and each row a cache of its own")
    caches = []
    for row in rows:
        cache, num_new = row.cache, len(row.token_ids)
        if not isinstance(cache, IndexedKVCache):
            raise TypeError(f"expected an IndexedKVCache, got {type(cache).__name__}")
        if num_new == 0 or len(row.hidden) != num_new:
            raise ValueError(f"{num_new} tokens cannot be read with {len(row.hidden)} hidden states")
        if not cache.reserve(cache.num_tokens + num_new):
            raise ValueError(f"no room for {num_new} tokens after {cache.num_tokens} of {cache.max_tokens}")
        caches.append(cache)
    return caches
