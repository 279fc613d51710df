"""DFlash2: DFlash with convolutions in its layers and a selector that chains the choices along the block.

At every draft's position i the best candidates C(i) of the output matrix compete with their logits u plus how well they
follow the token before them:

    E(i)[c] = u(i)[c] + sum over r of predecessor[token before, r] g(i)[r] successor[C(i)[c], r]

where g is a projection of the hidden state and the token before is the anchor or the draft that was chosen. Softmax of
E / temperature is the law that a draft is drawn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from infernix.errors import ModelLoadError
from infernix.models.cache import KVCache
from infernix.models.dflash import DFlashDrafter
from infernix.models.dflash_config import read_dflash_config
from infernix.models.features import FeatureModel
from infernix.models.files import read_json_object
from infernix.models.tensor_reader import TensorReader
from infernix.models.weights import WeightFiles
from infernix.ops.proposals import SparseProposals, propose


@dataclass(frozen=True, slots=True)
class Candidates:
    """One row's candidates at K positions, c of them each, by falling logit and then by id.

    ids      int64 [K, c]
    scores   float32 [K, c, c]: scores[i, p] are E(i) if candidate p of position i - 1 was chosen; at the first position
             all p are alike, for the anchor
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]

    def walk(self, temperature: float, seed: int, position: int) -> tuple[list[int], SparseProposals]:
        """Chooses a draft at every position, the first of them for the logical `position` of the sequence.

        At temperature 0 the best candidate is taken and its law is one-hot. Raises ValueError if a position has no
        finite score.
        """
        drafts, laws, before = [], [], 0
        for place, (ids, scores) in enumerate(zip(self.ids, self.scores, strict=True)):
            before, law = propose(scores[before], temperature, seed, position + place)
            drafts.append(int(ids[before]))
            laws.append(law)
        return drafts, SparseProposals(self.ids, np.stack(laws))


class DFlash2Drafter(DFlashDrafter):
    """A DFlash drafter with a candidate selector. Convolutions restart at every block; the context passes none."""

    def _read_more(self, reader: TensorReader, prefix: str) -> None:
        selector = self.config.selector
        if selector is None:
            raise ValueError("the config describes a DFlash drafter without a selector")
        name = f"{prefix}candidate_selector."
        num_tokens = self._model.num_logits
        self._num_candidates = selector.num_candidates
        self._projection = reader.linear(f"{name}hidden_projection.weight", selector.rank, self.config.hidden_size)
        self._predecessors = reader.tensor(f"{name}predecessor_codebook", num_tokens, selector.rank)
        self._successors = reader.tensor(f"{name}successor_codebook", num_tokens, selector.rank)

    @torch.inference_mode()
    def candidates(
        self, anchors: Sequence[int], caches: Sequence[KVCache], num_drafts: int, num_tokens: int
    ) -> list[Candidates]:
        """Every row's candidates among the first `num_tokens` ids, with the scores of all ways along the block.

        Arguments and errors are those of `forward_block`.
        """
        hidden = self.forward_block(anchors, caches, num_drafts)
        logits = self._model.head(hidden.flatten(0, 1))[:, :num_tokens].view(len(caches), num_drafts, -1)
        ids, values = best_tokens(logits, min(self._num_candidates, num_tokens))
        first = torch.tensor(anchors, device=ids.device).view(-1, 1, 1).expand(-1, 1, ids.shape[2])
        before = torch.cat((first, ids[:, :-1]), dim=1)  # [R, K, c], the candidates one position earlier
        gates = self._projection(hidden).float().unsqueeze(2)
        edges = torch.matmul(self._predecessors[before].float() * gates, self._successors[ids].float().transpose(2, 3))
        scores = (values.unsqueeze(2) + edges).cpu().numpy()
        return [Candidates(*row) for row in zip(ids.cpu().numpy(), scores, strict=True)]


def open_dflash(directory: Path, model: FeatureModel) -> DFlashDrafter:
    """The drafter of a directory, in the number format and on the device of `model`: a DFlash2Drafter where its config
    describes a selector.

    Raises ModelLoadError, naming the file and what is wrong with it.
    """
    config = read_dflash_config(read_json_object(directory / "config.json"), directory / "config.json")
    if (directory / "mask_embedding.pt").exists():
        raise ModelLoadError(f"{directory / 'mask_embedding.pt'}: a mask embedding of its own is not supported")
    weights = WeightFiles(directory, dtype=model.dtype, device=model.device)
    return (DFlashDrafter if config.selector is None else DFlash2Drafter)(config, weights, model)


def best_tokens(logits: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids int64 and logits of the `count` best of [..., V], by falling logit; ties are ordered, and cut, by id."""
    values, ids = logits.topk(count, dim=-1)
    if (logits >= values[..., -1:]).sum() > values.numel():
        # More tokens than places share the last value: which of them topk takes is not said.
        values, ids = logits.sort(dim=-1, descending=True, stable=True)
        return ids[..., :count], values[..., :count]
    ids, order = ids.sort(dim=-1)
    values, order_by_value = values.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    return ids.gather(-1, order_by_value), values
