"""The multi-token predictor against its formulas in float64, written out position by position."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from infernix.errors import ModelLoadError
from infernix.models.files import read_json_object
from infernix.models.model import ModelRow
from infernix.models.mtp import MtpPredictor, MtpRow
from infernix.models.qwen3_5 import Qwen35Model
from infernix.models.qwen3_5_config import read_qwen3_5_config
from infernix.models.weights import WeightFiles
from models.tiny_mtp import EPS, HEAD_DIM, HEADS, KV_HEADS, ROTARY, THETA, predictor_tensors
from models.tiny_qwen3_5 import HIDDEN, load_qwen3_5, random_tokens, rewrite_tensors, tiny_qwen3_5

CLOSE = {"atol": 1e-4, "rtol": 1e-4}


class Reference:
    """The predictor over a whole sequence at once, in float64."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        self._tensors = {name.removeprefix("mtp."): tensor.double() for name, tensor in tensors.items()}

    def hidden(self, embedded: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """h' at every position, [T, hidden]."""
        stem = torch.cat(
            (self._norm(embedded.double(), "pre_fc_norm_embedding"), self._norm(hidden.double(), "pre_fc_norm_hidden")),
            dim=-1,
        )
        x = stem @ self._tensors["fc.weight"].T
        x = x + self._attention(self._norm(x, "layers.0.input_layernorm"))
        x = x + self._feed_forward(self._norm(x, "layers.0.post_attention_layernorm"))
        return self._norm(x, "norm")

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return x / (x.square().mean(dim=-1, keepdim=True) + EPS).sqrt() * (1 + self._tensors[f"{name}.weight"])

    def _attention(self, x: torch.Tensor) -> torch.Tensor:
        t = {name: self._tensors[f"layers.0.self_attn.{name}_proj.weight"] for name in "qkvo"}
        q_gate = (x @ t["q"].T).view(len(x), HEADS, 2, HEAD_DIM)
        q = self._norm(q_gate[:, :, 0], "layers.0.self_attn.q_norm")
        k = self._norm((x @ t["k"].T).view(len(x), KV_HEADS, HEAD_DIM), "layers.0.self_attn.k_norm")
        v = (x @ t["v"].T).view(len(x), KV_HEADS, HEAD_DIM)
        given = torch.zeros(len(x), HEADS, HEAD_DIM, dtype=torch.float64)
        for place in range(len(x)):
            for head in range(HEADS):
                source = head // (HEADS // KV_HEADS)
                query = rotated(q[place, head], place)
                scores = torch.stack([query @ rotated(k[past, source], past) for past in range(place + 1)])
                weights = torch.softmax(scores / math.sqrt(HEAD_DIM), dim=0)
                given[place, head] = weights @ v[: place + 1, source]
        return (given * torch.sigmoid(q_gate[:, :, 1])).flatten(1) @ t["o"].T

    def _feed_forward(self, x: torch.Tensor) -> torch.Tensor:
        t = {name.removeprefix("layers.0.mlp."): value for name, value in self._tensors.items() if ".mlp." in name}
        if "gate_proj.weight" in t:
            return gated(x, t["gate_proj.weight"], t["up_proj.weight"], t["down_proj.weight"])
        shared = gated(
            x,
            t["shared_expert.gate_proj.weight"],
            t["shared_expert.up_proj.weight"],
            t["shared_expert.down_proj.weight"],
        )
        total = torch.sigmoid(x @ t["shared_expert_gate.weight"].T) * shared
        for place, probabilities in enumerate(torch.softmax(x @ t["gate.weight"].T, dim=-1)):
            best = sorted(range(6), key=lambda expert: -float(probabilities[expert]))[:2]
            for expert in best:
                gate, up = t["experts.gate_up_proj"][expert].chunk(2)
                weight = probabilities[expert] / probabilities[best].sum()
                total[place] += weight * gated(x[place], gate, up, t["experts.down_proj"][expert])
        return total


def gated(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    inner = x @ gate.T
    return (inner / (1 + torch.exp(-inner)) * (x @ up.T)) @ down.T


def rotated(head: torch.Tensor, position: int) -> torch.Tensor:
    result = head.clone()
    for pair in range(ROTARY // 2):
        angle = position * THETA ** (-2 * pair / ROTARY)
        first, second = float(head[pair]), float(head[pair + ROTARY // 2])
        result[pair] = first * math.cos(angle) - second * math.sin(angle)
        result[pair + ROTARY // 2] = second * math.cos(angle) + first * math.sin(angle)
    return result


def write_checkpoint(directory: Path, extra: dict[str, torch.Tensor], **changes: Any) -> None:
    tiny_qwen3_5(**changes).save_pretrained(directory)
    rewrite_tensors(directory, lambda tensors: tensors | extra)


def load_predictor(directory: Path) -> tuple[Qwen35Model, MtpPredictor]:
    model = load_qwen3_5(directory)
    config = read_qwen3_5_config(read_json_object(directory / "config.json"), directory / "config.json")
    weights = WeightFiles(directory, dtype=torch.float32, device=torch.device("cpu"))
    return model, MtpPredictor(config, weights, model)


@pytest.mark.parametrize("experts", [False, True])
def test_agrees_with_the_formulas_in_every_split(experts: bool, tmp_path: Path) -> None:
    tensors = predictor_tensors(experts=experts)
    write_checkpoint(tmp_path, tensors, experts=experts)
    model, predictor = load_predictor(tmp_path)
    tokens = random_tokens(31)
    hidden = model.forward_features([ModelRow(tokens[:30], model.new_cache(30), 0)]).hidden
    following = tokens[1:]
    expected = Reference(tensors).hidden(model.embed(torch.tensor(following)), hidden).float()
    assert expected.std() > 0.3

    pool = predictor.new_pool(256)
    for split in ([30], [1] * 30, [12, 1, 1, 9, 7]):
        cache, parts, begin = pool.new_cache(30), [], 0
        for size in split:
            part = slice(begin, begin + size)
            parts.append(predictor.forward_rows([MtpRow(following[part], hidden[part], cache)]))
            begin += size
        torch.testing.assert_close(torch.cat(parts), expected, **CLOSE)
        cache.release()


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> tuple[Qwen35Model, MtpPredictor]:
    directory = tmp_path_factory.mktemp("mtp")
    write_checkpoint(directory, predictor_tensors(experts=False))
    return load_predictor(directory)


def test_a_chain_of_drafts_and_its_alignment(predictor: tuple[Qwen35Model, MtpPredictor]) -> None:
    """Drafts chain on the predictor's own states; after verification the same positions are read again, with the
    model's states, and nothing of the chain is left.
    """
    model, mtp = predictor
    reference = Reference(predictor_tensors(experts=False))
    prompt, drafts, accepted = random_tokens(12), [40, 41, 42], [40, 50]
    target = model.new_cache(40)
    hidden = model.forward_features([ModelRow(prompt, target, 0)]).hidden
    cache = mtp.new_pool(64).new_cache(40)
    given = mtp.forward_rows([MtpRow([*prompt[1:], 30], hidden, cache)])[-1:]
    chain = [given]
    for draft in drafts[:2]:
        chain.append(mtp.forward_rows([MtpRow([draft], chain[-1], cache)]))
    inputs = torch.tensor([*prompt[1:], 30, 40, 41])
    states = torch.cat((hidden, *chain[:-1]))
    torch.testing.assert_close(torch.cat(chain), reference.hidden(model.embed(inputs), states)[-3:].float(), **CLOSE)

    # Verified: 30 was the anchor, 40 was right, 50 came instead of 41.
    cache.truncate(12)
    verified = model.forward_features([ModelRow([30, *drafts], target, 4)]).hidden[:2]
    aligned = mtp.forward_rows([MtpRow(accepted, verified, cache)])
    inputs = torch.tensor([*prompt[1:], 30, *accepted])
    expected = reference.hidden(model.embed(inputs), torch.cat((hidden, verified)))[-2:].float()
    torch.testing.assert_close(aligned, expected, **CLOSE)
    assert cache.num_tokens == 14


def test_rows_of_different_lengths(predictor: tuple[Qwen35Model, MtpPredictor]) -> None:
    model, mtp = predictor
    pool = mtp.new_pool(256)
    rows, expected = [], []
    for place, (before, new) in enumerate([(4, 1), (0, 6), (9, 3), (40, 1)]):
        tokens = random_tokens(before + new + 1, 11 * place)
        hidden = model.forward_features([ModelRow(tokens[:-1], model.new_cache(60), 0)]).hidden
        cache = pool.new_cache(60)
        if before:
            mtp.forward_rows([MtpRow(tokens[1 : before + 1], hidden[:before], cache)])
        rows.append(MtpRow(tokens[before + 1 :], hidden[before:], cache))
        expected.append(mtp.forward_rows([MtpRow(tokens[1:], hidden, mtp.new_pool(60).new_cache(60))])[before:])
    torch.testing.assert_close(mtp.forward_rows(rows), torch.cat(expected), **CLOSE)


def test_impossible_rows_are_refused(predictor: tuple[Qwen35Model, MtpPredictor]) -> None:
    _, mtp = predictor
    cache = mtp.new_pool(64).new_cache(2)
    for tokens, num_states in (([], 0), ([1], 2)):
        with pytest.raises(ValueError, match="hidden states"):
            mtp.forward_rows([MtpRow(tokens, torch.zeros(num_states, HIDDEN), cache)])
    with pytest.raises(ValueError, match="no room for 3 tokens after 0 of 2"):
        mtp.forward_rows([MtpRow([1, 2, 3], torch.zeros(3, HIDDEN), cache)])
    row = MtpRow([1], torch.zeros(1, HIDDEN), cache)
    with pytest.raises(ValueError, match="a cache of its own"):
        mtp.forward_rows([row, row])
    assert cache.num_tokens == 0


def test_a_checkpoint_without_a_predictor(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, {})
    with pytest.raises(ModelLoadError, match="has no multi-token predictor"):
        load_predictor(tmp_path)


def test_every_wrong_tensor_is_named(tmp_path: Path) -> None:
    tensors = predictor_tensors(experts=False)
    del tensors["mtp.norm.weight"]
    tensors["mtp.fc.weight"] = torch.ones(HIDDEN, HIDDEN)
    tensors["mtp.layers.1.input_layernorm.weight"] = torch.ones(HIDDEN)
    tensors["mtp.embed_tokens.weight"] = torch.ones(3, HIDDEN)
    write_checkpoint(tmp_path, tensors)
    with pytest.raises(ModelLoadError) as caught:
        load_predictor(tmp_path)
    message = str(caught.value)
    assert "'mtp.norm.weight' is missing" in message
    assert "'mtp.fc.weight' has shape [48, 48], expected [48, 96]" in message
    assert "'mtp.layers.1.input_layernorm.weight' is beyond the one layer" in message
    assert "'mtp.embed_tokens.weight' is an embedding of the predictor's own" in message
