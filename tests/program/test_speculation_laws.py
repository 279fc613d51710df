"""Drafts that a network draws leave the laws of tokens alone: counted over many seeds, through whole rounds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from infernix.options import SamplingParameters
from infernix.program.pending import RowDecision
from infernix.program.program import Program
from program.neural_drafters import Networks
from support.scripted_program import VOCABULARY, RowMaskTable

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
SAMPLING = SamplingParameters(temperature=0.7, top_k=0, top_p=1.0, min_p=0.0)
NUM_ROWS, NUM_ROUNDS, NUM_DRAFTS = 12, 250, 3
_FALSE_ALARM_PROBABILITY = 1e-9


def test_drawn_drafts_leave_the_law_of_two_tokens_alone(tmp_path: Path) -> None:
    """Every row has a seed of its own, and half of what is likely for the drafter is illegal.

    What a round leaves open, the second token, counts with its probability; so an outcome's share differs from its
    probability by chance alone. The bound is the expectation's, half of sqrt(outcomes / draws), with McDiarmid's
    inequality on top of it. How often drafts stay tells whether they were held against what they were drawn from:
    drafts that are compared with a token of the model's own law stay less often.
    """
    networks = Networks.make(tmp_path)
    program = Program(
        networks.model,
        VOCABULARY,
        max_rows=NUM_ROWS,
        num_cache_positions=64 * NUM_ROWS,
        num_draft_tokens=NUM_DRAFTS,
        drafter=networks.drafter("dflash2", NUM_DRAFTS),
    )
    sequences = [program.start(PROMPT, 8, SAMPLING) for _ in range(NUM_ROWS)]
    for sequence in sequences:
        batch = program.prefill_chunk(sequence, RowMaskTable({0: [8]}))
        assert batch is not None
        program.commit(batch, [RowDecision(1, is_terminal=False)])
    drafted = likely_drafts(program)
    legal = sorted({*drafted[:2], 10, 11, 12, 13})
    masks = RowMaskTable(dict.fromkeys(range(NUM_ROWS), legal))
    first = law(networks, [*PROMPT, 8], legal)
    law_of_two = {token: law(networks, [*PROMPT, 8, token], legal) for token in legal}

    shares: Counter[tuple[int, int]] = Counter()
    num_draws, num_accepted, expected_accepted, expected_if_compared = NUM_ROWS * NUM_ROUNDS, 0, 0.0, 0.0
    for turn in range(NUM_ROUNDS):
        for number, sequence in enumerate(sequences):
            sequence.sampling = replace(SAMPLING, seed=turn * NUM_ROWS + number)
        chains = program.propose(sequences, [NUM_DRAFTS] * NUM_ROWS)
        batch = program.decode_batch(sequences, masks, chains)
        for row, chain in zip(batch.rows, chains, strict=True):
            assert chain.proposals is not None
            q = [chain.proposals.probability(0, token) for token in legal]
            expected_accepted += float(np.minimum(first, q).sum())
            expected_if_compared += float((first * q).sum())
            num_accepted += row.num_accepted > 0
            one = row.tokens[0]
            if len(row.tokens) > 1:
                shares[one, row.tokens[1]] += 1 / num_draws
            else:
                for token, probability in zip(legal, law_of_two[one], strict=True):
                    shares[one, token] += float(probability) / num_draws
        program.abort_pending(batch)
    exact = {
        (one, two): p * r
        for one, p in zip(legal, first, strict=True)
        for two, r in zip(legal, law_of_two[one], strict=True)
    }
    assert set(shares) <= set(exact)
    variation = sum(abs(shares[outcome] - probability) for outcome, probability in exact.items()) / 2
    assert variation <= math.sqrt(len(exact) / num_draws) / 2 + chance(num_draws)
    assert abs(num_accepted - expected_accepted) / num_draws <= chance(num_draws)
    assert expected_accepted - expected_if_compared > 2 * num_draws * chance(num_draws)


def chance(num_draws: int) -> float:
    """What the share of an event may be off by, but for a negligible probability (Hoeffding)."""
    return math.sqrt(-math.log(_FALSE_ALARM_PROBABILITY) / (2 * num_draws))


def likely_drafts(program: Program) -> list[int]:
    """The drafter's candidates for the token after the first, the likeliest first."""
    sequence = program.start(PROMPT, 8, SAMPLING)
    batch = program.prefill_chunk(sequence, RowMaskTable({0: [8]}))
    assert batch is not None
    program.commit(batch, [RowDecision(1, is_terminal=False)])
    [chain] = program.propose([sequence], [1])
    assert chain.proposals is not None
    program.release(sequence)
    order = np.argsort(-chain.proposals.probabilities[0])
    tokens: list[int] = chain.proposals.candidate_ids[0][order].tolist()
    return tokens


def law(networks: Networks, text: list[int], legal: list[int]) -> np.ndarray:
    """The model's probabilities of the legal tokens behind a text, float64."""
    logits = networks.model.forward(text, networks.model.new_cache(len(text)))[0, legal].double()
    return torch.softmax(logits / SAMPLING.temperature, dim=0).numpy()
