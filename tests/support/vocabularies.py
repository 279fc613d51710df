"""Small vocabularies for tests, and ways to spell a text in their tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from infernix.matching.vocabulary import TokenClass, Vocabulary

# The fifty tokens that a matcher should not be able to fool itself with. Ids are positions in this tuple.
NASTY_TOKENS: tuple[tuple[bytes, TokenClass], ...] = (
    *((text, TokenClass.TEXT) for text in (b"{", b"}", b"[", b"]", b'"', b":", b",", b" ", b"\n", b"\t")),
    *((text, TokenClass.TEXT) for text in (b"a", b"b", b"1", b"0", b"-", b".", b"e", b"\\")),
    # Merged over the borders of JSON's own tokens.
    *((text, TokenClass.TEXT) for text in (b"},", b'":', b"\n\n", b'"]', b'{"', b'", "', b'": "', b'"}', b"}}")),
    *((text, TokenClass.TEXT) for text in (b"true", b"null", b"ok", b"o", b"k", b"name")),
    # Characters split over tokens: e9 (c3 a9) whole and in halves, U+5728 (e5 9c a8) cut so that its end brings a
    # quote along, U+1F600 (f0 9f 98 80) cut before its last byte.
    *((text, TokenClass.TEXT) for text in (b"\xc3", b"\xa9", b"\xc3\xa9", b"\xe5\x9c", b'\xa8"', b"\xf0\x9f\x98")),
    (b"\x80", TokenClass.TEXT),
    # Never part of UTF-8 text.
    (b"\xff", TokenClass.TEXT),
    (b"\xc3(", TokenClass.TEXT),
    # A second token with the bytes of "a", and a token without bytes.
    (b"a", TokenClass.TEXT),
    (b"", TokenClass.TEXT),
    # The letters of a control token as ordinary text, then the control tokens themselves.
    (b"</think>", TokenClass.TEXT),
    (b"</think>", TokenClass.CONTROL),
    (b"<tool_call>", TokenClass.CONTROL),
    # Both end a text, one of them spelled with letters that a content could hold; the last is padding.
    (b"<eos>", TokenClass.EOS),
    (b"ok", TokenClass.EOS),
    (b"a", TokenClass.NEVER),
)

SECOND_A = 42
EMPTY_TEXT = 43
THINK_CLOSE_AS_TEXT = 44
THINK_CLOSE = 45
TOOL_CALL = 46
EOS_IDS = (47, 48)
PADDING = 49


def nasty_vocabulary() -> Vocabulary:
    """The vocabulary of `NASTY_TOKENS`."""
    return Vocabulary([data for data, _ in NASTY_TOKENS], [token_class for _, token_class in NASTY_TOKENS])


def nasty_token(data: bytes | str) -> int:
    """The id of the first TEXT token with these bytes in the nasty vocabulary."""
    encoded = data.encode("utf-8") if isinstance(data, str) else data
    return NASTY_TOKENS.index((encoded, TokenClass.TEXT))


def text_vocabulary(
    texts: Sequence[bytes | str],
    *,
    control: Sequence[bytes | str] = (),
    eos: Sequence[bytes | str] = ("<eos>",),
    never: Sequence[bytes | str] = (),
) -> Vocabulary:
    """Text tokens, then control tokens, then end tokens, then tokens that are never legal, with ids in that order."""
    groups = (
        (texts, TokenClass.TEXT),
        (control, TokenClass.CONTROL),
        (eos, TokenClass.EOS),
        (never, TokenClass.NEVER),
    )
    token_bytes = [
        token.encode("utf-8") if isinstance(token, str) else token for tokens, _ in groups for token in tokens
    ]
    return Vocabulary(token_bytes, [token_class for tokens, token_class in groups for _ in tokens])


def byte_vocabulary(merged: Iterable[bytes | str] = ()) -> Vocabulary:
    """Every single byte under its own value, then `merged`, then one end token."""
    return text_vocabulary([*(bytes([byte]) for byte in range(256)), *merged])


def random_vocabulary(rng: Random, alphabet: Sequence[str]) -> Vocabulary:
    """A small vocabulary over the characters of `alphabet`, with every oddity a real one has.

    Most single bytes are there but not all, so that dead ends happen; merged tokens begin and end inside characters.
    """
    units = sorted({byte for character in alphabet for byte in character.encode("utf-8")})
    keep = 1.0 if rng.random() < 0.6 else 0.8
    texts = [bytes([byte]) for byte in units if rng.random() < keep]
    for _ in range(rng.randint(4, 30)):
        data = "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 5))).encode("utf-8")
        begin = rng.randint(0, min(2, len(data) - 1)) if rng.random() < 0.3 else 0
        end = rng.randint(begin + 1, len(data)) if rng.random() < 0.3 else len(data)
        texts.append(data[begin:end])
    if rng.random() < 0.3:
        texts.append(bytes(rng.randrange(256) for _ in range(rng.randint(1, 3))))
    if rng.random() < 0.3:
        texts.append(b"")
    tokens = [(data, TokenClass.TEXT) for data in texts]
    tokens += [(rng.choice(texts), TokenClass.CONTROL) for _ in range(rng.randint(0, 3))]
    tokens += [(rng.choice(texts), TokenClass.EOS) for _ in range(rng.randint(1, 3))]
    tokens += [(rng.choice(texts), TokenClass.NEVER) for _ in range(rng.randint(0, 3))]
    rng.shuffle(tokens)
    return Vocabulary([data for data, _ in tokens], [token_class for _, token_class in tokens])


def spell(vocabulary: Vocabulary, data: bytes, rng: Random | None = None) -> list[int]:
    """TEXT tokens whose bytes join to `data`: the longest at each place, or any at random.

    A token is taken only where the rest can still be spelled, so the answer does not depend on luck. Raises
    ValueError where the data cannot be spelled.
    """
    ids_by_bytes: dict[bytes, list[int]] = {}
    for token, token_bytes in enumerate(vocabulary.token_bytes):
        if token_bytes and vocabulary.classes[token] == TokenClass.TEXT:
            ids_by_bytes.setdefault(token_bytes, []).append(token)
    longest = max(map(len, ids_by_bytes))
    can_finish = [False] * len(data) + [True]
    for begin in reversed(range(len(data))):
        can_finish[begin] = any(
            data[begin:end] in ids_by_bytes and can_finish[end]
            for end in range(begin + 1, min(begin + longest, len(data)) + 1)
        )
    if not can_finish[0]:
        raise ValueError(f"the vocabulary cannot spell {data!r}")
    tokens = []
    begin = 0
    while begin < len(data):
        ends = [
            end
            for end in range(begin + 1, min(begin + longest, len(data)) + 1)
            if data[begin:end] in ids_by_bytes and can_finish[end]
        ]
        end = ends[-1] if rng is None else rng.choice(ends)
        ids = ids_by_bytes[data[begin:end]]
        tokens.append(ids[0] if rng is None else rng.choice(ids))
        begin = end
    return tokens
