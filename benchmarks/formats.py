"""What the number formats of a CPU do to the embedded model: tokens a second, and how far its answers move.

`python -m benchmarks.formats [--quick] [--json]`. Rates are those of the model alone on one thread, by CPU time: the
best of several rounds, in which the formats take turns. Distances are taken at every position of fixed texts, against
float32: how often the best token is the same, the Kullback-Leibler divergence of the distributions in nats, and the
loss on the texts in nats a token.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import torch

from benchmarks import texts
from infernix.models import LoadedModel, open_model
from infernix.models.model import LanguageModel, ModelRow

DTYPES = ("float32", "float16", "int8")
BATCHES = (1, 8)
CONTEXT_TOKENS = 150
PROMPT_TOKENS = 512
PROSE = (
    "The harbour froze early that year. By the second week of November the ferries had stopped, and whoever wanted to"
    " cross to the island walked, in a line, with a rope between them. Nobody spoke much. The ice did: it groaned at"
    " noon, when the sun stood on it, and cracked like a whip after dark.",
    "To repot a plant, water it the day before. Choose a pot that is one size larger, with holes in the bottom. Loosen"
    " the old soil from the roots with your fingers, cut off what is brown and soft, and set the plant at the same"
    " depth as before. Fill in fresh soil, press it down lightly, and keep it out of the sun for a week.",
    "def mean(values):\n    if not values:\n        raise ValueError\n    return sum(values) / len(values)\n",
)
JSON_VALUES = (texts.PERSON, texts.ORDER, texts.FLAT, texts.NESTED, texts.ITEMS)


@dataclass(frozen=True)
class Distance:
    """Of a format from float32, over `num_positions` positions."""

    num_positions: int
    greedy_agreement: float
    mean_divergence: float
    log_loss: float


@torch.inference_mode()
def log_laws(model: LanguageModel, tokens: Sequence[int]) -> torch.Tensor:
    """The logarithms of what may follow each token, float64 [len(tokens), num_logits]."""
    return model.forward(tokens, model.new_cache(len(tokens)), len(tokens)).double().log_softmax(dim=-1)


def distance(reference: LanguageModel, other: LanguageModel, tokenized: Sequence[Sequence[int]]) -> Distance:
    """How far `other` is from `reference` over texts of at least two tokens."""
    agreements, divergences, losses = [], [], []
    for tokens in tokenized:
        p, q = log_laws(reference, tokens), log_laws(other, tokens)
        agreements.append(p.argmax(dim=-1) == q.argmax(dim=-1))
        divergences.append((p.exp() * (p - q)).sum(dim=-1))
        losses.append(-q[:-1].gather(1, torch.tensor(tokens[1:]).unsqueeze(1)))
    agreement = torch.cat(agreements).double().mean().item()
    divergence, loss = torch.cat(divergences).mean().item(), torch.cat(losses).mean().item()
    return Distance(sum(map(len, tokenized)), agreement, divergence, loss)


def decode_seconds(model: LanguageModel, num_rows: int, num_steps: int) -> float:
    """CPU seconds for one new token in each of `num_rows` sequences, the least of `num_steps`."""
    pool = model.new_pool(num_rows * (CONTEXT_TOKENS + num_steps + 32), num_rows)
    caches = [pool.new_cache(CONTEXT_TOKENS + num_steps) for _ in range(num_rows)]
    for row, cache in enumerate(caches):
        model.forward([(7 * row + 13 * place) % model.num_logits for place in range(CONTEXT_TOKENS)], cache, 0)
    return min(_cpu_seconds(model, [ModelRow([5], cache) for cache in caches]) for _ in range(num_steps))


def prefill_seconds(model: LanguageModel) -> float:
    """CPU seconds for a prompt of PROMPT_TOKENS tokens."""
    tokens = [13 * place % model.num_logits for place in range(PROMPT_TOKENS)]
    return _cpu_seconds(model, [ModelRow(tokens, model.new_cache(PROMPT_TOKENS))])


def _cpu_seconds(model: LanguageModel, rows: Sequence[ModelRow]) -> float:
    start = time.process_time()
    model.forward_rows(rows)
    return time.process_time() - start


def measure(models: dict[str, LoadedModel], num_rounds: int, num_steps: int) -> list[dict[str, object]]:
    """One record a format; the first is what the others are compared with."""
    reference = next(iter(models.values()))
    values = [json.dumps(value, ensure_ascii=False) for value in JSON_VALUES]
    tokenized = [reference.tokenizer.encode(text, allow_special=False) for text in (*PROSE, *values)]
    decode = {(name, batch): float("inf") for name in models for batch in BATCHES}
    prefill = dict.fromkeys(models, float("inf"))
    for _ in range(num_rounds):
        for name, loaded in models.items():
            prefill[name] = min(prefill[name], prefill_seconds(loaded.model))
            for batch in BATCHES:
                decode[name, batch] = min(decode[name, batch], decode_seconds(loaded.model, batch, num_steps))
    return [
        {
            "dtype": name,
            **{f"tokens_per_second_batch_{batch}": batch / decode[name, batch] for batch in BATCHES},
            f"prefill_{PROMPT_TOKENS}_seconds": prefill[name],
            **asdict(distance(reference.model, loaded.model, tokenized)),
        }
        for name, loaded in models.items()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the records."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    models = {dtype: open_model(dtype=dtype, device="cpu") for dtype in DTYPES}
    records = measure(models, num_rounds=1 if options.quick else 5, num_steps=3 if options.quick else 10)
    if options.json:
        print(json.dumps({"rows": records}))
    else:
        for record in records:
            print(
                "  ".join(
                    f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                    for key, value in record.items()
                )
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
