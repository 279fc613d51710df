"""The Llama-like decoder: Llama, SmolLM2, Qwen2 and Qwen3.

Per layer: x += attention(norm(x)); x += feed_forward(norm(x)), with RMS norms, rotary positions, grouped-query
attention and a gated SiLU feed-forward block. Tensor names and layouts are those of Hugging Face checkpoints.

Letters in shapes: N new tokens of all rows of a batch, Hq and Hk query and key/value heads, D head_dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from infernix.errors import ModelLoadError
from infernix.models.attention import AttentionRow, BatchAttention
from infernix.models.cache import KVCache, KVPool
from infernix.models.config import ModelConfig
from infernix.models.linear import Linear
from infernix.models.model import ModelRow, SequenceCache
from infernix.models.rope import inverse_frequencies, rope_table
from infernix.models.weights import WeightFiles


@dataclass(frozen=True, slots=True)
class _Layer:
    """Weights of one layer. Matrices that read the same input are stacked: fewer, larger products a token."""

    attention_norm: torch.Tensor
    qkv: Linear  # [(Hq + 2 Hk) D, hidden]
    q_norm: torch.Tensor | None  # [D]
    k_norm: torch.Tensor | None  # [D]
    output: Linear  # [hidden, Hq D]
    mlp_norm: torch.Tensor
    gate_up: Linear  # [2 intermediate, hidden]
    down: Linear  # [hidden, intermediate]


class LlamaModel:
    """A LanguageModel over the weights of a Hugging Face directory."""

    def __init__(self, config: ModelConfig, weights: WeightFiles) -> None:
        """Raises ModelLoadError for a tensor that is missing or has another shape than `config` says."""
        self.config = config
        self._embedding = weights.tensor("model.embed_tokens.weight", (config.vocab_size, config.hidden_size))
        self._layers = [_read_layer(config, weights, index) for index in range(config.num_layers)]
        surplus = weights.names_from(f"model.layers.{config.num_layers}.")
        if surplus:  # a network that is cut short runs, and answers nonsense
            raise ModelLoadError(f"tensor {surplus[0]!r} is beyond the {config.num_layers} layers of config.json")
        self._final_norm = weights.tensor("model.norm.weight", (config.hidden_size,))
        head = self._embedding
        if not config.tie_word_embeddings:
            head = weights.tensor("lm_head.weight", (config.vocab_size, config.hidden_size))
        self._head = weights.linear(head, is_delicate=True)
        self._dtype = self._embedding.dtype
        self._frequencies = inverse_frequencies(config.rope, config.head_dim)
        self._cosines = self._sines = torch.empty(0)

    @property
    def num_logits(self) -> int:
        """Width of a row of logits: the rows of the output matrix."""
        return self.config.vocab_size

    @property
    def max_context(self) -> int:
        """Most tokens that one sequence may hold."""
        return self.config.max_positions

    @property
    def device(self) -> torch.device:
        """Where weights, keys, values and logits are."""
        return self._embedding.device

    def new_pool(self, num_positions: int, num_sequences: int = 1) -> KVPool:
        """Memory for the keys and values of `num_positions` tokens, of as many sequences as there are."""
        return KVPool(
            self.config.num_layers,
            self.config.num_kv_heads,
            num_positions,
            self.config.head_dim,
            dtype=self._dtype,
            device=self.device,
        )

    def new_cache(self, max_tokens: int) -> KVCache:
        """An empty cache with a pool of its own for `max_tokens` tokens; ValueError outside 1..max_context."""
        if not 1 <= max_tokens <= self.max_context:
            raise ValueError(f"max_tokens is outside 1..{self.max_context}: {max_tokens}")
        return self.new_pool(max_tokens).new_cache(max_tokens)

    def forward(self, token_ids: Sequence[int], cache: SequenceCache, num_logits_rows: int = 1) -> torch.Tensor:
        """Append `token_ids` to the sequence of `cache`; float32 [num_logits_rows, vocab_size] after the last of them.

        Raises ValueError where there is nothing to append or no room for it; the cache's tokens are then unchanged.
        """
        return self.forward_rows([ModelRow(token_ids, cache, num_logits_rows)])

    @torch.inference_mode()
    def forward_rows(self, rows: Sequence[ModelRow]) -> torch.Tensor:
        """`forward` of several sequences at once; float32 [sum of num_logits_rows, vocab_size], row after row.

        Linear layers see the new tokens of all rows together, attention each row's own keys. Raises ValueError, with
        every cache's tokens unchanged, as `forward` does, and where a cache is there twice.
        """
        config = self.config
        laid_out = _laid_out(rows)
        attention = BatchAttention(laid_out)
        cosines, sines = self._rope(laid_out)
        token_ids = [token for row in rows for token in row.token_ids]
        x = F.embedding(torch.tensor(token_ids, device=self.device), self._embedding)
        num_new, num_q, num_qk = len(token_ids), config.num_heads, config.num_heads + config.num_kv_heads
        for index, layer in enumerate(self._layers):
            h = F.rms_norm(x, (config.hidden_size,), layer.attention_norm, config.rms_norm_eps)
            heads = layer.qkv(h).view(num_new, num_qk + config.num_kv_heads, config.head_dim)
            qk = _rotate(_norm_heads(heads[:, :num_qk], layer, config), cosines, sines)
            x = x + layer.output(attention.run(index, qk[:, :num_q], qk[:, num_q:], heads[:, num_qk:]))
            h = F.rms_norm(x, (config.hidden_size,), layer.mlp_norm, config.rms_norm_eps)
            gate, up = layer.gate_up(h).chunk(2, dim=-1)
            x = x + layer.down(F.silu(gate) * up)
        for row in laid_out:
            row.cache.advance(row.num_new)
        wanted = [
            column
            for row, placed in zip(rows, laid_out, strict=True)
            for column in range(placed.columns.stop - row.num_logits_rows, placed.columns.stop)
        ]
        if len(wanted) < num_new:
            x = x[torch.tensor(wanted, dtype=torch.int64, device=self.device)]
        x = F.rms_norm(x, (config.hidden_size,), self._final_norm, config.rms_norm_eps)
        return self._head(x).float()

    def _rope(self, rows: Sequence[AttentionRow]) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows of the table, [N, 1, D] each; the table doubles when a sequence outgrows it."""
        end = max(row.num_keys for row in rows)
        if end > self._cosines.shape[0]:
            num_positions = min(max(256, 2 * end), self.max_context)
            cosines, sines = rope_table(self._frequencies, num_positions)
            self._cosines = cosines.to(self.device, self._dtype)
            self._sines = sines.to(self.device, self._dtype)
        places = [place for row in rows for place in range(row.cache.num_tokens, row.num_keys)]
        index = torch.tensor(places, device=self.device)
        return self._cosines[index], self._sines[index]


def _laid_out(rows: Sequence[ModelRow]) -> list[AttentionRow]:
    """The rows, with room for their new tokens, one behind another."""
    if not rows or len({id(row.cache) for row in rows}) < len(rows):
        raise ValueError("a batch has at least one row, and each row a cache of its own")
    laid_out, begin = [], 0
    for row in rows:
        cache, num_new = row.cache, len(row.token_ids)
        if not isinstance(cache, KVCache):
            raise TypeError(f"expected a KVCache, got {type(cache).__name__}")
        if num_new == 0 or not 0 <= row.num_logits_rows <= num_new:
            raise ValueError(f"cannot give {row.num_logits_rows} rows of logits for {num_new} tokens")
        if not cache.reserve(cache.num_tokens + num_new):
            raise ValueError(f"no room for {num_new} tokens after {cache.num_tokens} of {cache.max_tokens}")
        laid_out.append(AttentionRow(cache, begin, num_new))
        begin += num_new
    return laid_out


def _norm_heads(heads: torch.Tensor, layer: _Layer, config: ModelConfig) -> torch.Tensor:
    if layer.q_norm is None or layer.k_norm is None:
        return heads
    shape = (config.head_dim,)
    q = F.rms_norm(heads[:, : config.num_heads], shape, layer.q_norm, config.rms_norm_eps)
    k = F.rms_norm(heads[:, config.num_heads :], shape, layer.k_norm, config.rms_norm_eps)
    return torch.cat((q, k), dim=1)


def _rotate(heads: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    first, second = heads.chunk(2, dim=-1)
    return torch.addcmul(heads * cosines, torch.cat((second, first), dim=-1), sines)


def _read_layer(config: ModelConfig, weights: WeightFiles, index: int) -> _Layer:
    hidden, inner = config.hidden_size, config.intermediate_size
    q_size, k_size = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim

    def tensor(name: str, *shape: int) -> torch.Tensor:
        return weights.tensor(f"model.layers.{index}.{name}", shape)

    def stacked(sizes: dict[str, int], num_inputs: int, has_bias: bool, *, is_delicate: bool = False) -> Linear:
        weight = torch.cat([tensor(f"{name}.weight", size, num_inputs) for name, size in sizes.items()])
        bias = torch.cat([tensor(f"{name}.bias", size) for name, size in sizes.items()]) if has_bias else None
        return weights.linear(weight, bias, is_delicate=is_delicate)

    qkv_sizes = {"self_attn.q_proj": q_size, "self_attn.k_proj": k_size, "self_attn.v_proj": k_size}
    return _Layer(
        attention_norm=tensor("input_layernorm.weight", hidden),
        qkv=stacked(qkv_sizes, hidden, config.qkv_bias),
        q_norm=tensor("self_attn.q_norm.weight", config.head_dim) if config.qk_norm else None,
        k_norm=tensor("self_attn.k_norm.weight", config.head_dim) if config.qk_norm else None,
        output=stacked({"self_attn.o_proj": hidden}, q_size, config.output_bias),
        mlp_norm=tensor("post_attention_layernorm.weight", hidden),
        gate_up=stacked({"mlp.gate_proj": inner, "mlp.up_proj": inner}, hidden, config.mlp_bias),
        down=stacked({"mlp.down_proj": hidden}, inner, config.mlp_bias, is_delicate=True),
    )
