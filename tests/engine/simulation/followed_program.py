"""A Program whose rounds are held against their definition while they are committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from infernix.program.drafters.chain import NO_DRAFTS, DraftChain, DraftSource
from infernix.program.pending import PendingBatch, RowDecision
from infernix.program.prefix import CachedPrefix
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from tests.engine.simulation.alone import Alone
from tests.engine.simulation.toy_drafter import ToyDrafter
from tests.engine.simulation.watching import Hook, WatchedProgram
from tests.engine.simulation.world import VOCABULARY

MIN_MATCH = 4


class FollowedProgram(WatchedProgram):
    """Checks what drafts are, and, for the sequences that `alone_of` has something for, what rounds come to.

    `happened` counts drafted rows by where their drafts are from, and those of them that brought a draft.
    """

    def __init__(
        self,
        program: Program,
        hook: Hook,
        alone_of: Callable[[PhysicalSequence], Alone | None],
        happened: Counter[str],
        drafter: ToyDrafter | None,
    ) -> None:
        super().__init__(program, hook)
        self._alone_of = alone_of
        self._happened = happened
        self._drafter = drafter
        self._chains: dict[int, DraftChain] = {}

    def propose(self, sequences: Sequence[PhysicalSequence], extents: Sequence[int]) -> list[DraftChain]:
        chains: list[DraftChain] = super().__getattr__("propose")(sequences, extents)
        for sequence, extent, chain in zip(sequences, extents, chains, strict=True):
            assert len(chain) <= extent
            self._check_drafts(sequence, chain)
        return chains

    def decode_batch(self, sequences: Sequence[PhysicalSequence], masks: Any, drafts: Any = None) -> PendingBatch:
        self._chains = {}
        for sequence, drafted in zip(sequences, drafts or [NO_DRAFTS] * len(sequences), strict=True):
            self._chains[id(sequence)] = drafted
            self._check_drafts(sequence, drafted)
        batch: PendingBatch = super().__getattr__("decode_batch")(sequences, masks, drafts)
        return batch

    def prefill_chunk(self, sequence: PhysicalSequence, masks: Any, *, sample: bool = True) -> PendingBatch | None:
        self._chains = {}
        batch: PendingBatch | None = super().__getattr__("prefill_chunk")(sequence, masks, sample=sample)
        return batch

    def commit(self, batch: PendingBatch, decisions: Sequence[RowDecision]) -> None:
        super().__getattr__("commit")(batch, decisions)
        chains, self._chains = self._chains, {}
        for row in batch.rows:
            chain = chains.get(id(row.sequence), NO_DRAFTS)
            if chain:
                is_guess = chain.source is DraftSource.NETWORK and self._drafter is None
                source = "guessed" if is_guess else str(chain.source)
                self._happened[f"rows with {source} drafts"] += 1
                self._happened[f"rows with accepted {source} drafts"] += row.num_accepted > 0
                self._happened["rows with drawn drafts"] += chain.proposals is not None
            alone = self._alone_of(row.sequence)
            if alone is not None:
                expected = alone.step(chain)
                assert row.tokens == expected, "the round did not come to what its definition says"
                assert (row.failure is None) == (alone.transcript.error is None)

    def prefix(self, sequence: PhysicalSequence) -> CachedPrefix:
        prefix: CachedPrefix = super().__getattr__("prefix")(sequence)
        if self._drafter is not None and self._drafter.is_roomy:
            assert (prefix.drafting is None) == (sequence.drafting is None), "what was read was not remembered"
        return prefix

    def append_forced_tokens(self, sequence: PhysicalSequence, tokens: Sequence[int]) -> None:
        super().__getattr__("append_forced_tokens")(sequence, tokens)
        alone = self._alone_of(sequence)
        assert alone is None or alone.step() == tuple(tokens)

    def _check_drafts(self, sequence: PhysicalSequence, chain: DraftChain) -> None:
        """Copies stand in the text behind what it ends with; a network's are those of the whole text read at once."""
        if not chain:
            return
        ledger = tuple(sequence.ledger)
        if chain.source is DraftSource.COPY:
            places = range(MIN_MATCH, len(ledger) - len(chain) + 1)
            assert any(
                ledger[place - MIN_MATCH : place] == ledger[-MIN_MATCH:]
                and ledger[place : place + len(chain)] == chain.tokens
                for place in places
            ), "this was never said"
            assert not any(VOCABULARY.classes[token] for token in chain.tokens), "a control token was copied"
            return
        if self._drafter is None:
            return  # somebody's guesses
        expected = self._drafter.expected(ledger, len(chain), sequence.sampling)
        assert chain.tokens == expected.tokens, "the drafter's memory of the text is not the text's"
        assert (chain.proposals is None) == (expected.proposals is None)
