"""The multi-token predictor of Qwen3.8-Flash-Next against its formulas in float64, position by position."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from infernix.errors import ModelLoadError
from infernix.models import qwen4_exp_pass
from infernix.models.cache import KVPool
from infernix.models.model import ModelRow
from infernix.models.mtp import MtpRow
from infernix.models.qwen4_exp import Qwen4ExpModel
from infernix.models.qwen4_exp_mtp import Qwen4ExpMtpPredictor
from infernix.models.weights import WeightFiles
from models.test_mtp import gated
from models.tiny_qwen3_5 import rewrite_tensors
from models.tiny_qwen4_exp import HIDDEN, STREAMS, VOCAB_SIZE, load_qwen4_exp, random_tokens, tiny_qwen4_exp

HEADS, KV_HEADS, HEAD_DIM, INDEX_HEADS, INDEX_DIM, ROTARY, THETA, EPS = 4, 2, 16, 6, 12, 8, 1e4, 1e-6
BUDGET, RATIO, NUM_EXPERTS, NUM_CHOSEN = 16, 4, 6, 2
WIDTH = STREAMS * HIDDEN
CLOSE = {"atol": 1e-4, "rtol": 1e-4}

MIXER = {"hc_norm": (WIDTH,), "input_mix_weight_down": (8, WIDTH), "input_mix_weight_up": (WIDTH, 8)}
SHAPES = {
    "pre_fc_norm_embedding": (HIDDEN,),
    "pre_fc_norm_hidden": (WIDTH,),
    "fc_embedding": (HIDDEN, HIDDEN),
    "fc_hidden": (HIDDEN, HIDDEN),
    "layers.0.self_attn.q_proj": (2 * HEADS * HEAD_DIM, HIDDEN),
    "layers.0.self_attn.k_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
    "layers.0.self_attn.v_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
    "layers.0.self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
    "layers.0.self_attn.q_norm": (HEAD_DIM,),
    "layers.0.self_attn.k_norm": (HEAD_DIM,),
    "layers.0.self_attn.indexer.index_qk_proj": ((INDEX_HEADS + 1) * INDEX_DIM, HIDDEN),
    "layers.0.self_attn.indexer.q_layernorm": (INDEX_DIM,),
    "layers.0.self_attn.indexer.k_layernorm": (INDEX_DIM,),
    "layers.0.mlp.gate": (NUM_EXPERTS, HIDDEN),
    "layers.0.mlp.shared_expert.gate_proj": (20, HIDDEN),
    "layers.0.mlp.shared_expert.up_proj": (20, HIDDEN),
    "layers.0.mlp.shared_expert.down_proj": (HIDDEN, 20),
    "layers.0.mlp.shared_expert_gate": (1, HIDDEN),
    **{
        f"layers.0.{place}_hyper_connection.{name}": shape
        for place in ("attn", "mlp")
        for name, shape in (MIXER | {"block_inject_weight": (STREAMS, WIDTH)}).items()
    },
    **{f"hyper_connection_mixer.{name}": shape for name, shape in MIXER.items()},
}


def predictor_tensors() -> dict[str, torch.Tensor]:
    """By their names in a checkpoint."""
    generator = torch.Generator().manual_seed(23)
    shapes: dict[str, tuple[int, ...]] = {f"{name}.weight": shape for name, shape in SHAPES.items()}
    shapes["layers.0.mlp.experts.gate_up_proj"] = (NUM_EXPERTS, 48, HIDDEN)
    shapes["layers.0.mlp.experts.down_proj"] = (NUM_EXPERTS, HIDDEN, 24)
    return {
        f"mtp.{name}": torch.randn(*shape, generator=generator) * (0.3 if "norm" in name else 0.2)
        for name, shape in shapes.items()
    }


class Reference:
    """The predictor over a whole sequence at once, in float64."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        self._tensors = {name.removeprefix("mtp."): tensor.double() for name, tensor in tensors.items()}

    def streams(self, embedded: torch.Tensor, streams: torch.Tensor) -> torch.Tensor:
        """X' at every position, [T, WIDTH]."""
        e = self._norm(embedded.double(), "pre_fc_norm_embedding") @ self._weight("fc_embedding").T
        h = self._norm(streams.double(), "pre_fc_norm_hidden").view(-1, STREAMS, HIDDEN)
        x = h @ self._weight("fc_hidden").T + e.unsqueeze(1)
        for place, block in (("attn", self._attention), ("mlp", self._experts)):
            name = f"layers.0.{place}_hyper_connection"
            normed = self._normed_streams(x, name)
            inject = 2 * torch.sigmoid(normed.flatten(1) @ self._weight(f"{name}.block_inject_weight").T / STREAMS)
            x = x + inject.unsqueeze(-1) * block(self.mixed(x, name)).unsqueeze(1)
        return x.flatten(1)

    def mixed(self, x: torch.Tensor, name: str) -> torch.Tensor:
        """Streams [T, STREAMS, HIDDEN] to one, [T, HIDDEN]."""
        normed = self._normed_streams(x, name)
        low = normed.flatten(1) @ self._weight(f"{name}.input_mix_weight_down").T / STREAMS
        low = low / (1 + torch.exp(-low))
        shares = torch.sigmoid(low @ self._weight(f"{name}.input_mix_weight_up").T).view_as(x)
        return (shares * normed).sum(dim=1) / STREAMS

    def _weight(self, name: str) -> torch.Tensor:
        return self._tensors[f"{name}.weight"]

    def _normed_streams(self, x: torch.Tensor, name: str) -> torch.Tensor:
        scale = (1 + self._weight(f"{name}.hc_norm")).view(STREAMS, HIDDEN)
        return x / (x.square().mean(dim=-1, keepdim=True) + EPS).sqrt() * scale

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return x / (x.square().mean(dim=-1, keepdim=True) + EPS).sqrt() * (1 + self._weight(name))

    def _attention(self, x: torch.Tensor) -> torch.Tensor:
        name = "layers.0.self_attn."
        q_gate = (x @ self._weight(f"{name}q_proj").T).view(len(x), HEADS, 2, HEAD_DIM)
        q = self._norm(q_gate[:, :, 0], f"{name}q_norm")
        k = self._norm((x @ self._weight(f"{name}k_proj").T).view(len(x), KV_HEADS, HEAD_DIM), f"{name}k_norm")
        v = (x @ self._weight(f"{name}v_proj").T).view(len(x), KV_HEADS, HEAD_DIM)
        index = (x @ self._weight(f"{name}indexer.index_qk_proj").T).view(len(x), INDEX_HEADS + 1, INDEX_DIM)
        given = torch.zeros(len(x), HEADS, HEAD_DIM, dtype=torch.float64)
        for place in range(len(x)):
            chosen = self._chosen(index, place)
            for head in range(HEADS):
                source = head // (HEADS // KV_HEADS)
                query = rotated(q[place, head], place)
                scores = torch.stack([query @ rotated(k[past, source], past) for past in chosen])
                given[place, head] = torch.softmax(scores / math.sqrt(HEAD_DIM), dim=0) @ v[chosen, source]
        return (given * torch.sigmoid(q_gate[:, :, 1])).flatten(1) @ self._weight(f"{name}o_proj").T

    def _chosen(self, index: torch.Tensor, place: int) -> list[int]:
        """The positions that a token attends to: its best whole blocks and the block that is not full."""
        name = "layers.0.self_attn.indexer."
        num_blocks = (place + 1) // RATIO
        queries = self._norm(index[place, :INDEX_HEADS], f"{name}q_layernorm")
        scores = []
        for block in range(num_blocks):
            mean = index[block * RATIO : (block + 1) * RATIO, INDEX_HEADS].mean(dim=0)
            key = rotated(self._norm(mean, f"{name}k_layernorm"), block * RATIO)
            scores.append(sum(max(0.0, float(rotated(query, place) @ key)) for query in queries))
        best = sorted(range(num_blocks), key=lambda block: -scores[block])[: BUDGET // RATIO]
        whole = [block * RATIO + offset for block in best for offset in range(RATIO)]
        return [*whole, *range(num_blocks * RATIO, place + 1)]

    def _experts(self, x: torch.Tensor) -> torch.Tensor:
        t = {name.removeprefix("layers.0.mlp."): value for name, value in self._tensors.items() if ".mlp." in name}
        shared = gated(x, *(t[f"shared_expert.{part}_proj.weight"] for part in ("gate", "up", "down")))
        total = torch.sigmoid(x @ t["shared_expert_gate.weight"].T) * shared
        for place, probabilities in enumerate(torch.softmax(x @ t["gate.weight"].T, dim=-1)):
            best = sorted(range(NUM_EXPERTS), key=lambda expert: -float(probabilities[expert]))[:NUM_CHOSEN]
            for expert in best:
                gate, up = t["experts.gate_up_proj"][expert].chunk(2)
                weight = probabilities[expert] / probabilities[best].sum()
                total[place] += weight * gated(x[place], gate, up, t["experts.down_proj"][expert])
        return total


def rotated(head: torch.Tensor, position: int) -> torch.Tensor:
    """The first ROTARY numbers turned pair by pair."""
    angles = position * THETA ** (-torch.arange(0, ROTARY, 2, dtype=torch.float64) / ROTARY)
    first, second, rest = head.split((ROTARY // 2, ROTARY // 2, len(head) - ROTARY))
    cosines, sines = angles.cos(), angles.sin()
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines, rest))


def write_checkpoint(directory: Path, extra: dict[str, torch.Tensor]) -> Path:
    tiny_qwen4_exp().save_pretrained(directory)
    rewrite_tensors(directory, lambda tensors: tensors | extra)
    return directory


def load_predictor(directory: Path) -> tuple[Qwen4ExpModel, Qwen4ExpMtpPredictor]:
    model = load_qwen4_exp(directory)
    weights = WeightFiles(directory, dtype=torch.float32, device=torch.device("cpu"))
    return model, Qwen4ExpMtpPredictor(weights, model)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Qwen4ExpModel, Qwen4ExpMtpPredictor]:
    return load_predictor(write_checkpoint(tmp_path_factory.mktemp("mtp"), predictor_tensors()))


def test_agrees_with_the_formulas_in_every_split(
    loaded: tuple[Qwen4ExpModel, Qwen4ExpMtpPredictor], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, predictor = loaded
    tokens = random_tokens(41)
    hidden = model.forward_features([ModelRow(tokens[:40], model.new_cache(40), 0)]).hidden
    following = tokens[1:]
    reference = Reference(predictor_tensors())
    exact = reference.streams(model.embed(torch.tensor(following)), hidden)
    expected = exact.float()
    assert expected.std() > 0.3

    pool = predictor.new_pool(256)
    for split, piece in (([40], 1 << 22), ([1] * 40, 1 << 22), ([12, 1, 1, 19, 7], 1 << 22), ([12, 28], 40 * 5)):
        monkeypatch.setattr(qwen4_exp_pass, "MAX_MASK_ELEMENTS", piece)
        cache, parts, begin = pool.new_cache(40), [], 0
        for size in split:
            part = slice(begin, begin + size)
            parts.append(predictor.forward_rows([MtpRow(following[part], hidden[part], cache)]))
            begin += size
        torch.testing.assert_close(torch.cat(parts), expected, **CLOSE)
        cache.release()
    # The mixer is the predictor's own, the output matrix the model's.
    mixed = reference.mixed(exact.view(-1, STREAMS, HIDDEN), "hyper_connection_mixer")
    logits = predictor.head(expected)
    assert logits.shape == (40, VOCAB_SIZE)
    torch.testing.assert_close(logits, model.project(mixed.float()), **CLOSE)


def test_a_chain_of_drafts_and_its_alignment(loaded: tuple[Qwen4ExpModel, Qwen4ExpMtpPredictor]) -> None:
    """Drafts chain on the predictor's own streams; after verification the same positions are read again, with the
    model's streams, and nothing of the chain is left.
    """
    model, predictor = loaded
    reference = Reference(predictor_tensors())
    prompt, drafts, accepted = random_tokens(22), [40, 41, 42], [40, 50]
    target = model.new_cache(40)
    hidden = model.forward_features([ModelRow(prompt, target, 0)]).hidden
    cache = predictor.new_pool(64).new_cache(40)
    chain = [predictor.forward_rows([MtpRow([*prompt[1:], 30], hidden, cache)])[-1:]]
    for draft in drafts[:2]:
        chain.append(predictor.forward_rows([MtpRow([draft], chain[-1], cache)]))
    read = torch.cat((hidden, *chain[:2]))
    following = [*prompt[1:], 30, *drafts[:2]]
    expected = reference.streams(model.embed(torch.tensor(following)), read).float()[-3:]
    torch.testing.assert_close(torch.cat(chain), expected, **CLOSE)

    cache.truncate(len(prompt))
    verified = model.forward_features([ModelRow([30, *drafts], target, 4)]).hidden
    aligned = predictor.forward_rows([MtpRow(accepted, verified[:2], cache)])
    read = torch.cat((hidden, verified[:2]))
    following = [*prompt[1:], 30, *accepted]
    expected = reference.streams(model.embed(torch.tensor(following)), read).float()[-2:]
    torch.testing.assert_close(aligned, expected, **CLOSE)


def test_rows_do_not_touch_each_other(loaded: tuple[Qwen4ExpModel, Qwen4ExpMtpPredictor]) -> None:
    model, predictor = loaded
    pool = predictor.new_pool(256)
    rows, alone = [], []
    for number, length in enumerate((1, 9, 30)):
        tokens = random_tokens(length + 1, 40 * number)
        hidden = model.forward_features([ModelRow(tokens[:-1], model.new_cache(length), 0)]).hidden
        rows.append(MtpRow(tokens[1:], hidden, pool.new_cache(length)))
        alone.append(predictor.forward_rows([MtpRow(tokens[1:], hidden, pool.new_cache(length))]))
    torch.testing.assert_close(predictor.forward_rows(rows), torch.cat(alone), **CLOSE)


def test_what_cannot_be_read_is_refused_and_changes_nothing(
    loaded: tuple[Qwen4ExpModel, Qwen4ExpMtpPredictor],
) -> None:
    model, predictor = loaded
    pool = predictor.new_pool(64)
    cache, other = pool.new_cache(4), pool.new_cache(4)
    states = torch.zeros(5, model.hidden_size)
    for rows, message in (
        ([], "at least one row"),
        ([MtpRow([1], states[:1], cache)] * 2, "a cache of its own"),
        ([MtpRow([1], states[:1], cache), MtpRow([1], states[:2], other)], "1 tokens cannot be read with 2"),
        ([MtpRow([1], states[:1], cache), MtpRow([], states[:0], other)], "0 tokens cannot be read"),
        ([MtpRow([1], states[:1], cache), MtpRow([1] * 5, states, other)], "no room for 5 tokens after 0 of 4"),
    ):
        with pytest.raises(ValueError, match=message):
            predictor.forward_rows(rows)
        assert (cache.num_tokens, other.num_tokens) == (0, 0)
    with pytest.raises(TypeError, match="expected an IndexedKVCache"):
        predictor.forward_rows([MtpRow([1], states[:1], KVPool(1, 2, 32, 16).new_cache(4))])


def test_wrong_checkpoints_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="no multi-token predictor"):
        load_predictor(write_checkpoint(tmp_path / "none", {}))
    tensors = predictor_tensors()
    del tensors["mtp.fc_hidden.weight"]
    tensors["mtp.hyper_connection_mixer.hc_norm.weight"] = torch.ones(3)
    tensors["mtp.layers.1.mlp.gate.weight"] = torch.ones(1)
    tensors["mtp.embed_tokens.weight"] = torch.ones(1)
    with pytest.raises(ModelLoadError) as caught:
        load_predictor(write_checkpoint(tmp_path / "wrong", tensors))
    for part in (
        "'mtp.fc_hidden.weight' is missing",
        "'mtp.hyper_connection_mixer.hc_norm.weight' has shape [3], expected [96]",
        "'mtp.layers.1.mlp.gate.weight' is beyond the one layer",
        "'mtp.embed_tokens.weight' is an embedding of the predictor's own",
    ):
        assert part in caught.value.message
