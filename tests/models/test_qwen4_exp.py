"""Our execution of Qwen3.8-Flash-Next against transformers' own, over whole sequences from scratch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from infernix.errors import ModelLoadError
from infernix.models import qwen4_exp_pass
from infernix.models.linear import MatrixFormat
from infernix.models.model import ModelRow
from infernix.models.qwen4_exp import Qwen4ExpModel
from infernix.models.qwen4_exp_config import read_qwen4_exp_config
from infernix.models.registry import build_model, read_any_config
from infernix.models.weights import WeightFiles
from models.tiny import load as load_llama
from models.tiny import reference_logits, tiny_model
from models.tiny_qwen3_5 import rewrite_config, rewrite_tensors
from models.tiny_qwen4_exp import END, SIZES, VOCAB_SIZE, load_qwen4_exp, random_tokens, tiny_qwen4_exp

RECURRENT, INDEXED = "linear_attention", "indexed_attention"
VARIANTS: dict[str, dict[str, Any]] = {
    "as released": {},
    "tied": {"tie_word_embeddings": True},
    "n-grams in two layers": {"ple_layer_ids": [1, 3], "ngram_vocab_size_base": 20},
    "bigrams, a short convolution": {"ngram_size": 2, "ple_conv_kernel_size": 2},
    "no n-grams": {"ple_layer_ids": []},
    "another gate": {"output_gate_type": "silu"},
    "attention only": {"layer_types": [INDEXED] * 4, "ple_layer_ids": []},
    "one block attended to": {"indexer_budget": 4, "layer_types": [RECURRENT, RECURRENT, INDEXED, INDEXED]},
    "one column": {"linear_conv_kernel_dim": 1},
    "all experts": {"num_experts": 3, "num_experts_per_tok": 3},
}
# Ends of texts next to each other, behind one another and at every kind of place among chunks.
TOKENS = [END if place % 17 in (3, 4, 9) else token for place, token in enumerate(random_tokens(110))]
CLOSE = {"atol": 2e-4, "rtol": 2e-4}
NGRAMS = "model.layers.1.ple.ple_embedding."


@pytest.mark.parametrize("variant", VARIANTS)
def test_agrees_with_transformers(variant: str, tmp_path: Path) -> None:
    reference = tiny_qwen4_exp(**VARIANTS[variant])
    reference.save_pretrained(tmp_path)
    expected = reference_logits(reference, TOKENS)
    assert expected.std() > 0.2, "logits without contrast would agree with anything"

    model = load_qwen4_exp(tmp_path)

    whole = model.forward(TOKENS, model.new_cache(110), 110)
    torch.testing.assert_close(whole, expected, **CLOSE)
    cache = model.new_cache(50)
    single = torch.cat([model.forward([token], cache) for token in TOKENS[:50]])
    torch.testing.assert_close(single, expected[:50], **CLOSE)
    cache = model.new_cache(110)
    chunks = torch.cat([model.forward(TOKENS[at : at + 40], cache, 10) for at in (0, 40, 80)])
    rows = [row for at in (40, 80, 110) for row in range(at - 10, at)]
    torch.testing.assert_close(chunks, expected[rows], **CLOSE)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("qwen4_exp")
    tiny_qwen4_exp().save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def model(directory: Path) -> Qwen4ExpModel:
    return load_qwen4_exp(directory)


def test_rows_of_a_batch_do_not_touch_each_other(model: Qwen4ExpModel) -> None:
    lengths = [(5, 1), (3, 9), (0, 70), (40, 33), (20, 2)]
    sequences = [random_tokens(before + new, 13 * place) for place, (before, new) in enumerate(lengths)]
    pool = model.new_pool(512, len(lengths))
    rows = []
    for (before, new), tokens in zip(lengths, sequences, strict=True):
        cache = pool.new_cache(len(tokens))
        if before:
            model.forward(tokens[:before], cache, 0)
        rows.append(ModelRow(tokens[before:], cache, new))
    together = model.forward_rows(rows).split([new for _, new in lengths])
    for (_, new), tokens, logits in zip(lengths, sequences, together, strict=True):
        alone = model.forward(tokens, model.new_cache(len(tokens)), new)
        torch.testing.assert_close(logits, alone, **CLOSE)


def test_verification_columns_agree_with_transformers_whatever_was_taken_back(model: Qwen4ExpModel) -> None:
    """Rounds of K + 1 columns of which some are kept, against whole sequences from scratch."""
    reference = tiny_qwen4_exp()
    pool = model.new_pool(512, 2)
    histories = [TOKENS[:20], TOKENS[30:61]]
    caches = [pool.new_cache(110) for _ in histories]
    model.forward_rows([ModelRow(tokens, cache, 0) for tokens, cache in zip(histories, caches, strict=True)])
    for num_drafts, num_kept in ((3, 2), (7, 8), (1, 1), (15, 4), (5, 3)):
        drafts = [random_tokens(num_drafts + 1, len(history)) for history in histories]
        rows = [ModelRow(tokens, cache, len(tokens)) for tokens, cache in zip(drafts, caches, strict=True)]
        logits = model.forward_rows(rows).split(num_drafts + 1)
        for history, tokens, ours in zip(histories, drafts, logits, strict=True):
            expected = reference_logits(reference, [*history, *tokens])[-num_drafts - 1 :]
            torch.testing.assert_close(ours, expected, **CLOSE)
        histories = [[*history, *tokens[:num_kept]] for history, tokens in zip(histories, drafts, strict=True)]
        for history, cache in zip(histories, caches, strict=True):
            cache.truncate(len(history))


def test_a_long_pass_runs_in_pieces(model: Qwen4ExpModel, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = model.forward_features([ModelRow(TOKENS, model.new_cache(110), 70)])
    monkeypatch.setattr(qwen4_exp_pass, "MAX_MASK_ELEMENTS", 110 * 9)
    assert [*qwen4_exp_pass.pieces(3, 24, 110)] == [(3, 12), (12, 21), (21, 24)]
    assert [*qwen4_exp_pass.pieces(3, 5, 10_000)] == [(3, 4), (4, 5)]
    cache = model.new_cache(110)
    given = model.forward_features([ModelRow(TOKENS, cache, 70)])
    torch.testing.assert_close(given.logits, expected.logits, **CLOSE)
    torch.testing.assert_close(given.hidden, expected.hidden, **CLOSE)
    # What the pieces recorded is one pass.
    cache.truncate(50)
    fresh = model.new_cache(110)
    model.forward(TOKENS[:50], fresh)
    torch.testing.assert_close(model.forward([1, 2], cache, 2), model.forward([1, 2], fresh, 2), **CLOSE)


def test_features_are_the_streams_that_the_head_reads(model: Qwen4ExpModel) -> None:
    given = model.forward_features([ModelRow(TOKENS[:12], model.new_cache(12), 5)])
    assert given.hidden.shape == (12, model.hidden_size)
    assert given.taps is None
    torch.testing.assert_close(model.head(given.hidden[-5:]), given.logits, atol=1e-6, rtol=1e-6)
    with pytest.raises(ValueError, match="cannot be tapped"):
        model.forward_features([ModelRow([1], model.new_cache(1))], taps=(0,))


def test_what_cannot_be_run_is_refused_and_changes_nothing(model: Qwen4ExpModel, tmp_path: Path) -> None:
    pool = model.new_pool(64, 2)
    first, second = pool.new_cache(40), pool.new_cache(40)
    model.forward([1, 2, 3], first)
    for rows, message in (
        ([], "at least one row"),
        ([ModelRow([1], first), ModelRow([2], first)], "a cache of its own"),
        ([ModelRow([1], first), ModelRow([], second)], "1 rows of logits for 0 tokens"),
        ([ModelRow([1], first), ModelRow([1], second, 2)], "2 rows of logits for 1 tokens"),
        ([ModelRow([1], first), ModelRow([1] * 41, second)], "no room for 41 tokens after 0 of 40"),
    ):
        with pytest.raises(ValueError, match=message):
            model.forward_rows(rows)
        assert (first.num_tokens, second.num_tokens) == (3, 0)
    for max_tokens in (0, 513):
        with pytest.raises(ValueError, match=r"outside 1\.\.512"):
            model.new_cache(max_tokens)
    tiny_model("llama").save_pretrained(tmp_path)
    with pytest.raises(TypeError, match="expected a Qwen4ExpCache"):
        model.forward([1], load_llama(tmp_path).new_cache(3))


def test_a_pass_that_breaks_off_gives_its_state_back(model: Qwen4ExpModel) -> None:
    pool = model.new_pool(64, 2)
    first, second = pool.new_cache(20), pool.new_cache(20)
    model.forward([1, 2, 3], first)
    for _ in range(5):
        with pytest.raises(IndexError):
            model.forward_rows([ModelRow([4], first), ModelRow([VOCAB_SIZE], second)])
    assert (first.num_tokens, second.num_tokens) == (3, 0)
    expected = model.forward([1, 2, 3, 4], model.new_cache(4))
    torch.testing.assert_close(model.forward([4], first), expected, **CLOSE)


def test_a_number_that_is_none_stays_in_its_own_row(model: Qwen4ExpModel) -> None:
    pool = model.new_pool(128, 2)
    sick, healthy = pool.new_cache(20), pool.new_cache(20)
    model.forward(TOKENS[:4], sick)
    model.forward(TOKENS[:4], healthy)
    pool.states[:, sick.slot] = torch.nan
    logits = model.forward_rows([ModelRow([1, 2, 3], sick), ModelRow([4], healthy)])
    assert logits[0].isnan().any()
    expected = model.forward([*TOKENS[:4], 4], model.new_cache(5))
    torch.testing.assert_close(logits[1:], expected, **CLOSE)
    sick.release()
    later = pool.new_cache(20)
    torch.testing.assert_close(model.forward([*TOKENS[:4], 4], later), expected, **CLOSE)


def test_names_and_config_of_a_multimodal_release(tmp_path: Path) -> None:
    reference = tiny_qwen4_exp()
    reference.save_pretrained(tmp_path)
    together = {name: tensor for name, tensor in reference.state_dict().items() if ".mlp.experts." in name}
    table = reference.state_dict()[f"{NGRAMS}ngram_embedding.weight"]

    def renamed(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        kept = {name: tensor for name, tensor in tensors.items() if ".experts." not in name and ".shard_" not in name}
        kept |= together | {f"{NGRAMS}ngram_embedding.weight": table}
        return {
            name.replace("model.", "model.language_model.", 1) if name.startswith("model.") else name: tensor
            for name, tensor in kept.items()
        } | {"model.visual.patch_embed.proj.weight": torch.ones(2)}

    def nested(config: dict[str, Any]) -> dict[str, Any]:
        inner = {name: value for name, value in config.items() if name not in ("architectures", "layer_types")}
        return {
            "architectures": ["Qwen4ExpForConditionalGeneration"],
            "text_config": inner | {"layer_types": [RECURRENT] * 3 + ["full_attention"]},
            "vision_config": {},
        }

    rewrite_tensors(tmp_path, renamed)
    rewrite_config(tmp_path, nested)
    model = load_qwen4_exp(tmp_path)
    logits = model.forward(TOKENS, model.new_cache(110), 110)
    torch.testing.assert_close(logits, reference_logits(reference, TOKENS), **CLOSE)


def rewritten(directory: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> Path:
    """The directory's model with its tensors changed in place."""
    tiny_qwen4_exp().save_pretrained(directory)

    def changed(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        change(tensors)
        return tensors

    rewrite_tensors(directory, changed)
    return directory


def test_hash_constants_are_the_checkpoints_where_it_has_them(model: Qwen4ExpModel, tmp_path: Path) -> None:
    expected = model.forward(TOKENS, model.new_cache(110), 110)

    def without(tensors: dict[str, torch.Tensor]) -> None:
        for name in ("layer_multipliers", "ngram_heads_vocab_sizes", "ngram_heads_offsets"):
            del tensors[NGRAMS + name]

    computed = load_qwen4_exp(rewritten(tmp_path / "computed", without))
    assert torch.equal(computed.forward(TOKENS, computed.new_cache(110), 110), expected)
    other = load_qwen4_exp(rewritten(tmp_path / "other", lambda tensors: tensors[f"{NGRAMS}layer_multipliers"].mul_(3)))
    assert (other.forward(TOKENS, other.new_cache(110), 110) - expected).abs().max() > 0.01
    with pytest.raises(ModelLoadError, match="reach beyond 240 rows"):
        load_qwen4_exp(rewritten(tmp_path / "beyond", lambda tensors: tensors[f"{NGRAMS}ngram_heads_offsets"].add_(99)))
    with pytest.raises(ModelLoadError, match=r"layer_multipliers' has the unsupported format torch\.float32"):
        load_qwen4_exp(
            rewritten(
                tmp_path / "kind",
                lambda tensors: tensors.update({f"{NGRAMS}layer_multipliers": torch.ones(3)}),
            )
        )


def test_one_error_names_every_wrong_tensor(tmp_path: Path) -> None:
    def spoil(tensors: dict[str, torch.Tensor]) -> None:
        del tensors["model.layers.3.self_attn.indexer.k_layernorm.weight"]
        del tensors["model.layers.0.mlp.experts.2.up_proj.weight"]
        del tensors[f"{NGRAMS}ngram_embedding.shard_3.weight"]
        tensors["lm_head.weight"] = torch.ones(3, 4)
        tensors["model.layers.4.mlp.gate.weight"] = torch.ones(1)

    with pytest.raises(ModelLoadError) as caught:
        load_qwen4_exp(rewritten(tmp_path, spoil))
    for part in (
        "layers.3.self_attn.indexer.k_layernorm.weight' is missing",
        "layers.0.mlp.experts.2.up_proj.weight' is missing",
        "ngram_embedding.shard_3.weight' is missing",
        f"'lm_head.weight' has shape [3, 4], expected [{VOCAB_SIZE}, 32]",
        "layers.4.mlp.gate.weight' is beyond the 4 layers",
    ):
        assert part in caught.value.message


def test_half_precision_keeps_rates_and_states_in_float32(directory: Path, model: Qwen4ExpModel) -> None:
    half = load_qwen4_exp(directory, torch.bfloat16)
    cache = half.new_cache(60)
    logits = half.forward(TOKENS[:60], cache)
    pool = cache.pool
    assert (logits.dtype, pool.states.dtype, pool.ngram_columns.dtype, pool.kv.index_keys.dtype) == (
        torch.float32,
        torch.float32,
        torch.bfloat16,
        torch.bfloat16,
    )
    expected = model.forward(TOKENS[:60], model.new_cache(60))
    assert torch.nn.functional.cosine_similarity(logits, expected).item() > 0.98


def test_the_registry_knows_it_and_the_library_is_asked_for_by_name(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = read_any_config(
        {"architectures": ["Qwen4ExpForCausalLM"], **SIZES, "mtp_num_hidden_layers": 1}, directory / "config.json"
    )
    weights = WeightFiles(directory, dtype=torch.float32, device=torch.device("cpu"))
    assert isinstance(build_model(config, weights), Qwen4ExpModel)
    narrow = WeightFiles(directory, dtype=torch.float32, device=torch.device("cpu"), matrix_format=MatrixFormat.INT8)
    with pytest.raises(ModelLoadError, match="dtype 'int8' is not supported"):
        build_model(config, narrow)
    monkeypatch.setitem(sys.modules, "transformers.models.qwen4_exp.modeling_qwen4_exp", None)
    with pytest.raises(ModelLoadError, match=r"install infernix\[transformers\]"):
        build_model(config, weights)


def test_what_transformers_refuses_is_located(directory: Path) -> None:
    document = SIZES | {"num_experts_per_tok": 7}
    config = read_qwen4_exp_config(document, directory / "config.json")
    weights = WeightFiles(directory, dtype=torch.float32, device=torch.device("cpu"))
    with pytest.raises(ModelLoadError, match=r"config\.json: transformers refuses the config: .*num_experts_per_tok"):
        build_model(config, weights)
    config = read_qwen4_exp_config(SIZES | {"vocab_size": 1 << 62}, directory / "config.json")
    with pytest.raises(ModelLoadError, match=r"config\.json: transformers cannot lay the network out: "):
        build_model(config, weights)
