"""The layers of a DFlash drafter: attention from a block of positions to a context and to itself.

What the target has run over is the context: its keys and values are made from the target's features and kept. The
block's own are gone after the pass.

Letters in shapes: R rows of a batch, W positions of a block, N = R W, Hq and Hk query and key/value heads, D head_dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from infernix.models.cache import KVCache
from infernix.models.dflash_config import DFlashConfig, LayerSpan
from infernix.models.linear import Linear
from infernix.models.qwen3_5_experts import DenseFeedForward
from infernix.models.qwen3_5_layers import float32_norm, rotate_front
from infernix.models.tensor_reader import TensorReader


@dataclass(frozen=True, slots=True)
class BlockBatch:
    """Blocks of `width` positions, one behind each cache's context; tables are [N, 1, D]."""

    caches: Sequence[KVCache]
    width: int
    cosines: torch.Tensor
    sines: torch.Tensor


class DynamicConvolution:
    """A convolution over a block with two taps, whose weights depend on the position and on a group of channels.

    It is used twice a branch, on what goes into the branch (side 0) and on what comes out of it (side 1):

        y[i, c] = (base[side, 0, c] + d[i, side, 0, g]) x[i, c] + (base[side, 1, c] + d[i, side, 1, g]) x[i - 1, c]

    with g the group of c and d a projection of the branch's input; the first position of a block has no x[i - 1].
    """

    def __init__(self, reader: TensorReader, prefix: str, hidden: int, group_size: int) -> None:
        self._group_size = group_size
        self._base = reader.tensor(f"{prefix}base_kernel", 2, 2, hidden, dtype=torch.float32)
        self._projection = reader.linear(f"{prefix}kernel_projection.weight", 4 * hidden // group_size, hidden)

    def kernels(self, x: torch.Tensor) -> torch.Tensor:
        """The branch's input [N, hidden] -> weights float32 [N, side, tap, hidden]."""
        increments = self._projection(x).float().reshape(len(x), 2, 2, -1)
        return self._base + increments.repeat_interleave(self._group_size, dim=-1)

    def apply(self, kernels: torch.Tensor, side: int, x: torch.Tensor, width: int) -> torch.Tensor:
        """[N, hidden] -> [N, hidden], within blocks of `width` positions."""
        blocks = x.float().view(-1, width, x.shape[-1])
        earlier = F.pad(blocks[:, :-1], (0, 0, 1, 0)).view(x.shape)
        return (kernels[:, side, 0] * x.float() + kernels[:, side, 1] * earlier).to(x.dtype)


class DFlashLayer:
    """One layer; the norms multiply by what the checkpoint stores as it is."""

    def __init__(self, reader: TensorReader, prefix: str, config: DFlashConfig, index: int) -> None:
        self._config = config
        self._index = index
        self._span = config.spans[index]
        hidden, head_dim = config.hidden_size, config.head_dim
        q_size, k_size = config.num_heads * head_dim, config.num_kv_heads * head_dim
        # The context has keys and values but no queries, so the queries' matrix stands alone.
        self._q = reader.linear(f"{prefix}self_attn.q_proj.weight", q_size, hidden)
        names = f"{prefix}self_attn.k_proj.weight", f"{prefix}self_attn.v_proj.weight"
        self._kv: Linear = reader.stacked(dict.fromkeys(names, k_size), hidden)
        self._output = reader.linear(f"{prefix}self_attn.o_proj.weight", hidden, q_size)
        self._q_norm = reader.tensor(f"{prefix}self_attn.q_norm.weight", head_dim, dtype=torch.float32)
        self._k_norm = reader.tensor(f"{prefix}self_attn.k_norm.weight", head_dim, dtype=torch.float32)
        self._attention_norm = reader.tensor(f"{prefix}input_layernorm.weight", hidden, dtype=torch.float32)
        self._mlp_norm = reader.tensor(f"{prefix}post_attention_layernorm.weight", hidden, dtype=torch.float32)
        self._mlp = DenseFeedForward(reader, f"{prefix}mlp.", hidden, config.intermediate_size)
        self._attention_conv = self._mlp_conv = None
        if config.selector is not None:
            group_size = config.selector.group_size
            self._attention_conv = DynamicConvolution(reader, f"{prefix}attention_conv.", hidden, group_size)
            self._mlp_conv = DynamicConvolution(reader, f"{prefix}mlp_conv.", hidden, group_size)

    def keys_and_values(
        self, x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Rotated keys and values [N, Hk, D] of [N, hidden], a context's or a block's."""
        heads = self._kv(x).view(len(x), 2, self._config.num_kv_heads, self._config.head_dim)
        keys = float32_norm(heads[:, 0], self._k_norm, self._config.rms_norm_eps)
        return rotate_front(keys, cosines, sines), heads[:, 1]

    def __call__(self, x: torch.Tensor, batch: BlockBatch) -> torch.Tensor:
        """The residual stream [N, hidden] after the layer."""
        h = float32_norm(x, self._attention_norm, self._config.rms_norm_eps)
        if self._attention_conv is None or self._mlp_conv is None:
            x = x + self._attend(h, batch)
            return x + self._mlp(float32_norm(x, self._mlp_norm, self._config.rms_norm_eps))
        kernels = self._attention_conv.kernels(h)
        h = self._attend(self._attention_conv.apply(kernels, 0, h, batch.width), batch)
        x = x + self._attention_conv.apply(kernels, 1, h, batch.width)
        h = float32_norm(x, self._mlp_norm, self._config.rms_norm_eps)
        kernels = self._mlp_conv.kernels(h)
        h = self._mlp(self._mlp_conv.apply(kernels, 0, h, batch.width))
        return x + self._mlp_conv.apply(kernels, 1, h, batch.width)

    def _attend(self, h: torch.Tensor, batch: BlockBatch) -> torch.Tensor:
        config, width = self._config, batch.width
        q = self._q(h).view(len(h), config.num_heads, config.head_dim)
        q = rotate_front(float32_norm(q, self._q_norm, config.rms_norm_eps), batch.cosines, batch.sines)
        k, v = self.keys_and_values(h, batch.cosines, batch.sines)
        attended = []
        for row, cache in enumerate(batch.caches):
            columns = slice(row * width, (row + 1) * width)
            begin = first_visible(self._span, cache.num_tokens)
            keys, values = k[columns].transpose(0, 1), v[columns].transpose(0, 1)
            if begin < cache.num_tokens:
                old_keys, old_values = cache.pool.layers[self._index]
                places = cache.positions(begin, cache.num_tokens)
                keys = torch.cat((old_keys[:, places], keys), dim=1)
                values = torch.cat((old_values[:, places], values), dim=1)
            given = F.scaled_dot_product_attention(
                q[columns].transpose(0, 1).unsqueeze(0),
                keys.unsqueeze(0),
                values.unsqueeze(0),
                attn_mask=visible(self._span, begin, cache.num_tokens, width, h.device),
                enable_gqa=True,
            )
            attended.append(given[0].transpose(0, 1).reshape(width, -1))
        return self._output(torch.cat(attended))


def first_visible(span: LayerSpan, num_context: int) -> int:
    """The first position of the context that a block behind it can see."""
    return 0 if span.window is None else max(0, num_context - span.window + 1)


def visible(span: LayerSpan, begin: int, num_context: int, width: int, device: torch.device) -> torch.Tensor | None:
    """bool [W, positions begin..num_context + W - 1], True where a position of the block may look; None: everywhere."""
    if span.window is None:
        return None
    keys = torch.arange(begin, num_context + width, device=device)
    distance = keys[-width:].unsqueeze(1) - keys
    is_near = distance.abs() < span.window
    return is_near & (distance >= 0) if span.is_causal else is_near
