"""Many tensors at once: what is wrong is named together, and nothing is allocated before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from infernix.errors import ModelLoadError
from infernix.models.tensor_reader import TensorReader, read_checked
from infernix.models.weights import WeightFiles
from models.tiny_qwen3_5 import load_qwen3_5, rewrite_config, tiny_qwen3_5


@pytest.fixture
def weights(tmp_path: Path) -> WeightFiles:
    save_file(
        {"a": torch.ones(2, 3), "b": torch.full((4, 3), 2.0), "n": torch.zeros(3)}, tmp_path / "model.safetensors"
    )
    return WeightFiles(tmp_path, dtype=torch.float32, device=torch.device("cpu"))


def test_the_second_reading_is_in_earnest(weights: WeightFiles) -> None:
    read: list[Any] = []

    def take(reader: TensorReader) -> None:
        read.append((reader.tensor("a", 2, 3), reader.offset_norm("n", 3), reader.stacked({"a": 2, "b": 4}, 3)))

    read_checked(weights, take)
    (rehearsed, *_), (tensor, norm, stacked) = read
    assert rehearsed.is_meta
    assert torch.equal(tensor, torch.ones(2, 3))
    assert torch.equal(norm, torch.ones(3))
    assert torch.equal(stacked(torch.ones(1, 3)), torch.tensor([[3.0, 3, 6, 6, 6, 6]]))


def test_all_problems_come_in_one_error_and_nothing_is_read(weights: WeightFiles) -> None:
    calls = []

    def take(reader: TensorReader) -> None:
        calls.append(reader)
        reader.tensor("a", 3, 2)
        reader.linear("c", 10**7, 10**7)
        reader.refuse_from("n", "is not expected")

    with pytest.raises(ModelLoadError) as caught:
        read_checked(weights, take)
    assert len(calls) == 1
    message = str(caught.value)
    assert "tensor 'a' has shape [2, 3], expected [3, 2]; " in message
    assert "tensor 'c' is missing; " in message
    assert message.endswith("tensor 'n' is not expected")


def test_a_long_list_of_problems_is_cut(weights: WeightFiles) -> None:
    names = []

    def take(reader: TensorReader) -> None:
        for index in range(10**9):
            names.append(index)
            reader.tensor(f"x{index}", 1)

    with pytest.raises(ModelLoadError, match=r"'x0' is missing; .*'x19' is missing; the rest was not looked at$"):
        read_checked(weights, take)
    assert len(names) == 20


def test_in_earnest_the_first_problem_raises(weights: WeightFiles) -> None:
    reader = TensorReader(weights)
    with pytest.raises(ModelLoadError, match="'c' is missing"):
        reader.tensor("c", 1)
    with pytest.raises(ModelLoadError, match="'n' is not expected"):
        reader.refuse_from("n", "is not expected")


@pytest.mark.parametrize(
    "changes",
    [
        {"num_hidden_layers": 1000, "layer_types": None},
        {"hidden_size": 10**12},
        {"hidden_size": 10**30},
        {"vocab_size": 10**18, "hidden_size": 10**18},
        {"intermediate_size": 10**11},
        {"linear_num_value_heads": 10**9, "linear_num_key_heads": 10**9},
        {"linear_conv_kernel_dim": 10**10},
        {"head_dim": 10**10},
        {"num_attention_heads": 10**13, "num_key_value_heads": 10**13},
    ],
)
def test_a_wild_config_is_refused_at_once(changes: dict[str, Any], tmp_path: Path) -> None:
    tiny_qwen3_5().save_pretrained(tmp_path)
    rewrite_config(tmp_path, lambda config: config | changes)
    with pytest.raises(ModelLoadError):
        load_qwen3_5(tmp_path)
