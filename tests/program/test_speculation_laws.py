"""Drafts that a network draws leave the laws of tokens alone: counted over many seeds, through whole rounds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from infernix.matching.vocabulary import TokenClass
from infernix.ops.reference import target_distribution
from infernix.options import SamplingParameters
from infernix.program.pending import RowDecision
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from program.neural_drafters import NUM_TOKENS, Networks
from support.scripted_program import VOCABULARY, RowMaskTable

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
FIRST = 8
END = -1
"""Stands for what comes after the end."""
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
    program = new_program(networks)
    sequences = started(program, NUM_ROWS)
    drafted = likely_drafts(program)
    legal = sorted({*drafted[:2], 10, 11, 12, 13})
    masks = RowMaskTable(dict.fromkeys(range(NUM_ROWS), legal))
    first = law(networks, [*PROMPT, FIRST], legal)
    law_of_two = {token: law(networks, [*PROMPT, FIRST, token], legal) for token in legal}

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


def test_rows_of_other_shapes_keep_their_laws_beside_each_other(tmp_path: Path) -> None:
    """Free and constrained rows with cuts, penalties, fewer legal tokens than top-k and any number of drafts."""
    networks = Networks.make(tmp_path)
    program = new_program(networks)
    sequences = started(program, NUM_ROWS)
    likely = likely_drafts(program)
    few, more = sorted({likely[1], 10, 30}), sorted({*likely[:2], 10, 11, 12, 13})
    penalties = {"presence_penalty": 0.6, "frequency_penalty": 0.4}
    kinds = [
        (None, replace(SAMPLING, top_k=4, min_p=0.05, **penalties)),
        (few, replace(SAMPLING, top_k=20, **penalties)),
        (more, replace(SAMPLING, top_k=5, top_p=0.9, min_p=0.02)),
    ]
    masks = RowMaskTable({row: kinds[row % 3][0] for row in range(NUM_ROWS) if kinds[row % 3][0] is not None})
    laws = [law_of_two_tokens(networks, legal, sampling) for legal, sampling in kinds]
    shares: list[Counter[tuple[int, int]]] = [Counter() for _ in kinds]
    num_rounds = 150
    num_draws = num_rounds * NUM_ROWS // len(kinds)
    for turn in range(num_rounds):
        for number, sequence in enumerate(sequences):
            sequence.sampling = replace(kinds[number % 3][1], seed=turn * NUM_ROWS + number)
        extents = [(turn + row // 3) % (NUM_DRAFTS + 1) for row in range(NUM_ROWS)]
        chains = program.propose(sequences, extents)
        assert list(map(len, chains)) == extents
        batch = program.decode_batch(sequences, masks, chains)
        for number, row in enumerate(batch.rows):
            first, second = laws[number % 3]
            one = row.tokens[0]
            assert one in first
            behind = {row.tokens[1]: 1.0} if len(row.tokens) > 1 else second[one]
            assert behind.keys() <= second[one].keys()
            for two, share in behind.items():
                shares[number % 3][one, two] += share / num_draws
        program.abort_pending(batch)
    for found, (first, second) in zip(shares, laws, strict=True):
        exact = {(one, two): p * q for one, p in first.items() for two, q in second[one].items()}
        variation = sum(abs(found[outcome] - probability) for outcome, probability in exact.items()) / 2
        assert variation <= math.sqrt(len(exact) / num_draws) / 2 + chance(num_draws)


Law = dict[int, float]


def law_of_two_tokens(
    networks: Networks, legal: list[int] | None, sampling: SamplingParameters
) -> tuple[Law, dict[int, Law]]:
    """By the definition: what comes after the first token, and what after each of those."""
    is_legal = VOCABULARY.classes != TokenClass.NEVER if legal is None else np.isin(np.arange(NUM_TOKENS), legal)

    def after(*text: int) -> Law:
        ledger = [*PROMPT, *text]
        logits = networks.model.forward(ledger, networks.model.new_cache(len(ledger)))[0].numpy()
        target = target_distribution(logits, is_legal, sampling, Counter(text))
        return dict(zip(target.ids.tolist(), target.probabilities.tolist(), strict=True))

    first = after(FIRST)
    return first, {token: {END: 1.0} if token in VOCABULARY.eos_ids else after(FIRST, token) for token in first}


def new_program(networks: Networks) -> Program:
    """With a drafter that draws."""
    return Program(
        networks.model,
        VOCABULARY,
        max_rows=NUM_ROWS,
        num_cache_positions=64 * NUM_ROWS,
        num_draft_tokens=NUM_DRAFTS,
        drafter=networks.drafter("dflash2", NUM_DRAFTS),
    )


def started(program: Program, num_sequences: int) -> list[PhysicalSequence]:
    """Sequences with the prompt and FIRST, all of them alike."""
    sequences = [program.start(PROMPT, 8, SAMPLING) for _ in range(num_sequences)]
    for sequence in sequences:
        batch = program.prefill_chunk(sequence, RowMaskTable({0: [FIRST]}))
        assert batch is not None
        program.commit(batch, [RowDecision(1, is_terminal=False)])
    return sequences


def chance(num_draws: int) -> float:
    """What the share of an event may be off by, but for a negligible probability (Hoeffding)."""
    return math.sqrt(-math.log(_FALSE_ALARM_PROBABILITY) / (2 * num_draws))


def likely_drafts(program: Program) -> list[int]:
    """The drafter's candidates for the token after the first, the likeliest first."""
    [sequence] = started(program, 1)
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
