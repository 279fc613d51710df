"""Token ids of texts, and the bytes and class of every token.

Two kinds of `tokenizer.json` are read: byte-level BPE (GPT-2, Llama 3, Qwen, SmolLM2) and BPE with byte fallback and
`▁` for a space (Llama 2). Others are refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tokenizers

from infernix.errors import InvalidPrompt, ModelLoadError
from infernix.matching.vocabulary import TokenClass, Vocabulary

_SPACE_MARK = "\u2581"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


@dataclass(frozen=True, slots=True)
class _ControlToken:
    """A control token and whether it takes the white space beside it in along."""

    token_id: int
    strips_left: bool
    strips_right: bool


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A stretch of text between control tokens."""

    text: str


class Tokenizer:
    """A model's tokenizer. All methods may be called from any thread.

    Control tokens are the added tokens that the file marks as special, and those that `framing`, the source of the
    chat template, spells: models such as Qwen3 frame tool calls with added tokens that are not marked. A control token
    has one spelling, but its spelling in a text is that token only where the caller says so.
    """

    def __init__(self, text: str, *, eos_tokens: Iterable[int | str], framing: str = "") -> None:
        """`text` is the content of a `tokenizer.json`; `eos_tokens` are ids or spellings, at least one.

        Raises ModelLoadError for a text that is no tokenizer, one of an unsupported kind, and EOS that is no token.
        """
        try:
            document = json.loads(text)
            self._backend = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the library raises bare Exception for everything
            raise ModelLoadError(f"not a usable tokenizer: {error}") from error
        self._byte_of_character = _read_byte_alphabet(document)
        self._backend.no_truncation()
        self._backend.no_padding()
        # Without this the backend would turn the spelling of a special token in a user's text into that token.
        self._backend.encode_special_tokens = True
        self._tokens: dict[int, str] = {index: token for token, index in self._backend.get_vocab().items()}
        self.eos_ids = frozenset(self._eos_id(token) for token in eos_tokens)
        if not self.eos_ids:
            raise ModelLoadError("no end-of-sequence token is named")
        added = document.get("added_tokens") or []
        for entry in added:
            # The library numbers an added token anew where the file's own id does not fit its vocabulary.
            if self._backend.token_to_id(entry["content"]) != entry["id"]:
                raise ModelLoadError(f"added token {entry['content']!r} cannot have the id {entry['id']}")
        self._added = {int(entry["id"]): str(entry["content"]) for entry in added}
        control = [
            entry for entry in added if entry["special"] or entry["content"] in framing or entry["id"] in self.eos_ids
        ]
        self._control = {
            str(entry["content"]): _ControlToken(int(entry["id"]), bool(entry["lstrip"]), bool(entry["rstrip"]))
            for entry in control
        }
        self._control_ids = frozenset(token.token_id for token in self._control.values()) | self.eos_ids
        self._unmarked_control_ids = frozenset(int(entry["id"]) for entry in control if not entry["special"])
        self._control_pattern = _any_of(self._control)
        self._unmarked_pattern = _any_of(str(entry["content"]) for entry in control if not entry["special"])

    @property
    def num_tokens(self) -> int:
        """Size of the token domain: the largest id plus one."""
        return max(self._tokens) + 1

    @property
    def control_ids(self) -> frozenset[int]:
        """Ids that no ordinary text gives: control and end-of-sequence tokens."""
        return self._control_ids

    @property
    def unmarked_control_ids(self) -> frozenset[int]:
        """Control tokens that the file does not mark as special, such as those that frame thinking and tool calls."""
        return self._unmarked_control_ids

    @property
    def control_spellings(self) -> tuple[str, ...]:
        """How the control tokens are spelled."""
        return tuple(self._control)

    def control_id(self, spelling: str) -> int | None:
        """The control token with this spelling, or None."""
        token = self._control.get(spelling)
        return None if token is None else token.token_id

    def encode(self, text: str, *, allow_special: bool) -> list[int]:
        """Token ids of a text, with nothing put before or after it.

        With `allow_special` the spelling of a control token is that token; without it every character is ordinary text,
        and no control token can come out. Raises InvalidPrompt for a text that is no Unicode (a lone surrogate) and for
        a byte that the vocabulary cannot spell.
        """
        if not allow_special:
            return self.encode_pieces([TextPiece(text)])
        return self.encode_pieces(self.split_control(text))

    def encode_prompt(self, text: str) -> list[int]:
        """Token ids of a text that stands at the very beginning: control tokens may be spelled in it, and what the
        model expects before a text (a beginning-of-sequence token) comes first, unless the text spells it already.
        """
        ids = self.encode(text, allow_special=True)
        prefix = list(self._prefix_ids)
        return ids if ids[: len(prefix)] == prefix else prefix + ids

    def split_control(self, text: str) -> Iterator[TextPiece | int]:
        """The text as stretches of ordinary text and, where a control token is spelled, its id."""
        start = 0
        for match in self._control_pattern.finditer(text):
            token = self._control[match.group()]
            before = text[start : match.start()]
            yield TextPiece(before.rstrip() if token.strips_left else before)
            yield token.token_id
            start = match.end()
            if token.strips_right:
                start += len(text) - start - len(text[start:].lstrip())
        yield TextPiece(text[start:])

    def encode_pieces(self, pieces: Iterable[TextPiece | int]) -> list[int]:
        """Token ids of stretches of ordinary text and of ids that stand for themselves. Raises as `encode`."""
        ids: list[int] = []
        for piece in pieces:
            if isinstance(piece, int):
                ids.append(piece)
            elif piece.text:
                ids += self._encode_text(piece.text)
        return ids

    def vocabulary(self) -> Vocabulary:
        """Raw bytes and class of every id below `num_tokens`.

        EOS: the model's end-of-sequence ids. CONTROL: control tokens. NEVER: ids without a token. TEXT: all others,
        added tokens that are no control tokens included.
        """
        return self._vocabulary

    def token_bytes(self, token_id: int) -> bytes:
        """Raw bytes of a token; a control token's are its spelling. KeyError where there is no such token."""
        added = self._added.get(token_id)
        if added is not None:
            return added.encode()
        token = self._tokens[token_id]
        if self._byte_of_character is None:
            byte = _BYTE_TOKEN.fullmatch(token)
            return bytes([int(byte[1], 16)]) if byte else token.replace(_SPACE_MARK, " ").encode()
        try:
            return bytes([self._byte_of_character[character] for character in token])
        except KeyError:  # no byte-level spelling: the library's decoder takes such a token as it is written
            return token.encode()

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        num_tokens = self.num_tokens
        data, classes = [b""] * num_tokens, [TokenClass.NEVER] * num_tokens
        for token_id in self._tokens:
            data[token_id] = self.token_bytes(token_id)
            classes[token_id] = TokenClass.CONTROL if token_id in self._control_ids else TokenClass.TEXT
        for token_id in self.eos_ids:
            classes[token_id] = TokenClass.EOS
        return Vocabulary(data, classes)

    @cached_property
    def _missing_bytes(self) -> frozenset[int]:
        """Bytes without a token of their own: the backend would drop them in silence."""
        if self._byte_of_character is None:
            return frozenset()
        tokens = set(self._tokens.values())
        return frozenset(byte for character, byte in self._byte_of_character.items() if character not in tokens)

    @cached_property
    def _prefix_ids(self) -> tuple[int, ...]:
        """What the file's post-processor puts before a text."""
        plain: list[int] = self._backend.encode("a", add_special_tokens=False).ids
        full: list[int] = self._backend.encode("a", add_special_tokens=True).ids
        return next((tuple(full[:at]) for at in range(len(full)) if full[at : at + len(plain)] == plain), ())

    def _eos_id(self, token: int | str) -> int:
        token_id = self._backend.token_to_id(token) if isinstance(token, str) else token
        if token_id is None or token_id not in self._tokens:
            raise ModelLoadError(f"the end-of-sequence token {token!r} is no token of the tokenizer")
        return int(token_id)

    def _encode_text(self, text: str) -> list[int]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidPrompt(f"the text is no Unicode: lone surrogate at character {error.start}") from error
        self._check_spellable(text)
        ids: list[int] = []
        for part in self._without_spellings(text):
            ids += self._backend.encode(part, add_special_tokens=False).ids
        leaked = self._control_ids.intersection(ids)
        if leaked:
            raise InvalidPrompt(f"the text cannot be kept apart from the control token {self._tokens[min(leaked)]!r}")
        return ids

    def _without_spellings(self, text: str) -> Iterator[str]:
        """The text cut inside each spelling of a control token that the backend does not know as special."""
        start = 0
        for match in self._unmarked_pattern.finditer(text):
            cut = match.start() + 1
            yield text[start:cut]
            start = cut
        yield text[start:]

    def _check_spellable(self, text: str) -> None:
        if self._missing_bytes.isdisjoint(text.encode()):
            return
        for offset, character in enumerate(text):
            missing = self._missing_bytes.intersection(character.encode())
            if missing:
                raise InvalidPrompt(
                    f"the model's vocabulary cannot spell U+{ord(character):04X} at character {offset} of the text:"
                    f" it has no token for byte 0x{min(missing):02X}"
                )


def _any_of(spellings: Iterable[str]) -> re.Pattern[str]:
    # Longer spellings first, as one may begin with another; without any, a pattern that matches nowhere.
    return re.compile("|".join(map(re.escape, sorted(spellings, key=len, reverse=True))) or "(?!)")


def _read_byte_alphabet(document: dict[str, Any]) -> dict[str, int] | None:
    """The byte for each character of byte-level tokens, or None for a vocabulary with byte fallback."""
    model = document.get("model") or {}
    kind = model.get("type")
    if kind != "BPE":
        raise ModelLoadError(
            f"tokenizer model {kind!r} is not supported; supported: byte-level BPE, BPE with byte fallback"
        )
    decoder = document.get("decoder") or {}
    stages = decoder.get("decoders") or [decoder]
    if any(stage.get("type") == "ByteLevel" for stage in stages):
        return {character: byte for byte, character in enumerate(_byte_level_characters())}
    vocabulary = model.get("vocab") or {}
    if (document.get("pre_tokenizer") or {}).get("prepend_scheme") == "first":
        raise ModelLoadError("a tokenizer that treats the start of a text apart (prepend_scheme) is not supported")
    if model.get("byte_fallback") and all(f"<0x{byte:02X}>" in vocabulary for byte in range(256)):
        return None
    raise ModelLoadError("a BPE tokenizer that is neither byte-level nor has byte fallback is not supported")


def _byte_level_characters() -> str:
    """The character that stands for each byte: printable Latin-1 for itself, the others from U+0100 on (GPT-2)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    characters = {byte: chr(byte) for byte in printable}
    others = (byte for byte in range(256) if byte not in characters)
    characters.update({byte: chr(0x100 + index) for index, byte in enumerate(others)})
    return "".join(characters[byte] for byte in range(256))
