"""UTF-8 that arrives in pieces which may end inside a character."""

from __future__ import annotations

import codecs


def decode_piece(held: bytes, data: bytes) -> tuple[str, bytes]:
    """The text of `held + data`, and the unfinished character at its end that the next piece may complete.

    Bytes that can belong to no character become U+FFFD, one for each maximal subpart, as Unicode recommends (The
    Unicode Standard, 3.9, "U+FFFD Substitution of Maximal Subparts") and Python's decoder does with errors="replace".
    """
    text, num_consumed = codecs.utf_8_decode(held + data, "replace", False)
    return text, (held + data)[num_consumed:]


def decode_rest(held: bytes) -> str:
    """The text of an unfinished character after which nothing comes: one U+FFFD, or nothing."""
    return held.decode("utf-8", errors="replace")
