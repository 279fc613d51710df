"""The layers of Qwen3.5: gated attention and gated DeltaNet, each followed by a feed-forward block.

Per layer: x += mixer(norm(x)); x += feed_forward(norm(x)). The norms of the residual stream and of queries and keys
multiply by one plus what the checkpoint stores, in float32; the norm inside a DeltaNet layer multiplies by it as it is.

Letters in shapes: N new tokens of all rows of a batch, Hq and Hk query and key/value heads, D head_dim, H value heads
and V value size of DeltaNet.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from infernix.models.attention import BatchAttention
from infernix.models.batch_delta import BatchDelta
from infernix.models.qwen3_5_config import Qwen35Config
from infernix.models.qwen3_5_experts import FeedForward, read_feed_forward
from infernix.models.tensor_reader import TensorReader


def float32_norm(x: torch.Tensor, factors: torch.Tensor, eps: float) -> torch.Tensor:
    """Root-mean-square norm over the last dimension with factors float32 [size], all in float32, in x's format."""
    return F.rms_norm(x.float(), factors.shape, factors, eps).to(x.dtype)


def rotate_front(heads: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Rotates the first dimensions of heads [N, heads, D] by tables [N, 1, rotary_dim] (see `rope_table`)."""
    rotary_dim = cosines.shape[-1]
    front, rest = heads[..., :rotary_dim], heads[..., rotary_dim:]
    first, second = front.chunk(2, dim=-1)
    front = torch.addcmul(front * cosines, torch.cat((second, first), dim=-1), sines)
    return torch.cat((front, rest), dim=-1)


@dataclass(frozen=True, slots=True)
class Batch:
    """What the layers need besides the residual stream; tables are [N, 1, rotary_dim]."""

    attention: BatchAttention
    delta: BatchDelta | None
    cosines: torch.Tensor
    sines: torch.Tensor


class GatedAttention:
    """Grouped-query attention with normed, partly rotated heads, whose output passes a sigmoid gate."""

    def __init__(self, reader: TensorReader, prefix: str, config: Qwen35Config, place: int) -> None:
        """`place` is the layer's number among those that attend."""
        self._config = config
        self._place = place
        hidden, head_dim = config.hidden_size, config.head_dim
        q_size, k_size = config.num_heads * head_dim, config.num_kv_heads * head_dim
        # Stored head by head: the query's rows, then the gate's. Here all queries come first and all gates last.
        q_gate = reader.tensor(f"{prefix}q_proj.weight", 2 * q_size, hidden).view(config.num_heads, 2, head_dim, hidden)
        k = reader.tensor(f"{prefix}k_proj.weight", k_size, hidden)
        v = reader.tensor(f"{prefix}v_proj.weight", k_size, hidden)
        self._inputs = reader.matrix(torch.cat((q_gate[:, 0].flatten(0, 1), k, v, q_gate[:, 1].flatten(0, 1))))
        self._q_norm = reader.offset_norm(f"{prefix}q_norm.weight", head_dim)
        self._k_norm = reader.offset_norm(f"{prefix}k_norm.weight", head_dim)
        self._output = reader.linear(f"{prefix}o_proj.weight", hidden, q_size)

    def __call__(self, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """[N, hidden] -> [N, hidden]."""
        config = self._config
        num_q, num_k = config.num_heads, config.num_kv_heads
        heads = self._inputs(x).view(len(x), 2 * num_q + 2 * num_k, config.head_dim)
        q, k, v, gate = torch.split(heads, [num_q, num_k, num_k, num_q], dim=1)
        q = rotate_front(float32_norm(q, self._q_norm, config.rms_norm_eps), batch.cosines, batch.sines)
        k = rotate_front(float32_norm(k, self._k_norm, config.rms_norm_eps), batch.cosines, batch.sines)
        attended = batch.attention.run(self._place, q, k, v)
        return self._output(attended * torch.sigmoid(gate.flatten(1)))


class GatedDeltaNet:
    """Convolution, gated delta rule, and a norm that is gated by SiLU."""

    def __init__(self, reader: TensorReader, prefix: str, config: Qwen35Config, place: int) -> None:
        """`place` is the layer's number among the recurrent ones."""
        self._place = place
        self._eps = config.rms_norm_eps
        delta, hidden = config.delta, config.hidden_size
        num_heads = delta.num_value_heads
        self._sizes = [delta.num_channels, delta.output_size, num_heads, num_heads]
        names = ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a")
        self._inputs = reader.stacked(
            {f"{prefix}{name}.weight": size for name, size in zip(names, self._sizes, strict=True)}, hidden
        )
        kernel = reader.tensor(f"{prefix}conv1d.weight", delta.num_channels, 1, delta.num_taps, dtype=torch.float32)
        self._kernel = kernel[:, 0].t().contiguous()  # [taps, C]
        # Published in float32 or bfloat16; the exponential is worth float32 either way.
        self._rates = reader.tensor(f"{prefix}A_log", num_heads, dtype=torch.float32).exp()
        self._rate_bias = reader.tensor(f"{prefix}dt_bias", num_heads, dtype=torch.float32)
        self._norm = reader.tensor(f"{prefix}norm.weight", delta.value_dim)
        self._output = reader.linear(f"{prefix}out_proj.weight", hidden, delta.output_size)

    def __call__(self, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """[N, hidden] -> [N, hidden]."""
        assert batch.delta is not None, "a model with recurrent layers runs with their state"
        columns, gate, strengths, steps = torch.split(self._inputs(x), self._sizes, dim=-1)
        fades = -self._rates * F.softplus(steps.float() + self._rate_bias)
        outputs = batch.delta.run(self._place, columns, fades, strengths.sigmoid().float(), self._kernel)
        normed = F.rms_norm(outputs.to(x.dtype).float(), self._norm.shape, None, self._eps).to(x.dtype) * self._norm
        return self._output((normed.flatten(1) * F.silu(gate.float())).to(x.dtype))


class DecoderLayer:
    """One layer: a mixer of either kind, then the feed-forward block, both added to the residual stream."""

    def __init__(self, mixer: GatedAttention | GatedDeltaNet, reader: TensorReader, prefix: str, config: Qwen35Config):
        self._mixer = mixer
        self._mixer_norm = reader.offset_norm(f"{prefix}input_layernorm.weight", config.hidden_size)
        self._feed_forward_norm = reader.offset_norm(f"{prefix}post_attention_layernorm.weight", config.hidden_size)
        self._feed_forward: FeedForward = read_feed_forward(reader, f"{prefix}mlp.", config)
        self._eps = config.rms_norm_eps

    def __call__(self, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The residual stream [N, hidden] after the layer."""
        x = x + self._mixer(float32_norm(x, self._mixer_norm, self._eps), batch)
        return x + self._feed_forward(float32_norm(x, self._feed_forward_norm, self._eps))


def read_layers(reader: TensorReader, prefix: str, config: Qwen35Config) -> list[DecoderLayer]:
    """All layers, whose tensors begin with `prefix` and their number."""
    layers = []
    num_recurrent = num_attending = 0
    for index, is_recurrent in enumerate(config.is_recurrent):
        name = f"{prefix}{index}."
        mixer: GatedAttention | GatedDeltaNet
        if is_recurrent:
            mixer = GatedDeltaNet(reader, f"{name}linear_attn.", config, num_recurrent)
        else:
            mixer = GatedAttention(reader, f"{name}self_attn.", config, num_attending)
        num_recurrent += is_recurrent
        num_attending += not is_recurrent
        layers.append(DecoderLayer(mixer, reader, name, config))
    return layers
