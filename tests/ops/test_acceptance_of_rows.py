"""Whole rows against the definition: the same output for the same random numbers, whatever stands past its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.ops.acceptance import ChainMasks, DraftedRow, RowFailure, RowOutput, verify
from infernix.ops.proposals import SparseProposals
from infernix.ops.random import Purpose, uniform
from infernix.ops.sampling import TokenDomain, sample_token
from infernix.ops.speculative_reference import target_laws
from infernix.ops.speculative_reference import verify as verify_by_definition
from infernix.options import SamplingParameters
from support.drafted_rows import all_of, counted, masks_of
from support.mask_words import mask_words

GREEDY = SamplingParameters(temperature=0.0)
END = 5


@dataclass
class Numbers:
    """The engine's numbers by place, for the definition; it remembers those that were used."""

    seed: int
    position: int
    used: list[float] = field(default_factory=list)

    def __call__(self, place: int, purpose: Purpose) -> float:
        self.used.append(uniform(self.seed, self.position + place, purpose))
        return self.used[-1]


def random_row(rng: np.random.Generator) -> tuple[DraftedRow, TokenDomain, RowOutput]:
    """A row, its domain, and the output by the definition."""
    num_tokens, num_drafts = int(rng.integers(2, 50)), int(rng.integers(0, 6))
    parameters = SamplingParameters(
        temperature=float(rng.choice([0.0, 0.3, 1.0])),
        top_k=int(rng.choice([0, 0, 3, 20])),
        top_p=float(rng.choice([0.7, 1.0])),
        min_p=float(rng.choice([0.0, 0.1])),
        presence_penalty=float(rng.choice([0.0, 0.0, 1.5])),
        frequency_penalty=float(rng.choice([0.0, 0.0, -0.5])),
        seed=int(rng.integers(2**63)),
    )
    never = np.arange(num_tokens) == num_tokens - 1
    legal = np.tile(~never, (num_drafts + 1, 1))
    is_constrained = rng.random() < 0.6
    if is_constrained:
        legal &= rng.random(legal.shape) < rng.choice([0.2, 0.8])
        alive = rng.random(num_drafts + 1) < 0.95
        legal[alive, rng.integers(num_tokens - 1)] = True
        legal[~alive] = False
    logits = (rng.normal(0, 2, (num_drafts + 1, num_tokens + 3)) * rng.choice([0.0, 1.0])).astype(np.float32)
    logits[rng.random(num_drafts + 1) < 0.03, 0] = np.nan
    counts = Counter(rng.integers(0, num_tokens, 6).tolist())
    drafts, laws, proposals = draw_drafts(rng, logits, legal)
    end_ids = frozenset(rng.choice(drafts, 1).tolist() if drafts and rng.random() < 0.4 else [])
    if parameters.temperature == 0.0:
        proposals = None
    num_ready, dead_positions = look_ahead(legal, drafts, end_ids)
    row = DraftedRow(
        logits=logits,
        drafts=drafts,
        parameters=parameters,
        counts=counted(*counts.elements()),
        position=int(rng.integers(1000)),
        masks=masks_of(legal, num_ready, dead_positions) if is_constrained else None,
        proposals=proposals,
        end_ids=end_ids,
    )
    numbers = Numbers(parameters.seed, row.position)
    try:
        tokens = verify_by_definition(
            target_laws(logits, legal, drafts, parameters, counts),
            None if proposals is None else laws,
            drafts,
            end_ids,
            numbers,
        )
    except ConstraintDeadEnd:
        return row, TokenDomain.without(never), RowOutput((), 0, RowFailure.DEAD_END)
    except NonFiniteLogits:
        return row, TokenDomain.without(never), RowOutput((), 0, RowFailure.NON_FINITE_LOGITS)
    num_accepted = len(numbers.used) if len(tokens) == len(numbers.used) and ends(row, tokens) else len(tokens) - 1
    return row, TokenDomain.without(never), RowOutput(tokens, num_accepted)


def ends(row: DraftedRow, tokens: tuple[int, ...]) -> bool:
    """Whether the output is nothing but drafts, of which the last is an end."""
    return tokens == tuple(row.drafts[: len(tokens)]) and tokens[-1] in row.end_ids


def draw_drafts(
    rng: np.random.Generator, logits: NDArray[np.float32], legal: NDArray[np.bool_]
) -> tuple[tuple[int, ...], list[dict[int, float]], SparseProposals | None]:
    """Drafts of all kinds, with the laws they were drawn from, or None for drafts that were not drawn."""
    num_drafts, num_tokens = len(logits) - 1, legal.shape[1]
    if not num_drafts:
        return (), [], None
    best = np.where(legal, np.nan_to_num(logits[:, :num_tokens]), -np.inf).argmax(axis=1)[:num_drafts]
    num_candidates = min(16, num_tokens)
    ids = np.stack([rng.permutation(num_tokens + 2)[:num_candidates] for _ in range(num_drafts)])
    q = rng.dirichlet(np.full(num_candidates, 0.5), size=num_drafts) + 1e-9
    q[ids == best[:, None]] += rng.choice([0.0, 2.0])
    q /= q.sum(axis=1, keepdims=True)
    drafts = tuple(int(rng.choice(row, p=law)) for row, law in zip(ids, q, strict=True))
    if rng.random() < 0.5:
        laws = [dict(zip(row.tolist(), law.tolist(), strict=True)) for row, law in zip(ids, q, strict=True)]
        return drafts, laws, SparseProposals(ids, q)
    is_right = rng.random(num_drafts) < 0.8
    return tuple(np.where(is_right, best, drafts).tolist()), [], None


def look_ahead(legal: NDArray[np.bool_], drafts: tuple[int, ...], end_ids: frozenset[int]) -> tuple[int, int]:
    """How many places are ready along the drafts, and which one is dead."""
    for place, row in enumerate(legal):
        if not row.any():
            return place, 1 << place
        if place < len(drafts) and (drafts[place] in end_ids or drafts[place] not in np.flatnonzero(row)):
            return place + 1, 0
    return len(legal), 0


def random_rows(seed: int, num_rows: int) -> Iterator[tuple[DraftedRow, TokenDomain, RowOutput]]:
    rng = np.random.default_rng(seed)
    for _ in range(num_rows):
        yield random_row(rng)


def test_rows_put_out_what_the_definition_does() -> None:
    seen: Counter[tuple[bool, bool, object]] = Counter()
    for row, domain, expected in random_rows(0, 1000):
        untouched = row.logits.copy()
        [output] = verify([row], domain)
        assert output == expected
        assert np.array_equal(row.logits, untouched, equal_nan=True), "the model's logits were written to"
        kind = output.failure or ("end" if ends(row, output.tokens) else output.num_accepted == len(row.drafts))
        seen[row.masks is not None, row.proposals is not None, kind] += 1
    kinds = {True, False, "end", RowFailure.NON_FINITE_LOGITS}
    expected_kinds = {
        (constrained, drawn, kind) for constrained in (False, True) for drawn in (False, True) for kind in kinds
    }
    assert set(seen) == expected_kinds | {(True, drawn, RowFailure.DEAD_END) for drawn in (False, True)}


def test_a_batch_is_its_rows_one_by_one() -> None:
    rows = [row for row, _, _ in random_rows(77, 60)]
    domain = all_of(60)
    rows = [replace(row, logits=np.pad(row.logits, [(0, 0), (0, 60)])) for row in rows]
    one_by_one = [verify([row], domain)[0] for row in rows]
    assert verify(rows, domain) == one_by_one
    assert verify(rows[::-1], domain) == one_by_one[::-1]
    assert verify([], domain) == []


@pytest.mark.parametrize("seed", range(5))
def test_what_stands_past_the_end_of_an_output_does_not_matter(seed: int) -> None:
    for row, domain, expected in random_rows(100 + seed, 60):
        num_read = len(row.drafts) + 1 if expected.failure else len(expected.tokens)
        row.logits[num_read:] = np.nan
        masks = row.masks
        if masks is not None and not expected.failure:
            masks.words[num_read:] = 1
            masks = ChainMasks(masks.words, min(masks.num_ready, num_read), masks.dead_positions)
        assert verify([replace(row, masks=masks)], domain) == [expected]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_texts_are_those_of_ordinary_decoding(seed: int, temperature: float) -> None:
    """Whatever is proposed without chance: right, wrong, illegal and past the end."""
    rng = np.random.default_rng(seed)
    num_tokens, length, domain = 12, 40, all_of(12)
    penalty = float(rng.choice([0.0, 0.4]))
    parameters = SamplingParameters(temperature=temperature, frequency_penalty=penalty, seed=seed)

    def step(text: tuple[int, ...]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        own = np.random.default_rng([seed, len(text), *text[-3:]])
        legal = own.random(num_tokens) < 0.5
        legal[0] = True
        return own.normal(0, 2, num_tokens).astype(np.float32), legal

    def masks_along(texts: list[tuple[int, ...]], drafts: tuple[int, ...]) -> ChainMasks:
        legal = np.stack([step(text)[1] for text in texts])
        return masks_of(legal, *look_ahead(legal, drafts, frozenset([END])))

    ordinary: tuple[int, ...] = ()
    while len(ordinary) < length and END not in ordinary:
        logits, legal = step(ordinary)
        mask = mask_words(np.flatnonzero(legal).tolist(), num_tokens)
        number = uniform(seed, len(ordinary), Purpose.DECODE)
        ordinary += (sample_token(logits, domain, mask, parameters, counted(*ordinary), number),)

    text: tuple[int, ...] = ()
    while len(text) < length and END not in text:
        guess = ordinary[len(text) : len(text) + int(rng.integers(0, 6))][: length - len(text) - 1]
        drafts = tuple(token if rng.random() < 0.8 else int(rng.integers(num_tokens)) for token in guess)
        drafts += (END, 3) if rng.random() < 0.1 and len(text) + len(drafts) + 3 <= length else ()
        texts = [(*text, *drafts[:place]) for place in range(len(drafts) + 1)]
        row = DraftedRow(
            logits=np.stack([step(before)[0] for before in texts]),
            drafts=drafts,
            parameters=parameters,
            counts=counted(*text),
            position=len(text),
            masks=masks_along(texts, drafts),
            end_ids=frozenset([END]),
        )
        [output] = verify([row], domain)
        text += output.tokens
    assert text == ordinary
