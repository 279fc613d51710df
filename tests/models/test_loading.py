"""Opening a directory: what is read from which file, and what a broken directory says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from frontend.tokenizer_files import byte_level

from infernix.errors import InvalidPrompt, ModelLoadError
from infernix.models import open_model
from infernix.models.linear import MatrixFormat
from infernix.models.loading import _choose_dtype
from models.tiny import reference_logits, tiny_model
from support.rendering import rendered

TOKENIZER = byte_level()
VOCAB_SIZE = 3 + 256 + 6
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "tiny-llama"
    tiny_model("llama", vocab_size=VOCAB_SIZE + 7).save_pretrained(path)
    (path / "tokenizer.json").write_text(TOKENIZER)
    write(path, "tokenizer_config.json", {"bos_token": {"content": "<|user|>"}, "chat_template": TEMPLATE})
    write(path, "generation_config.json", {"eos_token_id": 0, "top_k": 20, "top_p": 0.8, "temperature": 0.7})
    return path


@pytest.fixture
def directory(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "tiny-llama"))


def write(directory: Path, name: str, document: Any) -> None:
    (directory / name).write_text(json.dumps(document))


def change(directory: Path, name: str, **changes: Any) -> None:
    write(directory, name, json.loads((directory / name).read_bytes()) | changes)


def test_opens_a_directory(directory: Path) -> None:
    loaded = open_model(str(directory))
    assert loaded.name == "tiny-llama"
    assert loaded.tokenizer.eos_ids == loaded.tokenizer.vocabulary().eos_ids == {0}
    assert loaded.tokenizer.num_tokens == VOCAB_SIZE
    assert loaded.model.num_logits == VOCAB_SIZE + 7
    defaults = loaded.sampling_defaults
    assert (defaults.temperature, defaults.top_k, defaults.top_p, defaults.min_p) == (0.7, 20, 0.8, 0.0)
    assert rendered(loaded.template, [{"role": "user", "content": "ab"}]) == [1, 260]


def test_sharded_directory_gives_the_same_logits(directory: Path) -> None:
    reference = tiny_model("llama", vocab_size=VOCAB_SIZE + 7)
    (directory / "model.safetensors").unlink()
    reference.save_pretrained(directory, max_shard_size="60KB")
    assert len(list(directory.glob("model-*.safetensors"))) > 1
    model = open_model(directory).model
    logits = model.forward([1, 2, 3], model.new_cache(3), 3)
    torch.testing.assert_close(logits, reference_logits(reference, [1, 2, 3]), atol=1e-4, rtol=1e-4)


def test_number_format_can_be_chosen(directory: Path) -> None:
    tokens = list(range(1, 41))

    def logits(dtype: str) -> torch.Tensor:
        model = open_model(directory, dtype=dtype).model
        return model.forward(tokens, model.new_cache(40), 40)

    exact = logits("auto")
    assert torch.equal(logits("float32"), exact)
    for dtype, tolerance in {"bfloat16": 0.05, "float16": 0.002, "int8": 0.1}.items():
        difference = (logits(dtype) - exact).std() / exact.std()
        assert 0.0 < difference < tolerance, dtype
    with pytest.raises(ValueError, match="dtype 'int4' is not one of auto, float32, bfloat16, float16, int8"):
        open_model(directory, dtype="int4")


def test_on_a_gpu_formats_are_those_of_everything() -> None:
    config = SimpleNamespace(stored_dtype="bfloat16")
    gpu = torch.device("cuda")
    assert _choose_dtype("auto", gpu, config) == (torch.bfloat16, MatrixFormat.OWN)  # type: ignore[arg-type]
    assert _choose_dtype("float16", gpu, config) == (torch.float16, MatrixFormat.OWN)  # type: ignore[arg-type]
    with pytest.raises(ModelLoadError, match="'int8' is for CPUs, not for cuda"):
        _choose_dtype("int8", gpu, config)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("device", "message"), [("abacus", "'abacus' is unknown"), ("meta", "'meta' is not supported")]
)
def test_unusable_device(directory: Path, device: str, message: str) -> None:
    with pytest.raises(ModelLoadError, match=message):
        open_model(directory, device=device)


def test_end_tokens_fall_back_to_the_other_files(directory: Path) -> None:
    write(directory, "generation_config.json", {})
    change(directory, "config.json", eos_token_id=[1, 2])
    assert open_model(directory).tokenizer.eos_ids == {1, 2}
    change(directory, "config.json", eos_token_id=None)
    change(directory, "tokenizer_config.json", eos_token="<|assistant|>")
    assert open_model(directory).tokenizer.eos_ids == {2}
    change(directory, "tokenizer_config.json", eos_token=None)
    with pytest.raises(ModelLoadError, match="no end-of-sequence token: neither"):
        open_model(directory)


def test_greedy_by_default_where_the_model_says_so(directory: Path) -> None:
    change(directory, "generation_config.json", do_sample=False)
    assert open_model(directory).sampling_defaults.temperature == 0.0


def test_template_file_comes_before_the_template_in_the_config(directory: Path) -> None:
    (directory / "chat_template.jinja").write_text("<|end|>{{ messages[0].content }}")
    assert rendered(open_model(directory).template, [{"role": "user", "content": "ab"}]) == [0, 260]


def test_named_templates(directory: Path) -> None:
    named = [{"name": "rag", "template": "x"}, {"name": "default", "template": "<|user|>"}]
    change(directory, "tokenizer_config.json", chat_template=named)
    assert rendered(open_model(directory).template, [{"role": "user", "content": "ab"}]) == [1]


def test_directory_without_a_template_takes_raw_prompts_only(directory: Path) -> None:
    (directory / "tokenizer_config.json").unlink()
    (directory / "generation_config.json").unlink()
    change(directory, "config.json", eos_token_id=0)
    loaded = open_model(directory)
    with pytest.raises(InvalidPrompt, match="no chat template"):
        rendered(loaded.template, [{"role": "user", "content": "ab"}])
    prompt = loaded.tokenizer.encode_prompt("ab")
    assert loaded.model.forward(prompt, loaded.model.new_cache(9)).isfinite().all()
    assert loaded.sampling_defaults.temperature == 1.0


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_missing_file_is_named(directory: Path, name: str) -> None:
    (directory / name).unlink()
    with pytest.raises(ModelLoadError, match=f"{name}: .*missing"):
        open_model(directory)


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json"])
def test_broken_json_is_named(directory: Path, name: str) -> None:
    (directory / name).write_text('{"a": ')
    with pytest.raises(ModelLoadError, match=f"{name}: not "):
        open_model(directory)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("config.json", {"architectures": ["GPT2LMHeadModel"]}, "'GPT2LMHeadModel' is not supported"),
        ("config.json", {"hidden_size": 96}, r"model\.safetensors: tensor 'model\.embed_tokens\.weight' has shape"),
        ("config.json", {"num_hidden_layers": 4}, r"tensor 'model\.layers\.3\.input_layernorm\.weight' is missing"),
        ("config.json", {"attention_bias": True}, r"tensor 'model\.layers\.0\.self_attn\.q_proj\.bias' is missing"),
        ("config.json", {"vocab_size": 200}, r"tokenizer\.json: token id 264 has no row in an embedding of 200"),
        ("generation_config.json", {"temperature": -1}, r"generation_config\.json: temperature: -1 is outside"),
        ("generation_config.json", {"top_k": "all"}, r"generation_config\.json: top_k: expected an integer"),
        ("generation_config.json", {"eos_token_id": "0"}, r"generation_config\.json: eos_token_id: expected an id"),
        ("generation_config.json", {"eos_token_id": []}, r"generation_config\.json: eos_token_id: expected an id"),
        ("generation_config.json", {"eos_token_id": 5000}, r"tokenizer\.json: the end-of-sequence token 5000"),
        ("tokenizer_config.json", {"chat_template": 3}, r"tokenizer_config\.json: chat_template: expected a text"),
        ("tokenizer_config.json", {"chat_template": "{% if %}"}, "chat template: Expected an expression"),
    ],
)
def test_bad_content_is_named(directory: Path, name: str, changes: dict[str, Any], message: str) -> None:
    change(directory, name, **changes)
    with pytest.raises(ModelLoadError, match=message):
        open_model(directory)


def test_place_that_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="absent: no such model directory"):
        open_model(tmp_path / "absent")
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelLoadError, match=r"model\.gguf: not a directory"):
        open_model(tmp_path / "model.gguf")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, 5, b"x", ""])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(ModelLoadError, match=r"model|cannot be opened"):
        open_model(path)


def test_layers_beyond_the_config_are_refused(directory: Path) -> None:
    change(directory, "config.json", num_hidden_layers=2)
    with pytest.raises(ModelLoadError, match=r"'model.layers.2.*' is beyond the 2 layers"):
        open_model(directory)


def test_a_device_that_is_no_name(directory: Path) -> None:
    with pytest.raises(ModelLoadError, match="device None is unknown"):
        open_model(directory, device=None)  # type: ignore[arg-type]
