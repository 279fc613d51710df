"""Small tokenizer.json texts for tests."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SPECIAL = ("<|end|>", "<|user|>", "<|assistant|>")


def byte_characters() -> list[str]:
    """The byte-level alphabet, as the library has it, in its own order."""
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def byte_level(
    *,
    merges: Sequence[tuple[str, str]] = (("Ġ", "a"), ("a", "b"), ("<", "|"), ("e", "n"), ("en", "d"), ("Ċ", "Ċ")),
    special: Sequence[str] = SPECIAL,
    added: Sequence[AddedToken] = (),
    without_bytes: Sequence[str] = (),
    bos: str | None = None,
    first_id: int | None = None,
) -> str:
    """Byte-level BPE: special tokens, from `first_id` on the alphabet and the result of each merge, then `added`."""
    characters = [character for character in byte_characters() if character not in without_bytes]
    tokens = [*characters, *(left + right for left, right in merges)]
    start = len(special) if first_id is None else first_id
    vocab = {token: index for index, token in enumerate(special)}
    vocab.update({token: index for index, token in enumerate(tokens, start=start)})
    model = models.BPE(vocab=vocab, merges=list(merges))
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(special))
    tokenizer.add_tokens(list(added))
    if bos is not None:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    text: str = tokenizer.to_str()
    return text


def byte_fallback(*, prepend_scheme: str | None = None) -> str:
    """BPE with byte fallback and a mark for spaces, as Llama 2 has it."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "▁a", "ab", "▁ab"]
    model = models.BPE(
        vocab={token: index for index, token in enumerate(tokens)},
        merges=[("a", "b"), ("▁", "ab"), ("▁", "a")],
        byte_fallback=True,
        unk_token="<unk>",
        fuse_unk=True,
    )
    tokenizer = Tokenizer(model)
    if prepend_scheme is None:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend_scheme, split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    text: str = tokenizer.to_str()
    return text
