"""Rounds with drafts of a network: what it has read is right after all that may happen, and no text changes."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from infernix.models.dflash2 import Candidates
from infernix.models.model import LanguageModel
from infernix.options import SamplingParameters
from infernix.program.drafters.chain import DraftChain
from infernix.program.drafters.context import DraftContext
from infernix.program.pending import PendingBatch, RowDecision
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from program.neural_drafters import KINDS, NUM_TOKENS, Networks
from support.scripted_program import STOP, VOCABULARY, RowMaskTable

GREEDY = SamplingParameters(temperature=0.0)
PROMPTS = [[(5 * place + 7 * number) % 40 for place in range(5 + 17 * number)] for number in range(3)]
LENGTH = 40
NUM_DRAFTS = 4


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Networks:
    return Networks.make(tmp_path_factory.mktemp("drafted"))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def program_of(networks: Networks, kind: str | None, **options: int) -> Program:
    drafter = None if kind is None else networks.drafter(kind, NUM_DRAFTS)
    sizes = {"prefill_chunk_tokens": 8, "num_cache_positions": 512, "num_sequences": 6, "num_draft_tokens": NUM_DRAFTS}
    model = networks.model if kind is None else networks.model_of(kind)
    return Program(model, VOCABULARY, drafter=drafter, **(sizes | options))


def prefilled(program: Program, sequence: PhysicalSequence) -> PhysicalSequence:
    batch = None
    while batch is None:
        assert program.reserve(sequence, program.num_prefill_tokens(sequence))
        batch = program.prefill_chunk(sequence, None)
    accept(program, batch)
    return sequence


def accept(program: Program, batch: PendingBatch) -> None:
    program.commit(batch, [RowDecision(len(row.tokens), is_terminal=False) for row in batch.rows])


def ordinary(model: LanguageModel, sampling: SamplingParameters) -> list[list[int]]:
    """The texts without drafts; a long one never ends here, tokens that would end it are committed like others."""
    program = Program(model, VOCABULARY, num_cache_positions=512)
    texts = []
    for number, prompt in enumerate(PROMPTS):
        sequence = prefilled(program, program.start(prompt, LENGTH + 9, replace(sampling, seed=number)))
        while len(sequence.ledger) < len(prompt) + LENGTH + 8:
            accept(program, program.decode_batch([sequence], None))
        texts.append(sequence.ledger)
        program.release(sequence)
    return texts


def check_proposals(networks: Networks, kind: str, program: Program, sequences: Sequence[PhysicalSequence]) -> None:
    """The Program's drafts are those of a drafter that reads the whole text at once; asking changes nothing."""
    extents = [(len(sequence.ledger) + number) % NUM_DRAFTS + 1 for number, sequence in enumerate(sequences)]
    for found in (program.propose(sequences, extents), program.propose(sequences, extents)):
        for sequence, extent, chain in zip(sequences, extents, found, strict=True):
            ledger, sampling = sequence.ledger, sequence.sampling
            assert list(chain.tokens) == networks.expected(kind, ledger, extent, NUM_DRAFTS, sampling)
            assert (chain.proposals is not None) == (kind == "dflash2" and sampling.temperature > 0)


def pause(program: Program, sequence: PhysicalSequence, way: int) -> None:
    (program.pause_replay if way == 0 else program.pause_snapshot)(sequence)
    if way == 2:
        program.revoke_snapshot(sequence)
    assert program.resume(sequence, 1 + NUM_DRAFTS)
    while sequence.num_tokens_to_replay:
        program.replay_chunk(sequence)


@pytest.mark.parametrize("sampling", [GREEDY, SamplingParameters(temperature=0.8)])
def test_what_was_read_is_right_after_all_that_happens(
    networks: Networks, kind: str, sampling: SamplingParameters
) -> None:
    """Rounds whose drafts are the network's, copies that are right or wrong in their middle, or none; units that are
    taken back, pauses of all kinds and forced tokens between them. Texts of one-hot drafts are those without drafts.
    """
    program = program_of(networks, kind)
    sequences = [
        prefilled(program, program.start(prompt, LENGTH + 20, replace(sampling, seed=number)))
        for number, prompt in enumerate(PROMPTS)
    ]
    texts = ordinary(networks.model_of(kind), sampling)
    are_same = sampling.temperature == 0 or kind != "dflash2"
    rng = random.Random(kind)
    num_forced = 0
    for turn in range(12):
        check_proposals(networks, kind, program, sequences)
        proposed = program.propose(sequences, [NUM_DRAFTS] * 3)
        chains = []
        for number, sequence in enumerate(sequences):
            following = texts[number][len(sequence.ledger) :][:NUM_DRAFTS]
            num_right = rng.randrange(NUM_DRAFTS + 1)
            copied = following[:num_right] + [(token + 1) % NUM_TOKENS for token in following[num_right:]]
            chains.append(rng.choice([proposed[number], DraftChain(tuple(copied)), DraftChain()]))
        batch = program.decode_batch(sequences, None, chains)
        if turn % 3 == 0:
            program.abort_pending(batch)
            check_proposals(networks, kind, program, sequences)
            assert program.decode_batch(sequences, None, chains).rows == batch.rows
        accept(program, batch)
        if turn % 4 == 1:
            pause(program, sequences[turn % 3], turn // 4)
        if turn == 8:
            program.append_forced_tokens(sequences[0], [3, 4])
            num_forced = 2
            assert program.propose(sequences[:1], [NUM_DRAFTS]) == [DraftChain()]
            accept(program, program.decode_batch(sequences, None))
    for number, sequence in enumerate(sequences):
        assert sequence.num_generated_tokens > 13
        if are_same and not (number == 0 and num_forced):
            assert sequence.ledger == texts[number][: len(sequence.ledger)]
        program.release(sequence)
    assert program.pool.num_free_positions == program.pool.num_positions
    assert free_of_drafter(program)


def free_of_drafter(program: Program) -> bool:
    speculation = program._speculation
    assert speculation is not None
    return speculation._pool.num_free_positions == speculation._pool.num_positions


def test_prefixes_bring_what_was_read_along(networks: Networks, kind: str) -> None:
    """Taken between units, before and after something was proposed, and from a pending unit that ends its sequence;
    continued by nothing, and by other tokens than its own sequence went on with.
    """
    program = program_of(networks, kind)
    prompt = PROMPTS[2]
    first = prefilled(program, program.start(prompt, LENGTH, GREEDY))
    kept = [program.prefix(first)]
    program.propose([first], [NUM_DRAFTS])
    accept(program, program.decode_batch([first], None, [DraftChain((1, 2))]))
    program.propose([first], [NUM_DRAFTS])
    kept.append(program.prefix(first))
    batch = program.decode_batch([first], None, [DraftChain((7,))])
    kept.append(program.prefix(first))
    program.commit(batch, [STOP])
    for prefix in kept:
        assert prefix.drafting is not None
        for more in ([], [5], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2]):
            sequence = program.start([*prefix.tokens, *more], LENGTH, GREEDY, prefix=prefix)
            assert sequence.execution_frontier == len(prefix.tokens)
            prefilled(program, sequence)
            check_proposals(networks, kind, program, [sequence])
            accept(program, program.decode_batch([sequence], None, [DraftChain((3,))]))
            check_proposals(networks, kind, program, [sequence])
            program.release(sequence)
        prefix.release()
    assert free_of_drafter(program)


def test_without_room_for_it_a_sequence_goes_on_without_drafts(networks: Networks, kind: str) -> None:
    program = program_of(networks, kind)
    speculation = program._speculation
    assert speculation is not None
    hoarder = speculation._pool.new_cache(speculation._pool.num_positions)
    assert hoarder.reserve(speculation._pool.num_positions)
    sequence = prefilled(program, program.start(PROMPTS[2], LENGTH, GREEDY))
    assert program.propose([sequence], [NUM_DRAFTS]) == [DraftChain()]
    hoarder.release()
    assert program.propose([sequence], [NUM_DRAFTS]) == [DraftChain()]
    accept(program, program.decode_batch([sequence], None))
    assert program.prefix(sequence).drafting is None
    pause(program, sequence, 1)
    accept(program, program.decode_batch([sequence], None))
    assert program.propose([sequence], [NUM_DRAFTS]) == [DraftChain()]
    # Run again from its beginning it has them again.
    pause(program, sequence, 0)
    check_proposals(networks, kind, program, [sequence])
    accept(program, program.decode_batch([sequence], None))
    assert sequence.ledger == ordinary(networks.model_of(kind), GREEDY)[2][: len(sequence.ledger)]


def test_blocks_end_with_the_context(networks: Networks, kind: str) -> None:
    """The last drafts that fit stand at the model's last position."""
    largest = networks.model_of(kind).max_context
    program = program_of(networks, kind, num_cache_positions=largest + 64, prefill_chunk_tokens=128)
    prompt = [place % 40 for place in range(largest - 3)]
    sequence = prefilled(program, program.start(prompt, 4, GREEDY))
    for num_left in (2, 1):
        width = min(NUM_DRAFTS, num_left)
        found = program.propose([sequence], [num_left])[0].tokens
        assert list(found) == networks.expected(kind, sequence.ledger, num_left, width, GREEDY)
        accept(program, program.decode_batch([sequence], None))


def fail(*_: object) -> torch.Tensor:
    raise RuntimeError("fault")


def test_nobody_fails_because_a_drafter_cannot_read(
    networks: Networks, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure is raised where drafts are asked for, once; the sequence has none until it is run again."""
    program = program_of(networks, kind)
    with monkeypatch.context() as patched:
        patched.setattr(networks.predictor_of(kind) or getattr(networks, kind), reading_of(kind), fail)
        sequence = prefilled(program, program.start(PROMPTS[2], LENGTH, GREEDY))
    with pytest.raises(RuntimeError, match="fault"):
        program.propose([sequence], [NUM_DRAFTS])
    assert program.propose([sequence], [NUM_DRAFTS]) == [DraftChain()]
    assert free_of_drafter(program)
    accept(program, program.decode_batch([sequence], None))
    # A copy brings back what it has, and nothing of it is run again.
    pause(program, sequence, 1)
    accept(program, program.decode_batch([sequence], None))
    assert sequence.drafting is None
    pause(program, sequence, 0)
    check_proposals(networks, kind, program, [sequence])


def test_a_failure_that_nobody_asks_for_keeps_nothing_alive(
    networks: Networks, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory of a program that is no longer used is given back at once, without a search for cycles."""
    program = program_of(networks, kind)
    sequence = program.start(PROMPTS[2], LENGTH, GREEDY)
    with monkeypatch.context() as patched:
        patched.setattr(networks.predictor_of(kind) or getattr(networks, kind), reading_of(kind), fail)
        prefilled(program, sequence)
    assert sequence.drafting is None
    known = weakref.ref(program)
    gc.disable()
    try:
        del program, sequence
        assert known() is None
    finally:
        gc.enable()


def test_what_cannot_be_read_of_a_prefix_leaks_nothing(
    networks: Networks, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_of(networks, kind)
    sequence = prefilled(program, program.start(PROMPTS[2], LENGTH, GREEDY))
    with monkeypatch.context() as patched:
        patched.setattr(networks.predictor_of(kind) or getattr(networks, kind), reading_of(kind), fail)
        with pytest.raises(RuntimeError, match="fault"):
            program.prefix(sequence)
    with monkeypatch.context() as patched:
        prefix = program.prefix(sequence)
        patched.setattr(DraftContext, "fork", fail)
        with pytest.raises(RuntimeError, match="fault"):
            program.start([*prefix.tokens, 1, 2], LENGTH, GREEDY, prefix=prefix)
    prefix.release()
    check_proposals(networks, kind, program, [sequence])
    program.release(sequence)
    assert program.pool.num_free_positions == program.pool.num_positions
    assert free_of_drafter(program)


def reading_of(kind: str) -> str:
    """The method by which a network reads."""
    return "append_context" if kind.startswith("dflash") else "forward_rows"


def test_a_faulty_pass_leaves_what_was_read(networks: Networks, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_of(networks, kind)
    sequence = prefilled(program, program.start(PROMPTS[1], LENGTH, GREEDY))

    class Failing(RowMaskTable):
        def fill(self, row: int, drafts: Sequence[int], words: object) -> object:
            raise MemoryError("fault")

    with pytest.raises(MemoryError):
        program.decode_batch([sequence], Failing({0: [1]}), [DraftChain((3,))])
    check_proposals(networks, kind, program, [sequence])
    accept(program, program.decode_batch([sequence], None, [DraftChain((3,))]))
    with monkeypatch.context() as patched:
        patched.setattr(networks.predictor_of(kind) or networks.model, "head", fail)
        with pytest.raises(RuntimeError):
            program.propose([sequence], [NUM_DRAFTS])
    accept(program, program.decode_batch([sequence], None, [DraftChain((3,))]))
    check_proposals(networks, kind, program, [sequence])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_are_no_drafts(
    networks: Networks, monkeypatch: pytest.MonkeyPatch, bad: float
) -> None:
    """Also where they stand on a way that is not the one drawn: drafts must not be there or not for what they are."""
    program = program_of(networks, "dflash2")
    sequence = prefilled(program, program.start(PROMPTS[1], LENGTH, SamplingParameters(seed=1)))
    [drawn] = program.propose([sequence], [2])
    found = networks.dflash2.candidates

    def broken(*arguments: object) -> list[Candidates]:
        candidates: list[Candidates] = found(*arguments)
        for row in candidates:
            [other, *_] = [place for place in range(row.ids.shape[1]) if row.ids[0, place] != drawn.tokens[0]]
            row.scores[1, other] = bad
        return candidates

    monkeypatch.setattr(networks.dflash2, "candidates", broken)
    assert program.propose([sequence], [1])[0].tokens == drawn.tokens[:1]
    assert program.propose([sequence], [2]) == [DraftChain()]


def test_what_does_not_fit_is_refused(networks: Networks) -> None:
    for kind, num_drafts in [("mtp", 0), ("mtp", 6), ("dflash", 8), ("dflash2", 0)]:
        with pytest.raises(ValueError, match="can be drafted"):
            networks.drafter(kind, num_drafts)
    with pytest.raises(ValueError, match="more drafts than"):
        program_of(networks, "mtp", num_draft_tokens=NUM_DRAFTS - 1)
    program = program_of(networks, None)
    sequence = prefilled(program, program.start(PROMPTS[0], LENGTH, GREEDY))
    assert program.propose([sequence], [4]) == [DraftChain()]
    accept(program, program.decode_batch([sequence], None, [DraftChain((1, 2))]))
