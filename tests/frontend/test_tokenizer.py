"""Bytes and classes of tokens, and what a text can and cannot become."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, models
from tokenizers import Tokenizer as Backend
from transformers import PreTrainedTokenizerFast

from frontend.tokenizer_files import byte_fallback, byte_level
from infernix.errors import InvalidPrompt, ModelLoadError
from infernix.frontend.tokenizer import Tokenizer
from infernix.matching.vocabulary import TokenClass
from infernix.models.embedded import embedded_model_directory

NASTY_TEXTS = [
    "",
    " ",
    "plain words",
    "  leading\t\tand trailing  ",
    "\n\n\r\n\x00\x7f",
    "日本語 العربية русский",
    "👩‍👩‍👧‍👦 e\u0301 \u200b\ufeff",
    "\U0010ffff\ue000",
    "<|end|><|user|> <|en d|> <|end|",
    "a" * 300,
    "ab" * 50 + " ab" * 50,
    '{"key": [1, 2.5e-3, "\\u00e9"]}\n',
    "0123456789 00 1,000",
]

TINY = Tokenizer(byte_level(), eos_tokens=["<|end|>"])


def joined(tokenizer: Tokenizer, ids: list[int]) -> bytes:
    return b"".join(tokenizer.token_bytes(token_id) for token_id in ids)


@pytest.mark.parametrize("text", NASTY_TEXTS)
def test_bytes_of_the_tokens_are_the_bytes_of_the_text(text: str) -> None:
    ids = TINY.encode(text, allow_special=False)
    assert joined(TINY, ids) == text.encode()
    assert TINY.control_ids.isdisjoint(ids)


@given(st.text(alphabet=st.one_of(st.sampled_from("<|end>user ab"), st.characters(exclude_categories=["Cs"]))))
def test_any_text_is_ordinary_tokens(text: str) -> None:
    for candidate in (text, f"<|end|>{text}<|user|>"):
        ids = TINY.encode(candidate, allow_special=False)
        assert joined(TINY, ids) == candidate.encode()
        assert TINY.control_ids.isdisjoint(ids)


def test_special_spellings_are_tokens_only_where_allowed() -> None:
    text = "ab<|user|>ab<|end|>"
    allowed = TINY.encode(text, allow_special=True)
    assert [TINY.token_bytes(token_id) for token_id in allowed] == [b"ab", b"<|user|>", b"ab", b"<|end|>"]
    assert [token_id for token_id in allowed if token_id in TINY.control_ids] == [1, 0]
    assert TINY.encode(text, allow_special=False) != allowed


def test_longer_special_spelling_wins() -> None:
    tokenizer = Tokenizer(byte_level(special=["<e>", "<e><e>"]), eos_tokens=[0])
    assert tokenizer.encode("<e><e><e>", allow_special=True) == [1, 0]


def test_control_tokens_that_strip_white_space() -> None:
    text = byte_level(added=[AddedToken("<|x|>", special=True, lstrip=True, rstrip=True)])
    tokenizer = Tokenizer(text, eos_tokens=["<|end|>"])
    ids = tokenizer.encode("a \n<|x|>\t b", allow_special=True)
    assert [tokenizer.token_bytes(token_id) for token_id in ids] == [b"a", b"<|x|>", b"b"]
    assert joined(tokenizer, tokenizer.encode("a \n<|x|>\t b", allow_special=False)) == b"a \n<|x|>\t b"


def test_added_tokens_of_the_framing_are_control_and_others_are_text() -> None:
    added = [AddedToken("<tool>", special=False, normalized=False), AddedToken("::", special=False, normalized=False)]
    tokenizer = Tokenizer(byte_level(added=added), eos_tokens=["<|end|>"], framing="{{ '<tool>' }}")
    vocabulary = tokenizer.vocabulary()
    (tool,) = tokenizer.encode("<tool>", allow_special=True)
    (colons,) = tokenizer.encode("::", allow_special=False)
    assert vocabulary.classes[tool] == TokenClass.CONTROL
    assert vocabulary.classes[colons] == TokenClass.TEXT
    spelled = tokenizer.encode("a<tool>::<tool>", allow_special=False)
    assert tool not in spelled
    assert colons in spelled
    assert joined(tokenizer, spelled) == b"a<tool>::<tool>"


def test_vocabulary_has_raw_bytes_and_explicit_classes() -> None:
    vocabulary = TINY.vocabulary()
    assert vocabulary.num_tokens == TINY.num_tokens == 3 + 256 + 6
    assert vocabulary.eos_ids == {0}
    assert [TokenClass(value) for value in vocabulary.classes[:4]] == [
        TokenClass.EOS,
        TokenClass.CONTROL,
        TokenClass.CONTROL,
        TokenClass.TEXT,
    ]
    assert set(vocabulary.token_bytes[3:259]) == {bytes([byte]) for byte in range(256)}
    assert vocabulary.token_bytes[259:] == (b" a", b"ab", b"<|", b"en", b"end", b"\n\n")


def test_ids_without_a_token_are_never_legal() -> None:
    tokenizer = Tokenizer(byte_level(first_id=5), eos_tokens=[0])
    vocabulary = tokenizer.vocabulary()
    assert vocabulary.classes[:6].tolist() == [
        TokenClass.EOS,
        TokenClass.CONTROL,
        TokenClass.CONTROL,
        TokenClass.NEVER,
        TokenClass.NEVER,
        TokenClass.TEXT,
    ]
    assert vocabulary.token_bytes[3:5] == (b"", b"")


def test_added_token_whose_id_does_not_fit_is_refused() -> None:
    text = byte_level(added=[AddedToken("<late>", special=True)])
    assert '"id":265' in text
    with pytest.raises(ModelLoadError, match="added token '<late>' cannot have the id 900"):
        Tokenizer(text.replace('"id":265', '"id":900'), eos_tokens=[0])


def test_several_end_tokens_by_id_and_spelling() -> None:
    tokenizer = Tokenizer(byte_level(), eos_tokens=[0, "<|user|>"])
    assert tokenizer.eos_ids == {0, 1}
    assert tokenizer.vocabulary().eos_ids == {0, 1}


@pytest.mark.parametrize("eos", [9999, -1, "<|nobody|>"])
def test_end_token_that_does_not_exist(eos: int | str) -> None:
    with pytest.raises(ModelLoadError, match=r"end-of-sequence token .* is no token"):
        Tokenizer(byte_level(), eos_tokens=[eos])


def test_no_end_token() -> None:
    with pytest.raises(ModelLoadError, match="no end-of-sequence token"):
        Tokenizer(byte_level(), eos_tokens=[])


def test_what_the_vocabulary_cannot_spell_is_refused_and_not_dropped() -> None:
    tokenizer = Tokenizer(byte_level(without_bytes=["ñ"]), eos_tokens=[0])  # stands for byte 0xF1
    with pytest.raises(InvalidPrompt, match=r"U\+40000 at character 2 .* byte 0xF1"):
        tokenizer.encode("ab\U00040000", allow_special=False)
    assert joined(tokenizer, tokenizer.encode("ab\U00010000", allow_special=False)) == "ab\U00010000".encode()


@pytest.mark.parametrize("allow_special", [False, True])
def test_lone_surrogate_is_refused(allow_special: bool) -> None:
    with pytest.raises(InvalidPrompt, match="lone surrogate at character 2"):
        TINY.encode("ab\ud800", allow_special=allow_special)


def test_truncation_of_the_file_is_not_applied() -> None:
    backend = Backend.from_str(byte_level())
    backend.enable_truncation(4)
    backend.enable_padding(length=50)
    tokenizer = Tokenizer(backend.to_str(), eos_tokens=[0])
    assert joined(tokenizer, tokenizer.encode("longer than four", allow_special=False)) == b"longer than four"


def test_prompt_gets_the_beginning_that_the_model_expects_once() -> None:
    tokenizer = Tokenizer(byte_level(special=["<|end|>", "<s>"], bos="<s>"), eos_tokens=[0])
    (bos,) = tokenizer.encode("<s>", allow_special=True)
    plain = tokenizer.encode("ab", allow_special=False)
    assert tokenizer.encode_prompt("ab") == tokenizer.encode_prompt("<s>ab") == [bos, *plain]
    assert TINY.encode_prompt("ab<|end|>") == TINY.encode("ab<|end|>", allow_special=True)


def test_byte_fallback_tokens() -> None:
    tokenizer = Tokenizer(byte_fallback(), eos_tokens=["</s>"])
    ids = tokenizer.encode("ab aé\n", allow_special=False)
    assert [tokenizer.token_bytes(token_id) for token_id in ids] == [b" ab", b" a", b"\xc3", b"\xa9", b"\n"]
    assert tokenizer.vocabulary().classes[:4].tolist() == [
        TokenClass.CONTROL,
        TokenClass.CONTROL,
        TokenClass.EOS,
        TokenClass.TEXT,
    ]
    spelled = tokenizer.encode("</s>", allow_special=False)
    assert joined(tokenizer, spelled) == b" </s>"
    assert tokenizer.control_ids.isdisjoint(spelled)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (Backend(models.WordPiece({"a": 0}, unk_token="a")).to_str(), "tokenizer model 'WordPiece' is not supported"),
        (Backend(models.Unigram([("a", 0.0)], 0, False)).to_str(), "tokenizer model 'Unigram' is not supported"),
        (Backend(models.BPE({"a": 0}, [])).to_str(), "neither byte-level nor has byte fallback"),
        (byte_fallback(prepend_scheme="first"), "start of a text apart"),
        ("{}", "not a usable tokenizer"),
        ("[" * 100_000, "not a usable tokenizer"),
        ("not json", "not a usable tokenizer"),
    ],
)
def test_unsupported_kinds_are_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ModelLoadError) as caught:
        Tokenizer(text, eos_tokens=[0])
    assert message in str(caught.value)


@pytest.fixture(scope="module")
def real_directory() -> Path:
    return embedded_model_directory()


@pytest.mark.real_model
def test_real_tokenizer_agrees_with_transformers(real_directory: Path) -> None:
    tokenizer = Tokenizer((real_directory / "tokenizer.json").read_text(), eos_tokens=[2, 0])
    reference = PreTrainedTokenizerFast.from_pretrained(real_directory)
    for text in [*NASTY_TEXTS, "<|im_start|>user\nHi <|im_end|>\n", "x<|im_end|> <|im_end|>y"]:
        if "\U0010ffff" in text:  # this vocabulary has no token for some bytes of it
            continue
        assert tokenizer.encode(text, allow_special=True) == reference.encode(text, add_special_tokens=False), text
        ids = tokenizer.encode(text, allow_special=False)
        assert joined(tokenizer, ids) == text.encode()
        assert tokenizer.control_ids.isdisjoint(ids)


@pytest.mark.real_model
def test_real_vocabulary(real_directory: Path) -> None:
    vocabulary = Tokenizer((real_directory / "tokenizer.json").read_text(), eos_tokens=[2, 0]).vocabulary()
    assert vocabulary.num_tokens == 49152
    assert vocabulary.eos_ids == {0, 2}
    assert [token_id for token_id, kind in enumerate(vocabulary.classes) if kind == TokenClass.CONTROL] == [
        1,
        *range(3, 17),
    ]
    # The base vocabulary lacks these bytes: some never occur in UTF-8, the others were not in its training text.
    absent = {bytes([byte]) for byte in range(256)} - set(vocabulary.token_bytes)
    assert b"".join(sorted(absent)).hex() == "04061314161dc0c1f1f2f5f6f7f8f9fafbfcfdfeff"
