"""The Llama-like decoder: Llama, SmolLM2, Qwen2 and Qwen3.

Per layer: x += attention(norm(x)); x += feed_forward(norm(x)), with RMS norms, rotary positions, grouped-query
attention and a gated SiLU feed-forward block. Tensor names and layouts are those of Hugging Face checkpoints.

Letters in shapes: T new tokens, S all tokens of the sequence, Hq and Hk query and key/value heads, D head_dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from infernix.errors import ModelLoadError
from infernix.models.cache import KVCache
from infernix.models.config import ModelConfig
from infernix.models.model import SequenceCache
from infernix.models.rope import inverse_frequencies, rope_table
from infernix.models.weights import WeightFiles


@dataclass(frozen=True, slots=True)
class _Layer:
    """Weights of one layer. Matrices that read the same input are stacked: fewer, larger products a token."""

    attention_norm: torch.Tensor
    qkv: torch.Tensor  # [(Hq + 2 Hk) D, hidden]
    qkv_bias: torch.Tensor | None
    q_norm: torch.Tensor | None  # [D]
    k_norm: torch.Tensor | None  # [D]
    output: torch.Tensor  # [hidden, Hq D]
    output_bias: torch.Tensor | None
    mlp_norm: torch.Tensor
    gate_up: torch.Tensor  # [2 intermediate, hidden]
    gate_up_bias: torch.Tensor | None
    down: torch.Tensor  # [hidden, intermediate]
    down_bias: torch.Tensor | None


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
        self._head = self._embedding
        if not config.tie_word_embeddings:
            self._head = weights.tensor("lm_head.weight", (config.vocab_size, config.hidden_size))
        self._dtype = self._embedding.dtype
        self._device = self._embedding.device
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

    def new_cache(self, max_tokens: int) -> KVCache:
        """An empty cache with room for `max_tokens` tokens; ValueError outside 1..max_context."""
        if not 1 <= max_tokens <= self.max_context:
            raise ValueError(f"max_tokens is outside 1..{self.max_context}: {max_tokens}")
        return KVCache(
            self.config.num_layers,
            self.config.num_kv_heads,
            max_tokens,
            self.config.head_dim,
            dtype=self._dtype,
            device=self._device,
        )

    @torch.inference_mode()
    def forward(self, token_ids: Sequence[int], cache: SequenceCache, num_logits_rows: int = 1) -> torch.Tensor:
        """Append `token_ids` to the sequence of `cache`; float32 [num_logits_rows, vocab_size] after the last of them.

        Raises ValueError where there is nothing to append or no room for it; the cache is then unchanged.
        """
        if not isinstance(cache, KVCache):
            raise TypeError(f"expected a KVCache, got {type(cache).__name__}")
        num_new, start = len(token_ids), cache.num_tokens
        end = start + num_new
        if num_new == 0 or not 0 <= num_logits_rows <= num_new:
            raise ValueError(f"cannot give {num_logits_rows} rows of logits for {num_new} tokens")
        if end > cache.max_tokens:
            raise ValueError(f"no room for {num_new} tokens after {start} of {cache.max_tokens}")
        config = self.config
        num_q, num_k = config.num_heads, config.num_kv_heads
        cosines, sines = self._rope(start, end)
        mask = self._causal_mask(start, end)
        x = F.embedding(torch.tensor(token_ids, device=self._device), self._embedding)
        for layer, (keys, values) in zip(self._layers, cache.layers, strict=True):
            h = F.rms_norm(x, (config.hidden_size,), layer.attention_norm, config.rms_norm_eps)
            heads = F.linear(h, layer.qkv, layer.qkv_bias).view(num_new, num_q + 2 * num_k, config.head_dim)
            qk = _rotate(_norm_heads(heads[:, : num_q + num_k], layer, config), cosines, sines)
            keys[:, start:end] = qk[:, num_q:].transpose(0, 1)
            values[:, start:end] = heads[:, num_q + num_k :].transpose(0, 1)
            attended = _attend(qk[:, :num_q], keys[:, :end], values[:, :end], mask)
            x = x + F.linear(attended, layer.output, layer.output_bias)
            h = F.rms_norm(x, (config.hidden_size,), layer.mlp_norm, config.rms_norm_eps)
            gate, up = F.linear(h, layer.gate_up, layer.gate_up_bias).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, layer.down, layer.down_bias)
        cache.advance(num_new)
        x = F.rms_norm(x[num_new - num_logits_rows :], (config.hidden_size,), self._final_norm, config.rms_norm_eps)
        return F.linear(x, self._head).float()

    def _rope(self, start: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows start..end of the table, [T, 1, D] each; the table doubles when a sequence outgrows it."""
        if end > self._cosines.shape[0]:
            num_positions = min(max(256, 2 * end), self.max_context)
            cosines, sines = rope_table(self._frequencies, num_positions)
            self._cosines = cosines.to(self._device, self._dtype)
            self._sines = sines.to(self._device, self._dtype)
        return self._cosines[start:end], self._sines[start:end]

    def _causal_mask(self, start: int, end: int) -> torch.Tensor | None:
        """bool [T, S], True where a new token may look; None at the start and for a single token: no mask is needed."""
        if start == 0 or end - start == 1:
            return None
        positions = torch.arange(end, device=self._device)
        return positions <= positions[start:].unsqueeze(1)


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


def _attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """q [T, Hq, D] over keys and values [Hk, S, D] -> [T, Hq D]."""
    num_new, num_q, head_dim = q.shape
    if num_new == 1:
        # One token: the query heads of a group stand where several tokens would, so keys are not repeated.
        grouped = q.view(1, keys.shape[0], num_q // keys.shape[0], head_dim)
        return F.scaled_dot_product_attention(grouped, keys.unsqueeze(0), values.unsqueeze(0)).reshape(1, -1)
    attended = F.scaled_dot_product_attention(
        q.transpose(0, 1).unsqueeze(0),
        keys.unsqueeze(0),
        values.unsqueeze(0),
        attn_mask=mask,
        is_causal=mask is None,
        enable_gqa=True,
    )
    return attended[0].transpose(0, 1).reshape(num_new, num_q * head_dim)


def _read_layer(config: ModelConfig, weights: WeightFiles, index: int) -> _Layer:
    hidden, inner = config.hidden_size, config.intermediate_size
    q_size, k_size = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim

    def tensor(name: str, *shape: int) -> torch.Tensor:
        return weights.tensor(f"model.layers.{index}.{name}", shape)

    def stacked(kind: str, sizes: dict[str, int], *columns: int) -> torch.Tensor:
        return torch.cat([tensor(f"{name}.{kind}", size, *columns) for name, size in sizes.items()])

    qkv_sizes = {"self_attn.q_proj": q_size, "self_attn.k_proj": k_size, "self_attn.v_proj": k_size}
    gate_up_sizes = {"mlp.gate_proj": inner, "mlp.up_proj": inner}
    return _Layer(
        attention_norm=tensor("input_layernorm.weight", hidden),
        qkv=stacked("weight", qkv_sizes, hidden),
        qkv_bias=stacked("bias", qkv_sizes) if config.qkv_bias else None,
        q_norm=tensor("self_attn.q_norm.weight", config.head_dim) if config.qk_norm else None,
        k_norm=tensor("self_attn.k_norm.weight", config.head_dim) if config.qk_norm else None,
        output=tensor("self_attn.o_proj.weight", hidden, q_size),
        output_bias=tensor("self_attn.o_proj.bias", hidden) if config.output_bias else None,
        mlp_norm=tensor("post_attention_layernorm.weight", hidden),
        gate_up=stacked("weight", gate_up_sizes, hidden),
        gate_up_bias=stacked("bias", gate_up_sizes) if config.mlp_bias else None,
        down=tensor("mlp.down_proj.weight", hidden, inner),
        down_bias=tensor("mlp.down_proj.bias", hidden) if config.mlp_bias else None,
    )
