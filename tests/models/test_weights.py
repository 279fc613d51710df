"""Weight files that are whole, sharded, missing, cut short or wrong."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from infernix.errors import ModelLoadError
from infernix.models.weights import WeightFiles


def open_weights(directory: Path, dtype: torch.dtype = torch.float32) -> WeightFiles:
    return WeightFiles(directory, dtype=dtype, device=torch.device("cpu"))


def write_single(directory: Path) -> Path:
    path = directory / "model.safetensors"
    save_file({"a": torch.arange(6.0).reshape(2, 3), "ids": torch.arange(4)}, path)
    return path


def write_shards(directory: Path, weight_map: dict[str, Any] | None = None) -> Path:
    save_file({"a": torch.ones(2)}, directory / "one.safetensors")
    save_file({"b": torch.zeros(3)}, directory / "two.safetensors")
    index = directory / "model.safetensors.index.json"
    default = {"a": "one.safetensors", "b": "two.safetensors"}
    index.write_text(json.dumps({"metadata": {}, "weight_map": default if weight_map is None else weight_map}))
    return index


def test_reads_a_tensor(tmp_path: Path) -> None:
    write_single(tmp_path)
    weights = open_weights(tmp_path)
    assert "a" in weights
    assert "b" not in weights
    assert torch.equal(weights.tensor("a", (2, 3)), torch.tensor([[0.0, 1, 2], [3, 4, 5]]))


def test_converts_to_the_wanted_format(tmp_path: Path) -> None:
    write_single(tmp_path)
    assert open_weights(tmp_path, torch.bfloat16).tensor("a", (2, 3)).dtype == torch.bfloat16


def test_reads_shards_by_the_index(tmp_path: Path) -> None:
    write_shards(tmp_path)
    weights = open_weights(tmp_path)
    assert torch.equal(weights.tensor("a", (2,)), torch.ones(2))
    assert torch.equal(weights.tensor("b", (3,)), torch.zeros(3))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"model\.safetensors: weight file is missing"):
        open_weights(tmp_path)


def test_missing_shard(tmp_path: Path) -> None:
    write_shards(tmp_path)
    (tmp_path / "two.safetensors").unlink()
    with pytest.raises(ModelLoadError, match=r"two\.safetensors: weight file is missing"):
        open_weights(tmp_path)


@pytest.mark.parametrize("keep", [0, 4, 8, 30, -1, -20])
def test_truncated_file(tmp_path: Path, keep: int) -> None:
    path = write_single(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelLoadError, match=r"model\.safetensors: not a whole safetensors file"):
        open_weights(tmp_path)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<Q", 2**62) + b"{}",
        struct.pack("<Q", 200) + b"{}",
        struct.pack("<Q", 4) + b"{{{{",
        b"version https://git-lfs.github.com/spec/v1\n",
    ],
    ids=["huge header length", "header beyond the file", "header is no JSON", "pointer file"],
)
def test_corrupt_header(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(ModelLoadError, match=r"model\.safetensors: not a whole safetensors file"):
        open_weights(tmp_path)


def test_missing_tensor_is_named(tmp_path: Path) -> None:
    write_single(tmp_path)
    with pytest.raises(ModelLoadError, match=r"model\.safetensors: tensor 'b' is missing"):
        open_weights(tmp_path).tensor("b", (1,))


def test_wrong_shape_is_named(tmp_path: Path) -> None:
    write_single(tmp_path)
    with pytest.raises(ModelLoadError, match=r"tensor 'a' has shape \[2, 3\], expected \[3, 2\]"):
        open_weights(tmp_path).tensor("a", (3, 2))


def test_integer_weights_are_refused(tmp_path: Path) -> None:
    write_single(tmp_path)
    with pytest.raises(ModelLoadError, match=r"tensor 'ids' has the unsupported format torch\.int64"):
        open_weights(tmp_path).tensor("ids", (4,))


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        ({}, "weight_map: expected an object"),
        ([], "weight_map: expected an object"),
        ({"a": "one.safetensors", "b": "../two.safetensors"}, "tensor 'b' is in '../two.safetensors'"),
        ({"a": 1}, "tensor 'a' is in 1"),
        ({"a": "one.safetensors", "c": "two.safetensors"}, "tensor 'b' of two.safetensors is not named"),
    ],
)
def test_bad_index(tmp_path: Path, weight_map: Any, message: str) -> None:
    write_shards(tmp_path, weight_map)
    with pytest.raises(ModelLoadError, match=r"index\.json: ") as caught:
        open_weights(tmp_path)
    assert message in str(caught.value)


def test_index_that_names_an_absent_tensor(tmp_path: Path) -> None:
    write_shards(tmp_path, {"a": "one.safetensors", "b": "two.safetensors", "c": "one.safetensors"})
    with pytest.raises(ModelLoadError, match=r"one\.safetensors: tensor 'c' cannot be read"):
        open_weights(tmp_path).tensor("c", (1,))


def test_index_that_is_no_json(tmp_path: Path) -> None:
    write_shards(tmp_path).write_text('{"weight_map": \n{')
    with pytest.raises(ModelLoadError, match=r"index\.json: not JSON: .* line 2"):
        open_weights(tmp_path)
