"""A Qwen3.8-Flash-Next directory through the front door, and its sequences through the Program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from frontend.tokenizer_files import byte_level

from infernix.errors import ModelLoadError
from infernix.models import LoadedModel, open_model
from models import test_qwen3_5_opened as qwen3_5
from models.tiny import reference_logits
from models.tiny_qwen4_exp import tiny_qwen4_exp

ROWS = qwen3_5.VOCAB_SIZE + 7


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("opened") / "tiny-qwen4_exp"
    tiny_qwen4_exp(vocab_size=ROWS).save_pretrained(path)
    (path / "tokenizer.json").write_text(byte_level())
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": 0}))
    return path


@pytest.fixture(scope="module")
def loaded(directory: Path) -> LoadedModel:
    return open_model(directory)


def test_opens_a_directory(directory: Path, loaded: LoadedModel) -> None:
    assert (loaded.name, loaded.model.num_logits, loaded.model.max_context) == ("tiny-qwen4_exp", ROWS, 512)
    prompt = qwen3_5.PROMPTS[1]
    logits = loaded.model.forward(prompt, loaded.model.new_cache(50), 5)
    expected = reference_logits(tiny_qwen4_exp(vocab_size=ROWS), prompt)[-5:]
    torch.testing.assert_close(logits, expected, atol=2e-4, rtol=2e-4)
    with pytest.raises(ModelLoadError, match="dtype 'float16' is not supported for this network on a CPU"):
        open_model(directory, device="cpu", dtype="float16")


def test_a_programs_sequences_go_through_everything(loaded: LoadedModel) -> None:
    """Batches, drafts, units taken back, pauses, a prefix: always the tokens of a greedy run from scratch."""
    qwen3_5.test_a_programs_sequences_go_through_everything(loaded)
