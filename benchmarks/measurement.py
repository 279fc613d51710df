"""How one case is measured: a trial of each engine first, then rounds in which the engines take turns.

All times are those of single calls, by `time.perf_counter_ns`, with Python's garbage collector switched off; the clock
itself costs some 50 ns a reading. Times of the same call in several rounds are reduced to their median first.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.engines import NUM_DRAFTS, Engine, Refused, Session

NUM_FIRST_TOKENS = 100
_clock = time.perf_counter_ns


@dataclass(frozen=True)
class Effort:
    """How much is done.

    max_tokens       tokens of all texts of a case together; what is beyond is cut off
    num_rounds       rounds of an engine on a case, unless `round_seconds` is used up before
    round_seconds    time for the rounds of an engine on a case; one round is always made
    trial_seconds    time for the trial of an engine on a case
    """

    max_tokens: int = 400
    num_rounds: int = 9
    round_seconds: float = 6.0
    trial_seconds: float = 10.0


FULL = Effort()
QUICK = Effort(max_tokens=120, num_rounds=3, round_seconds=0.8, trial_seconds=3.0)


@dataclass(frozen=True)
class TokenizedCase:
    """A case with the token ids of its texts; those of `outside` are whole."""

    case: Case
    texts: list[list[int]]
    outside: list[list[int]]


def cut(texts: Sequence[list[int]], max_tokens: int) -> list[list[int]]:
    """The first `max_tokens` tokens, taken from all texts alike."""
    kept = [len(text) for text in texts]
    while sum(kept) > max_tokens:
        kept[kept.index(max(kept))] -= 1
    return [text[:length] for text, length in zip(texts, kept, strict=True)]


@dataclass
class Trial:
    """What an engine can do with a case. `reason` says why it cannot be measured, `notes` what is different."""

    usable: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reason: str | None = None


def try_out(engine: Engine, tokenized: TokenizedCase, spell: Any, seconds: float) -> Trial:
    """Compiles and walks once, in a child process, because a call that does not come back cannot be stopped here.

    `spell(token)` is a token's text, for messages.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_trial, args=(sender, engine, tokenized), daemon=True)
    begin = time.perf_counter()
    child.start()
    sender.close()
    trial = Trial()
    compile_seconds: float | None = None
    num_rows = 0
    num_all_rows = sum(len(text) for text in tokenized.texts)
    done = False
    try:
        while not done and receiver.poll(max(0.0, begin + seconds - time.perf_counter())):
            kind, *details = receiver.recv()
            match kind:
                case "refused":
                    trial.reason = f"refused: {details[0]}"
                    done = True
                case "failed":
                    trial.reason = f"failed: {details[0]}"
                    done = True
                case "compiled":
                    compile_seconds = details[0]
                case "rows":
                    num_rows = details[0]
                case "text":
                    trial.usable.append(details[0])
                case "illegal":
                    index, position, why = details
                    token = spell(tokenized.texts[index][position])
                    trial.notes.append(f"refuses text {index + 1} at token {position} ({token!r}){why}")
                case "outside":
                    trial.reason = f"another language: takes {tokenized.case.outside[details[0]][:60]!r}"
                case "done":
                    done = True
    except EOFError:
        trial.reason = "crashed"
        done = True
    if not done:
        child.kill()
        if compile_seconds is None:
            trial.reason = f"too slow: no compilation within {seconds:g} s, stopped"
        else:
            trial.reason = (
                f"too slow: compiled in {compile_seconds:.1f} s, then {num_rows} of {num_all_rows} rows, "
                f"stopped after {seconds:g} s"
            )
    child.join()
    receiver.close()
    if trial.reason is None and not trial.usable:
        trial.reason = "; ".join(trial.notes)
    return trial


def _trial(sender: Connection, engine: Engine, tokenized: TokenizedCase) -> None:
    try:
        begin = time.perf_counter()
        session = engine.compile(tokenized.case)
        sender.send(("compiled", time.perf_counter() - begin))
        num_rows = 0
        for index, text in enumerate(tokenized.texts):
            walk = session.begin()
            for position, token in enumerate(text):
                walk.fill()
                legal = bool((int(walk.row[token >> 5]) >> (token & 31)) & 1)
                accepted = walk.accept(token)
                if not (legal and accepted):
                    why = ", though its mask has it" if legal else ", though it accepts it" if accepted else ""
                    error = walk.error().strip().partition("\n")[0][:120]
                    sender.send(("illegal", index, position, why + (f": {error}" if error else "")))
                    break
                num_rows += 1
                if num_rows % 8 == 0:
                    sender.send(("rows", num_rows))
            else:
                sender.send(("text", index))
        for index, text in enumerate(tokenized.outside):
            walk = session.begin()
            if all(walk.accept(token) for token in text) and walk.may_end():
                sender.send(("outside", index))
        sender.send(("done",))
    except Refused as error:
        sender.send(("refused", str(error)))
    except Exception as error:
        sender.send(("failed", f"{type(error).__name__}: {error}"[:200]))


@dataclass
class Samples:
    """Nanoseconds, one list a round; lists of lists are by position along the texts."""

    compile: list[int] = field(default_factory=list)
    cold: list[list[int]] = field(default_factory=list)
    warm: list[list[int]] = field(default_factory=list)
    cold_accept: list[list[int]] = field(default_factory=list)
    warm_accept: list[list[int]] = field(default_factory=list)
    cold_look_ahead: list[list[int]] = field(default_factory=list)
    warm_look_ahead: list[list[int]] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    kept_bytes: int | None = None


def measure_round(engine: Engine, case: Case, texts: list[list[int]], samples: Samples) -> None:
    """One round: two fresh compilations, one for masks and accepts, one for look-ahead."""
    gc.collect()
    gc.disable()
    try:
        session = _compile(engine, case, samples)
        _walk(session, texts, samples.cold, samples.cold_accept, samples.unknown if not samples.unknown else [])
        for _ in range(2):
            _walk(session, texts, samples.warm, samples.warm_accept, None)
        if len(samples.cold) == 1:
            samples.kept_bytes = session.kept_bytes()
        del session

        session = _compile(engine, case, samples)
        _look_ahead(session, texts, samples.cold_look_ahead)
        _look_ahead(session, texts, samples.warm_look_ahead)
    finally:
        gc.enable()


def _compile(engine: Engine, case: Case, samples: Samples) -> Session:
    begin = _clock()
    session = engine.compile(case)
    samples.compile.append(_clock() - begin)
    return session


def _walk(
    session: Session,
    texts: list[list[int]],
    fills: list[list[int]],
    accepts: list[list[int]],
    unknown: list[int] | None,
) -> None:
    """Masks and accepts along the texts; `unknown` receives the positions whose row had to be worked out."""
    fill_times: list[int] = []
    accept_times: list[int] = []
    for text in texts:
        walk = session.begin()
        fill, accept = walk.fill, walk.accept
        for token in text:
            made = session.num_rows_made() if unknown is not None else None
            begin = _clock()
            fill()
            filled = _clock()
            accept(token)
            accepted = _clock()
            if unknown is not None and made is not None and session.num_rows_made() != made:
                unknown.append(len(fill_times))
            fill_times.append(filled - begin)
            accept_times.append(accepted - filled)
    fills.append(fill_times)
    accepts.append(accept_times)


def _look_ahead(session: Session, texts: list[list[int]], times: list[list[int]]) -> None:
    """Look-ahead over NUM_DRAFTS tokens at every 16th position, so that no place is met by two of them."""
    found: list[int] = []
    for text in texts:
        walk = session.begin()
        for start in range(0, len(text) - NUM_DRAFTS, NUM_DRAFTS + 1):
            drafts = text[start : start + NUM_DRAFTS]
            begin = _clock()
            walk.look_ahead(drafts)
            found.append(_clock() - begin)
            for token in text[start : start + NUM_DRAFTS + 1]:
                walk.accept(token)
    times.append(found)


def summary(samples: Samples, texts: list[list[int]]) -> dict[str, Any]:
    """The figures of a row: microseconds unless the name says otherwise.

    The beginning of a request is the sum of its calls' medians: as one stretch of milliseconds it would hardly ever go
    by without another process getting the core.
    """
    cold = np.median(samples.cold, axis=0)
    compile_time = np.median(samples.compile)
    calls = cold + np.median(samples.cold_accept, axis=0)
    first_tokens = compile_time + calls[:NUM_FIRST_TOKENS].sum()
    return {
        "compile_ms": _rounded(compile_time / 1e6),
        "first_100_ms": _rounded(first_tokens / 1e6),
        "cold_us": distribution(cold),
        "unknown_us": {"num_rows": len(samples.unknown), **distribution(cold[samples.unknown])}
        if samples.unknown
        else None,
        "warm_us": distribution(np.median(samples.warm, axis=0)),
        "accept_us": {"cold": _mean(samples.cold_accept), "warm": _mean(samples.warm_accept)},
        "lookahead15_us": {"cold": _mean(samples.cold_look_ahead), "warm": _mean(samples.warm_look_ahead)},
        "kept_bytes": samples.kept_bytes,
        "num_tokens": sum(map(len, texts)),
        "num_rounds": len(samples.cold),
    }


EMPTY_SUMMARY: dict[str, Any] = dict.fromkeys(
    (
        "compile_ms",
        "first_100_ms",
        "cold_us",
        "unknown_us",
        "warm_us",
        "accept_us",
        "lookahead15_us",
        "kept_bytes",
        "num_tokens",
        "num_rounds",
    )
)


def distribution(nanoseconds: Any) -> dict[str, float]:
    """Mean, quantiles (nearest rank) and maximum in microseconds."""
    values = np.sort(np.asarray(nanoseconds, float)) / 1e3
    quantiles = {f"p{percent}": values[max(0, -(-len(values) * percent // 100) - 1)] for percent in (50, 95, 99)}
    figures = {"mean": values.mean(), **quantiles, "max": values[-1]}
    return {name: _rounded(value) for name, value in figures.items()}


def _mean(rounds: list[list[int]]) -> float | None:
    if not rounds or not rounds[0]:
        return None
    return _rounded(np.median(rounds, axis=0).mean() / 1e3)


def _rounded(value: Any) -> float:
    return round(float(value), 2)
