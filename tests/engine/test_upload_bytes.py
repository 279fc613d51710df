"""Bytes of masks that went to a device: of committed units, and of whom they were for. The device is a CPU here."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from numpy.typing import ArrayLike

from infernix.options import SamplingParameters
from infernix.program.program import Program
from support.driven_core import VOCABULARY, DrivenCore
from support.scripted_model import preferring
from support.vocabularies import EOS_IDS, nasty_token

A, EOS = nasty_token("a"), EOS_IDS[0]
ROW_BYTES = 4 * VOCABULARY.num_mask_words


def always_a(_: tuple[int, ...]) -> ArrayLike:
    return preferring(VOCABULARY.num_tokens, {A: 5.0, EOS: 1.0})


def driven(*, on_device: bool = True, program_class: type[Program] = Program) -> DrivenCore:
    make: Any = partial(program_class, samples_on_device=on_device)
    return DrivenCore(always_a, max_concurrency=3, program_class=make)


@pytest.mark.parametrize("on_device", [False, True])
def test_each_position_is_sent_once_where_its_token_is_chosen(on_device: bool) -> None:
    bench = driven(on_device=on_device)
    greedy = bench.submit([A], language=[b"aaa"])
    drawn = bench.submit([A], language=[b"aaa"], sampling=SamplingParameters(seed=1))
    free = bench.submit([A], 3)
    results = [bench.finish(request) for request in (greedy, drawn, free)]
    assert [result.text for result in results] == ["aaa"] * 3
    assert results[2].constraint is None
    uploads = []
    for result in results[:2]:
        assert result.constraint is not None
        assert result.constraint.mask_positions == 4  # three letters and the end
        uploads.append(result.constraint.mask_upload_bytes)
    # What is drawn is drawn on the host, from masks that never leave it.
    assert uploads == ([4 * ROW_BYTES, 0] if on_device else [0, 0])
    assert bench.core.statistics().counters.mask_upload_bytes == sum(uploads)


def test_what_was_sent_for_a_cancelled_request_counts() -> None:
    bench = driven()
    request = bench.submit([A], language=[b"aaaaaa"])
    while request.session.num_tokens < 3:
        bench.turn()
    bench.core.cancel(request)
    result = bench.finish(request)
    assert result.constraint is not None
    assert result.constraint.mask_upload_bytes == 3 * ROW_BYTES
    assert bench.core.statistics().counters.mask_upload_bytes == 3 * ROW_BYTES


def test_a_failed_request_counts_what_was_sent_for_what_it_has_committed() -> None:
    class Failing(Program):
        def decode_batch(self, *args: Any) -> Any:
            batch = super().decode_batch(*args)
            if batch.rows[0].sequence.num_generated_tokens == 2:
                self.abort_pending(batch)
                raise OSError("behind the pass")
            return batch

    bench = driven(program_class=Failing)
    with pytest.raises(OSError, match="behind the pass"):
        bench.finish(bench.submit([A], language=[b"aaa"]))
    assert bench.core.statistics().counters.mask_upload_bytes == 2 * ROW_BYTES
