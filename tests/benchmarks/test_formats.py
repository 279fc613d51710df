"""The benchmark of number formats, on a tiny network."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from models.tiny import VOCAB_SIZE, tiny_model

from benchmarks import formats
from infernix.models.directory import ModelDirectory
from infernix.models.linear import MatrixFormat
from infernix.models.llama import LlamaModel
from infernix.models.weights import WeightFiles

TEXTS = [[(7 * place + text) % VOCAB_SIZE for place in range(40)] for text in range(3)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LlamaModel]:
    directory: Path = tmp_path_factory.mktemp("llama")
    tiny_model("llama", max_position_embeddings=1024).save_pretrained(directory)
    config = ModelDirectory(directory).model_config()
    return {
        name: LlamaModel(
            config,
            WeightFiles(directory, dtype=torch.float32, device=torch.device("cpu"), matrix_format=matrix_format),
        )
        for name, matrix_format in {"float32": MatrixFormat.OWN, "int8": MatrixFormat.INT8}.items()
    }


def test_a_model_is_at_no_distance_from_itself(models: dict[str, LlamaModel]) -> None:
    found = formats.distance(models["float32"], models["float32"], TEXTS)
    assert (found.num_positions, found.greedy_agreement, found.mean_divergence) == (120, 1.0, 0.0)
    laws = formats.log_laws(models["float32"], TEXTS[0])
    assert torch.allclose(laws.exp().sum(dim=-1), torch.ones(40, dtype=torch.float64))


def test_the_distance_is_that_of_the_laws(models: dict[str, LlamaModel]) -> None:
    found = formats.distance(models["float32"], models["int8"], TEXTS)
    divergences, losses = [], []
    for tokens in TEXTS:
        exact, rounded = (
            torch.softmax(model.forward(tokens, model.new_cache(40), 40).double(), dim=-1) for model in models.values()
        )
        for place in range(40):
            divergences.append(sum(p * (p / q).log() for p, q in zip(exact[place], rounded[place], strict=True)))
            if place < 39:
                losses.append(-rounded[place, tokens[place + 1]].log())
    assert found.mean_divergence == pytest.approx(float(sum(divergences)) / 120, rel=1e-6)
    assert found.log_loss == pytest.approx(float(sum(losses)) / 117, rel=1e-6)
    assert 0.0 < found.mean_divergence < 0.05
    assert 0.5 < found.greedy_agreement < 1.0


def test_every_format_is_a_record(
    models: dict[str, LlamaModel], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = SimpleNamespace(encode=lambda text, allow_special: [ord(letter) % VOCAB_SIZE for letter in text[:50]])
    monkeypatch.setattr(formats, "DTYPES", tuple(models))

    def open_model(*, dtype: str, device: str) -> Any:
        assert device == "cpu"
        return SimpleNamespace(model=models[dtype], tokenizer=tokenizer)

    monkeypatch.setattr(formats, "open_model", open_model)
    assert formats.main(["--quick", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["dtype"] for row in rows] == ["float32", "int8"]
    assert all(row[f"tokens_per_second_batch_{batch}"] > 0 for row in rows for batch in (1, 8))
    assert all(row["prefill_512_seconds"] > 0 for row in rows)
    assert [row["greedy_agreement"] == 1.0 for row in rows] == [True, False]
    assert formats.main(["--quick"]) == 0
    assert "dtype int8  tokens_per_second_batch_1 " in capsys.readouterr().out
