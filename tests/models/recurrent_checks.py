"""What every cache with recurrent state must do: going back, branching off, leaving and coming back."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from infernix.models.model import ModelRow
from infernix.models.recurrent_state import MAX_STEP_TOKENS

CLOSE = {"atol": 3e-4, "rtol": 3e-4}


def assert_like_fresh(model: Any, cache: Any, tokens: list[int], state_of: Any) -> None:
    """The cache stands where a new one stands that ran these tokens only, up to rounding."""
    assert cache.num_tokens == len(tokens)
    fresh = model.new_cache(len(tokens) + 1)
    model.forward(tokens, fresh)
    for ours, theirs in zip(state_of(cache), state_of(fresh), strict=True):
        torch.testing.assert_close(ours, theirs, **CLOSE)
    if cache.reserve(len(tokens) + 1):
        logits = model.forward([3], cache)
        torch.testing.assert_close(logits, model.forward([3], fresh), atol=2e-4, rtol=2e-4)


class RecurrentChecks:
    """Tests of the fixture `model`; a subclass says what a cache's state and usual tokens are."""

    vocab_size: int

    def state_of(self, cache: Any) -> Sequence[torch.Tensor]:
        """Copies of all that a cache keeps besides keys and values."""
        raise NotImplementedError

    def random_tokens(self, num_tokens: int, start: int = 0) -> list[int]:
        """The same tokens every time."""
        raise NotImplementedError

    def assert_like_fresh(self, model: Any, cache: Any, tokens: list[int]) -> None:
        """The cache stands where a new one stands that ran these tokens only, up to rounding."""
        assert_like_fresh(model, cache, tokens, self.state_of)

    def test_going_back_nowhere_and_wholly_is_exact(self, model: Any) -> None:
        for num_new in (1, 5, MAX_STEP_TOKENS + 1):
            cache = model.new_cache(100)
            model.forward(self.random_tokens(20), cache)
            before = self.state_of(cache)
            logits = model.forward(self.random_tokens(num_new, 20), cache)
            after = self.state_of(cache)
            cache.truncate(20 + num_new)
            assert all(torch.equal(ours, theirs) for ours, theirs in zip(self.state_of(cache), after, strict=True))
            cache.truncate(20)
            assert all(torch.equal(ours, theirs) for ours, theirs in zip(self.state_of(cache), before, strict=True))
            again = model.forward(self.random_tokens(num_new, 20), cache)
            assert torch.equal(again, logits)
            assert all(torch.equal(ours, theirs) for ours, theirs in zip(self.state_of(cache), after, strict=True))

    def test_a_long_pass_goes_back_where_logits_of_several_tokens_were_wanted(self, model: Any) -> None:
        """A forced span before drafts may be long; a chunk of a prompt is not recorded."""
        tokens = self.random_tokens(90)
        for num_kept in (1, 20, MAX_STEP_TOKENS, MAX_STEP_TOKENS + 1, 66, 69):
            cache = model.new_cache(100)
            model.forward(tokens[:20], cache)
            model.forward(tokens[20:], cache, 5)
            cache.truncate(20 + num_kept)
            self.assert_like_fresh(model, cache, tokens[: 20 + num_kept])

    def test_rows_of_a_round_go_back_each_by_itself(self, model: Any) -> None:
        pool = model.new_pool(512, 4)
        caches = [pool.new_cache(100) for _ in range(4)]
        histories = [self.random_tokens(5 + 9 * place, 31 * place) for place in range(4)]
        for cache, history in zip(caches, histories, strict=True):
            model.forward(history, cache)
        generator = random.Random(4)
        for _ in range(6):
            rounds = [[generator.randrange(self.vocab_size) for _ in range(generator.randrange(1, 9))] for _ in caches]
            model.forward_rows([ModelRow(tokens, cache) for tokens, cache in zip(rounds, caches, strict=True)])
            for cache, history, tokens in zip(caches, histories, rounds, strict=True):
                history += tokens[: generator.randrange(1, len(tokens) + 1)]
                cache.truncate(len(history))
        for cache, history in zip(caches, histories, strict=True):
            self.assert_like_fresh(model, cache, history)

    def test_what_cannot_be_gone_back_to_is_refused(self, model: Any) -> None:
        cache = model.new_cache(100)
        model.forward(self.random_tokens(10), cache)
        model.forward(self.random_tokens(4, 10), cache)
        with pytest.raises(ValueError, match="cannot keep 15 of 14"):
            cache.truncate(15)
        with pytest.raises(ValueError, match="no state is kept for 9 of 14"):
            cache.truncate(9)
        cache.truncate(12)
        cache.truncate(10)
        with pytest.raises(ValueError, match="no state is kept for 9 of 10"):
            cache.truncate(9)
        model.forward(self.random_tokens(MAX_STEP_TOKENS + 1), cache)
        with pytest.raises(ValueError, match="no state is kept for 11 of 43"):
            cache.truncate(11)
        cache.truncate(10)
        self.assert_like_fresh(model, cache, self.random_tokens(10))

    def test_forks_have_the_states_that_are_kept(self, model: Any) -> None:
        pool = model.new_pool(512, 4)
        cache = pool.new_cache(100)
        model.forward(self.random_tokens(10), cache)
        model.forward(self.random_tokens(4, 10), cache)
        assert [cache.num_forkable(count) for count in (20, 14, 13, 10, 9, 0)] == [14, 14, 10, 10, 0, 0]
        with pytest.raises(ValueError, match="no state is kept for 13 of 14"):
            cache.fork(13, 50)
        whole, earlier, empty = cache.fork(14, 50), cache.fork(10, 50), cache.fork(0, 50)
        # The original goes on, back and away; the forks do not notice.
        cache.truncate(12)
        model.forward([5, 6, 7], cache)
        self.assert_like_fresh(model, cache, [*self.random_tokens(12), 5, 6, 7])
        cache.release()
        self.assert_like_fresh(model, whole, self.random_tokens(14))
        self.assert_like_fresh(model, earlier, self.random_tokens(10))
        model.forward(self.random_tokens(7), empty)
        self.assert_like_fresh(model, empty, self.random_tokens(7))
        # A fork does not know the pass that its original ran.
        again = whole.fork(15, 50)
        with pytest.raises(ValueError, match="no state is kept for 14 of 15"):
            again.truncate(14)

    def test_a_fork_of_what_is_then_taken_back_stays(self, model: Any) -> None:
        pool = model.new_pool(512, 2)
        cache = pool.new_cache(100)
        model.forward(self.random_tokens(10), cache)
        model.forward(self.random_tokens(6, 10), cache)
        kept = cache.fork(16, 16)
        for count in (14, 12, 10):
            cache.truncate(count)
        self.assert_like_fresh(model, cache, self.random_tokens(10))
        cache.release()
        other = kept.fork(16, 30)
        self.assert_like_fresh(model, other, self.random_tokens(16))

    def test_a_snapshot_restores_every_bit(self, model: Any) -> None:
        pool = model.new_pool(256, 2)
        cache, disturber = pool.new_cache(100), pool.new_cache(100)
        model.forward(self.random_tokens(40), cache)
        model.forward(self.random_tokens(6, 40), cache)
        cache.truncate(43)
        expected = self.state_of(cache)
        snapshot = cache.snapshot()
        assert (snapshot.num_tokens, snapshot.num_bytes > 0) == (43, True)
        continued = model.forward([1, 2], cache)
        cache.release()
        assert pool.num_free_positions == pool.num_positions
        model.forward(self.random_tokens(90), disturber)
        assert cache.reserve(46)
        assert cache.restore(snapshot)
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(self.state_of(cache), expected, strict=True))
        assert torch.equal(model.forward([1, 2], cache), continued)
        with pytest.raises(ValueError, match="holds 45 tokens"):
            cache.restore(snapshot)

    def test_an_empty_snapshot(self, model: Any) -> None:
        pool = model.new_pool(64, 1)
        cache = pool.new_cache(20)
        snapshot = cache.snapshot()
        assert cache.restore(snapshot)
        assert cache.reserve(6)
        model.forward(self.random_tokens(5), cache)
        self.assert_like_fresh(model, cache, self.random_tokens(5))

    def test_random_lives_keep_the_books(self, model: Any) -> None:
        """Many caches of a small pool run, go back, fork, leave and return; each always knows its own tokens."""
        pool = model.new_pool(320, 4)
        generator = random.Random(9)
        alive: list[tuple[Any, list[int]]] = []
        paused = []
        for _ in range(250):
            action = generator.choice(["new", "run", "run", "run", "back", "fork", "release", "pause", "resume"])
            if action == "new":
                alive.append((pool.new_cache(60), []))
            elif action == "resume" and paused:
                snapshot, history = paused.pop()
                cache = pool.new_cache(60)
                if cache.restore(snapshot):
                    alive.append((cache, history))
                else:
                    paused.append((snapshot, history))
            elif alive:
                place = generator.randrange(len(alive))
                cache, history = alive[place]
                if action == "run":
                    tokens = [generator.randrange(self.vocab_size) for _ in range(generator.choice([1, 1, 3, 8, 40]))]
                    if cache.reserve(len(history) + len(tokens)):
                        model.forward(tokens, cache)
                        history += tokens
                elif action == "back":
                    count = max(0, len(history) - generator.randrange(4))
                    try:
                        cache.truncate(count)
                    except ValueError:
                        assert cache.num_tokens == len(history)
                    else:
                        del history[count:]
                elif action == "fork":
                    count = cache.num_forkable(generator.randrange(len(history) + 1))
                    alive.append((cache.fork(count, 60), history[:count]))
                elif action == "release":
                    alive.pop(place)[0].release()
                else:
                    paused.append((cache.snapshot(), list(history)))
                    cache.release()
                    alive.pop(place)
            for cache, history in alive:
                assert cache.num_tokens == len(history)
        assert sum(len(history) > 0 for _, history in alive) > 1
        for cache, history in alive:
            if history:
                self.assert_like_fresh(model, cache, history)
        for cache, _ in alive:
            cache.release()
        assert (pool.num_free_slots, pool.num_free_positions) == (pool.num_slots, pool.num_positions)
