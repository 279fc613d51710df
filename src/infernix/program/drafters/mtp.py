"""Drafts from a model's own multi-token predictor, one after another, each the likeliest token (q is one-hot).

After the position before the anchor, read with the model's hidden state and the anchor, the predictor's own output
stands in for the hidden states that do not exist yet. What it reads that way is forgotten with the round: it was made
of guesses.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from infernix.models.cache import KVPool
from infernix.models.features import FeatureModel, ForwardOutput
from infernix.models.mtp import MtpRow, TokenPredictor
from infernix.program.drafters.chain import DraftChain
from infernix.program.drafters.context import ContextRow
from infernix.program.drafters.neural import DraftRow

MAX_MTP_DRAFTS = 5


class MtpDrafter:
    """A NeuralDrafter around a predictor; `num_tokens` ids are candidates."""

    taps: Sequence[int] = ()
    lag = 1

    def __init__(self, predictor: TokenPredictor, model: FeatureModel, *, num_tokens: int, num_drafts: int) -> None:
        """Raises ValueError unless `num_drafts` is in 1..MAX_MTP_DRAFTS."""
        if not 1 <= num_drafts <= MAX_MTP_DRAFTS:
            raise ValueError(f"1 to {MAX_MTP_DRAFTS} tokens can be drafted, not {num_drafts}")
        self.model = model
        self.num_drafts = num_drafts
        self.width = model.hidden_size
        self._predictor = predictor
        self._num_tokens = num_tokens

    def features(self, output: ForwardOutput) -> torch.Tensor:
        """What the model's output matrix is made to read: hidden states, or several streams of them."""
        return output.hidden

    def new_pool(self, num_positions: int) -> KVPool:
        """Memory for the keys and values of `num_positions` tokens of all sequences together."""
        return self._predictor.new_pool(num_positions)

    def read(self, row: ContextRow, end: int) -> None:
        """Reads the positions before `end`, each with the token after it."""
        self._predictor.forward_rows([_row_up_to(row, end)])
        row.context.keep_from(end - self.lag)

    def propose(self, rows: Sequence[DraftRow]) -> list[DraftChain]:
        """The likeliest tokens along each row's own chain, as many as it wants."""
        ends = [len(row.ledger) - 1 for row in rows]
        for row, end in zip(rows, ends, strict=True):
            # The last position is read in every case: what comes out of it is the first draft.
            row.context.cache.truncate(min(row.context.cache.num_tokens, end - 1))
        try:
            aligned = [_row_up_to(row, end) for row, end in zip(rows, ends, strict=True)]
            last = torch.tensor([len(row.token_ids) for row in aligned]).cumsum(0) - 1
            hidden = self._predictor.forward_rows(aligned)[last.to(self.model.device)]
            chains: list[list[int]] = [[] for _ in rows]
            going = list(range(len(rows)))
            while True:
                for number, token in zip(going, self._likeliest(hidden), strict=True):
                    chains[number].append(token)
                places = [place for place, number in enumerate(going) if len(chains[number]) < rows[number].num_drafts]
                if not places:
                    break
                going = [going[place] for place in places]
                hidden = self._predictor.forward_rows(
                    [
                        MtpRow([chains[number][-1]], hidden[place : place + 1], rows[number].context.cache)
                        for place, number in zip(places, going, strict=True)
                    ]
                )
        finally:
            for row, end in zip(rows, ends, strict=True):
                row.context.cache.truncate(min(row.context.cache.num_tokens, end))
        for row, end in zip(rows, ends, strict=True):
            row.context.keep_from(end - self.lag)
        return [DraftChain(tuple(chain)) for chain in chains]

    def _likeliest(self, hidden: torch.Tensor) -> list[int]:
        tokens: list[int] = self._predictor.head(hidden)[:, : self._num_tokens].argmax(dim=-1).tolist()
        return tokens


def _row_up_to(row: ContextRow, end: int) -> MtpRow:
    begin = row.context.cache.num_tokens
    return MtpRow(row.ledger[begin + 1 : end + 1], row.context.part(begin, end), row.context.cache)
