"""DFlash2: convolutions, candidates and the walk along them, against their formulas in float64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from infernix.errors import ModelLoadError
from infernix.models.dflash import ContextRow
from infernix.models.dflash2 import Candidates, DFlash2Drafter, best_tokens, open_dflash
from infernix.models.model import ModelRow
from infernix.models.qwen3_5 import Qwen35Model
from infernix.ops.random import Purpose, uniform
from models.tiny_dflash import CANDIDATES, CONFIG2, MASK, TAPS, Reference, drafter_tensors, write_drafter
from models.tiny_qwen3_5 import VOCAB_SIZE, load_qwen3_5, random_tokens, tiny_qwen3_5

CLOSE = {"atol": 5e-4, "rtol": 5e-4}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Qwen35Model:
    directory = tmp_path_factory.mktemp("target")
    tiny_qwen3_5().save_pretrained(directory)
    return load_qwen3_5(directory)


@pytest.fixture(scope="module")
def drafter(model: Qwen35Model, tmp_path_factory: pytest.TempPathFactory) -> DFlash2Drafter:
    directory = write_drafter(tmp_path_factory.mktemp("drafter"), CONFIG2, drafter_tensors(with_selector=True))
    drafter = open_dflash(directory, model)
    assert isinstance(drafter, DFlash2Drafter)
    return drafter


def test_blocks_and_candidates_agree_with_the_formulas(model: Qwen35Model, drafter: DFlash2Drafter) -> None:
    reference = Reference(drafter_tensors(with_selector=True), [7, None, 7], is_causal=False)
    pool, anchors, caches, expected = drafter.new_pool(256), [50, 3], [], []
    for anchor, length in zip(anchors, (5, 14), strict=True):
        tokens = random_tokens(length, length)
        features = model.forward_features([ModelRow(tokens, model.new_cache(length), 0)], TAPS).taps
        assert features is not None
        caches.append(pool.new_cache(50))
        drafter.append_context([ContextRow(features, caches[-1])])
        expected.append(reference.block(features, model.embed(torch.tensor([anchor] + [MASK] * 7)))[1:].float())
    hidden = drafter.forward_block(anchors, caches, 7)
    torch.testing.assert_close(hidden, torch.stack(expected), **CLOSE)

    num_tokens = VOCAB_SIZE - 7
    logits = model.head(hidden.flatten(0, 1)).view(2, 7, -1)
    for row, found in enumerate(drafter.candidates(anchors, caches, 7, num_tokens)):
        for place in range(7):
            scores = logits[row, place].tolist()
            ids = sorted(range(num_tokens), key=lambda token, scores=scores: (-scores[token], token))[:CANDIDATES]
            assert found.ids[place].tolist() == ids
            for way in range(CANDIDATES):
                before = int(found.ids[place - 1, way]) if place else anchors[row]
                along = reference.scores(before, ids, logits[row, place], hidden[row, place])
                np.testing.assert_allclose(found.scores[place, way], along, atol=1e-4, rtol=1e-4)


def random_candidates() -> Candidates:
    generator = np.random.default_rng(3)
    ids = np.stack([generator.permutation(50)[:4] for _ in range(6)])
    return Candidates(ids, generator.normal(size=(6, 4, 4)).astype(np.float32))


def test_the_best_way_is_walked_greedily() -> None:
    candidates = random_candidates()
    drafts, proposals = candidates.walk(0.0, 1, 100)
    before = 0
    for place, draft in enumerate(drafts):
        before = int(candidates.scores[place, before].argmax())
        assert draft == candidates.ids[place, before]
        assert proposals.probability(place, draft) == 1.0
        assert proposals.probabilities[place].sum() == 1.0


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
def test_a_walk_draws_from_the_laws_that_it_keeps(temperature: float) -> None:
    candidates = random_candidates()
    for seed in range(40):
        drafts, proposals = candidates.walk(temperature, seed, 100)
        before = 0
        for place, draft in enumerate(drafts):
            weights = np.exp(candidates.scores[place, before].astype(np.float64) / temperature)
            law = weights / weights.sum()
            np.testing.assert_allclose(proposals.probabilities[place], law, atol=1e-12)
            number = uniform(seed, 100 + place, Purpose.PROPOSAL)
            before = int((np.cumsum(law) <= number).sum())
            assert draft == candidates.ids[place, before]


def test_ties_are_ordered_and_cut_by_id() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0, 3.0, 2.0, 2.0, 0.0], [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]])
    for count in range(1, 8):
        ids, values = best_tokens(logits, count)
        expected = [sorted(range(7), key=lambda token, row=row: (-float(row[token]), token))[:count] for row in logits]
        assert ids.tolist() == expected
        assert torch.equal(values, logits.gather(1, torch.tensor(expected)))


def test_every_wrong_tensor_is_named(model: Qwen35Model, tmp_path: Path) -> None:
    tensors = drafter_tensors(with_selector=True)
    del tensors["candidate_selector.predecessor_codebook"]
    tensors["layers.1.mlp_conv.base_kernel"] = torch.ones(2, 3, 48)
    with pytest.raises(ModelLoadError) as caught:
        open_dflash(write_drafter(tmp_path, CONFIG2, tensors), model)
    assert "'candidate_selector.predecessor_codebook' is missing" in str(caught.value)
    assert "'layers.1.mlp_conv.base_kernel' has shape [2, 3, 48], expected [2, 2, 48]" in str(caught.value)
