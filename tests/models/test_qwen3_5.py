"""Our Qwen3.5 against transformers' on the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from infernix.errors import ModelLoadError
from infernix.models.model import ModelRow
from infernix.models.qwen3_5 import Qwen35Model
from models.tiny import reference_logits
from models.tiny_qwen3_5 import (
    HIDDEN,
    VOCAB_SIZE,
    load_qwen3_5,
    random_tokens,
    rewrite_config,
    rewrite_tensors,
    tiny_qwen3_5,
)

VARIANTS: dict[str, dict[str, Any]] = {
    "dense": {},
    "tied": {"tie_word_embeddings": True},
    "one key head to a value head": {"linear_num_value_heads": 2},
    "no groups": {"num_key_value_heads": 4},
    "whole heads rotated": {"rope_parameters": {"rope_type": "default", "rope_theta": 5e3, "partial_rotary_factor": 1}},
    "layers named": {"layer_types": ["full_attention", "linear_attention", "linear_attention", "full_attention"]},
    "attention only": {"layer_types": ["full_attention"] * 4},
    "experts": {"experts": True},
    "experts, all chosen": {"experts": True, "num_experts": 3, "num_experts_per_tok": 3},
}
TOKENS = random_tokens(150)
CLOSE = {"atol": 2e-4, "rtol": 2e-4}


@pytest.mark.parametrize("variant", VARIANTS)
def test_agrees_with_transformers(variant: str, tmp_path: Path) -> None:
    reference = tiny_qwen3_5(**VARIANTS[variant])
    reference.save_pretrained(tmp_path)
    expected = reference_logits(reference, TOKENS)
    assert expected.std() > 0.3, "logits without contrast would agree with anything"

    model = load_qwen3_5(tmp_path)

    whole = model.forward(TOKENS, model.new_cache(150), 150)
    torch.testing.assert_close(whole, expected, **CLOSE)
    cache = model.new_cache(150)
    single = torch.cat([model.forward([token], cache) for token in TOKENS])
    torch.testing.assert_close(single, expected, **CLOSE)
    cache = model.new_cache(150)
    chunks = torch.cat([model.forward(TOKENS[at : at + 40], cache, 10) for at in range(0, 150, 40)])
    rows = [row for at in (40, 80, 120, 150) for row in range(at - 10, at)]
    torch.testing.assert_close(chunks, expected[rows], **CLOSE)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Qwen35Model:
    directory = tmp_path_factory.mktemp("qwen3_5")
    tiny_qwen3_5().save_pretrained(directory)
    return load_qwen3_5(directory)


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> Qwen35Model:
    directory = tmp_path_factory.mktemp("qwen3_5_moe")
    tiny_qwen3_5(experts=True).save_pretrained(directory)
    return load_qwen3_5(directory)


@pytest.mark.parametrize("kind", ["model", "experts"])
def test_rows_of_different_lengths_do_not_touch_each_other(kind: str, request: pytest.FixtureRequest) -> None:
    model: Qwen35Model = request.getfixturevalue(kind)
    lengths = [(5, 1), (3, 9), (0, 70), (40, 33), (20, 2)]
    sequences = [random_tokens(before + new, 13 * place) for place, (before, new) in enumerate(lengths)]
    pool = model.new_pool(512, len(lengths))
    rows = []
    for (before, new), tokens in zip(lengths, sequences, strict=True):
        cache = pool.new_cache(len(tokens))
        if before:
            model.forward(tokens[:before], cache)
        rows.append(ModelRow(tokens[before:], cache, new))
    together = model.forward_rows(rows).split([new for _, new in lengths])
    for (_, new), tokens, logits in zip(lengths, sequences, together, strict=True):
        alone = model.forward(tokens, model.new_cache(len(tokens)), new)
        torch.testing.assert_close(logits, alone, **CLOSE)


def test_verification_columns_agree_with_single_steps(model: Qwen35Model) -> None:
    """K + 1 columns of a round, for several rows with other numbers of drafts, against one token after another."""
    pool = model.new_pool(512, 4)
    rows, singles = [], []
    for num_drafts in (0, 3, 7, 15):
        tokens = random_tokens(30 + num_drafts + 1, 5 * num_drafts)
        cache = pool.new_cache(len(tokens))
        model.forward(tokens[:30], cache)
        rows.append(ModelRow(tokens[30:], cache, num_drafts + 1))
        alone = model.new_cache(len(tokens))
        model.forward(tokens[:30], alone)
        singles += [model.forward([token], alone) for token in tokens[30:]]
    torch.testing.assert_close(model.forward_rows(rows), torch.cat(singles), **CLOSE)


def test_a_number_that_is_none_stays_in_its_own_row(model: Qwen35Model) -> None:
    pool = model.new_pool(128, 3)
    sick, healthy = pool.new_cache(20), pool.new_cache(20)
    model.forward(TOKENS[:4], sick)
    model.forward(TOKENS[:4], healthy)
    pool.states[:, sick.slot] = torch.nan
    logits = model.forward_rows([ModelRow([1, 2, 3], sick), ModelRow([4], healthy)])
    assert logits[0].isnan().any()
    expected = model.forward([*TOKENS[:4], 4], model.new_cache(5))
    torch.testing.assert_close(logits[1:], expected, **CLOSE)
    # Nor does it stay in the memory that another sequence takes over.
    sick.release()
    later = pool.new_cache(20)
    torch.testing.assert_close(model.forward([*TOKENS[:4], 4], later), expected, **CLOSE)


def test_hidden_states_and_taps(tmp_path: Path) -> None:
    reference = tiny_qwen3_5()
    reference.save_pretrained(tmp_path)
    model = load_qwen3_5(tmp_path)
    with torch.inference_mode():
        states = reference(torch.tensor([TOKENS[:60]]), output_hidden_states=True).hidden_states
    cache = model.new_cache(60)
    first = model.forward_features([ModelRow(TOKENS[:50], cache, 0)], taps=(2, 0))
    second = model.forward_features([ModelRow(TOKENS[50:60], cache, 2)], taps=(2, 0))
    assert first.logits.shape == (0, VOCAB_SIZE)
    assert first.taps is not None
    assert second.taps is not None
    # transformers' hidden_states: the embedding, the stream after each layer, the last one behind the final norm.
    torch.testing.assert_close(torch.cat((first.hidden, second.hidden)), states[-1][0], **CLOSE)
    expected_taps = torch.cat((states[3][0], states[1][0]), dim=-1)
    torch.testing.assert_close(torch.cat((first.taps, second.taps)), expected_taps, **CLOSE)
    torch.testing.assert_close(second.logits, model.head(second.hidden[-2:]), atol=0, rtol=0)
    assert model.forward_features([ModelRow([1], model.new_cache(1))]).taps is None
    assert model.embed(torch.tensor([[3, 4]])).shape == (1, 2, HIDDEN)


def test_names_and_config_of_a_multimodal_release(tmp_path: Path) -> None:
    reference = tiny_qwen3_5()
    reference.save_pretrained(tmp_path)

    def renamed(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        names = {name: name.replace("model.", "model.language_model.", 1) for name in tensors}
        names["lm_head.weight"] = "lm_head.weight"
        visual = {"model.visual.patch_embed.proj.weight": torch.ones(2)}
        return {names[name]: tensor for name, tensor in tensors.items()} | visual

    def nested(config: dict[str, Any]) -> dict[str, Any]:
        inner = {name: value for name, value in config.items() if name != "architectures"}
        del inner["layer_types"], inner["tie_word_embeddings"]
        return {
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "tie_word_embeddings": False,
            "text_config": inner | {"full_attention_interval": 4, "output_gate_type": "swish"},
            "vision_config": {},
        }

    rewrite_tensors(tmp_path, renamed)
    rewrite_config(tmp_path, nested)
    model = load_qwen3_5(tmp_path)
    logits = model.forward(TOKENS, model.new_cache(150), 150)
    torch.testing.assert_close(logits, reference_logits(reference, TOKENS), **CLOSE)


def test_experts_may_be_stored_as_one_tensor(tmp_path: Path) -> None:
    reference = tiny_qwen3_5(experts=True)
    reference.save_pretrained(tmp_path)
    rewrite_tensors(
        tmp_path,
        lambda tensors: (
            {name: tensor for name, tensor in tensors.items() if ".experts." not in name}
            | {name: tensor for name, tensor in reference.state_dict().items() if ".experts." in name}
        ),
    )
    model = load_qwen3_5(tmp_path)
    assert "model.layers.0.mlp.experts.gate_up_proj" in reference.state_dict()
    logits = model.forward(TOKENS[:40], model.new_cache(40), 40)
    torch.testing.assert_close(logits, reference_logits(reference, TOKENS[:40]), **CLOSE)


def test_half_precision_keeps_rates_and_states_in_float32(model: Qwen35Model, tmp_path: Path) -> None:
    tiny_qwen3_5().save_pretrained(tmp_path)
    half = load_qwen3_5(tmp_path, torch.bfloat16)
    cache = half.new_cache(60)
    logits = half.forward(TOKENS[:60], cache)
    assert (logits.dtype, cache.pool.states.dtype, cache.kv.pool.keys.dtype) == (
        torch.float32,
        torch.float32,
        torch.bfloat16,
    )
    expected = model.forward(TOKENS[:60], model.new_cache(60))
    assert torch.nn.functional.cosine_similarity(logits, expected).item() > 0.99


def test_decay_rates_are_read_in_float32_from_either_format(tmp_path: Path) -> None:
    reference = tiny_qwen3_5()
    reference.save_pretrained(tmp_path)
    exact = load_qwen3_5(tmp_path, torch.bfloat16)

    def finer(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Less than bfloat16 can tell apart."""
        return {name: value + 1e-4 * name.endswith("A_log") for name, value in tensors.items()}

    rewrite_tensors(tmp_path, finer)
    finer_model = load_qwen3_5(tmp_path, torch.bfloat16)
    states = []
    for model in (exact, finer_model):
        cache = model.new_cache(60)
        model.forward(TOKENS[:60], cache)
        states.append(cache.pool.states[0, cache.slot])
    assert not torch.equal(*states)
    torch.testing.assert_close(*states, atol=1e-3, rtol=1e-3)

    def rounded(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        names = "A_log", "dt_bias", "linear_attn.norm.weight"
        return {name: value.bfloat16() if name.endswith(names) else value for name, value in tensors.items()}

    rewrite_tensors(tmp_path, rounded)
    model = load_qwen3_5(tmp_path)
    with torch.no_grad():
        for name, parameter in reference.named_parameters():
            parameter += 1e-4 * name.endswith("A_log")
            if name.endswith(("A_log", "dt_bias", "linear_attn.norm.weight")):
                parameter.copy_(parameter.bfloat16())
    logits = model.forward(TOKENS, model.new_cache(150), 150)
    torch.testing.assert_close(logits, reference_logits(reference, TOKENS), **CLOSE)


def test_every_wrong_tensor_is_named(tmp_path: Path) -> None:
    tiny_qwen3_5().save_pretrained(tmp_path)

    def damaged(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        del tensors["model.layers.1.linear_attn.A_log"]
        tensors["model.layers.3.self_attn.q_proj.weight"] = torch.ones(64, HIDDEN)
        tensors["model.layers.4.input_layernorm.weight"] = torch.ones(HIDDEN)
        return tensors

    rewrite_tensors(tmp_path, damaged)
    with pytest.raises(ModelLoadError) as caught:
        load_qwen3_5(tmp_path)
    message = str(caught.value)
    assert "'model.layers.1.linear_attn.A_log' is missing" in message
    assert "'model.layers.3.self_attn.q_proj.weight' has shape [64, 48], expected [128, 48]" in message
    assert "'model.layers.4.input_layernorm.weight' is beyond the 4 layers" in message


def test_an_untied_model_needs_its_output_matrix(tmp_path: Path) -> None:
    tiny_qwen3_5().save_pretrained(tmp_path)
    rewrite_tensors(
        tmp_path, lambda tensors: {name: value for name, value in tensors.items() if name != "lm_head.weight"}
    )
    with pytest.raises(ModelLoadError, match=r"'lm_head\.weight' is missing"):
        load_qwen3_5(tmp_path)


def test_impossible_calls_are_refused_and_change_nothing(model: Qwen35Model) -> None:
    pool = model.new_pool(64, 2)
    cache, other = pool.new_cache(4), pool.new_cache(60)
    model.forward([1, 2, 3], cache)
    for tokens, num_rows in (([], 0), ([1], 2), ([1], -1)):
        with pytest.raises(ValueError, match="rows of logits"):
            model.forward(tokens, cache, num_rows)
    with pytest.raises(ValueError, match="no room for 2 tokens after 3 of 4"):
        model.forward_rows([ModelRow([9], other), ModelRow([4, 5], cache)])
    with pytest.raises(ValueError, match="a cache of its own"):
        model.forward_rows([ModelRow([4], cache), ModelRow([4], cache)])
    assert (cache.num_tokens, other.num_tokens) == (3, 0)
    expected = model.forward([1, 2, 3, 4], model.new_cache(4))
    torch.testing.assert_close(model.forward([4], cache), expected, **CLOSE)
    for max_tokens in (0, 513):
        with pytest.raises(ValueError, match=r"outside 1\.\.512"):
            model.new_cache(max_tokens)


def test_a_pass_that_breaks_off_leaves_the_cache_as_it_was(model: Qwen35Model) -> None:
    cache = model.new_cache(20)
    model.forward(TOKENS[:5], cache)
    for _ in range(5):  # more often than there are slots
        with pytest.raises(IndexError):
            model.forward([VOCAB_SIZE + 5], cache)
        assert cache.num_tokens == 5
    expected = model.forward(TOKENS[:6], model.new_cache(6))
    torch.testing.assert_close(model.forward(TOKENS[5:6], cache), expected, **CLOSE)
