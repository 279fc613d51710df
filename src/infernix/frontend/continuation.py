"""Beginning an output behind a given text: the last message of the assistant, which the new output continues."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from infernix.errors import (
    ConstraintError,
    InvalidChoice,
    InvalidGrammar,
    InvalidJsonSchema,
    InvalidRegex,
    InvalidToolConstraint,
)
from infernix.frontend.constraint import ConstraintState
from infernix.frontend.framing import TOOL_CLOSE, TOOL_OPEN, Framing
from infernix.frontend.session import OutputSession
from infernix.frontend.tools.contract import ToolPolicy
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.options import ConstraintKind

_NO_PREFIX = "the text to continue begins no text of the constraint"


def continue_text(
    session: OutputSession,
    text: str,
    vocabulary: Vocabulary,
    framing: Framing,
    *,
    constraint: ConstraintState | None = None,
    kind: ConstraintKind | None = None,
    policy: ToolPolicy | None = None,
) -> None:
    """Puts a new session, and the constraint that it was given, behind `text`.

    Constrained content follows the text's bytes. Where calls may come, the spelling of the mark that opens one is its
    token, every other byte a byte-level token; where the answer is JSON content or calls, the first character says
    which. In free output the closing mark is its token too, so that a call in the text is seen to be complete.

    Raises a ConstraintError of the constraint's kind for a text that begins nothing in the language, and
    InvalidToolConstraint for one that holds a completed call.
    """
    if not text:
        return
    has_calls = policy is not None and (kind is None or text.startswith("<"))
    marks = {TOOL_OPEN: framing.tool_open} if has_calls else {}
    if constraint is None and has_calls:
        marks[TOOL_CLOSE] = framing.tool_close
    pieces = _pieces(text, marks)
    if constraint is not None:
        if policy is not None and policy.constrained:
            is_prefix = constraint.accept_prefix_tokens(_byte_tokens(pieces, vocabulary))
        else:
            is_prefix = constraint.accept_prefix_bytes(text.encode())
        if not is_prefix:
            raise _not_a_prefix(None if has_calls else kind)
    session.seed(pieces)
    if session.tool_calls:
        raise InvalidToolConstraint("the text to continue holds a completed tool call")


def _not_a_prefix(kind: ConstraintKind | None) -> ConstraintError:
    match kind:
        case None:
            return InvalidToolConstraint("the text to continue begins no answer that the tools allow")
        case ConstraintKind.GRAMMAR:
            return InvalidGrammar(_NO_PREFIX)
        case ConstraintKind.REGEX:
            return InvalidRegex(_NO_PREFIX)
        case ConstraintKind.CHOICE:
            return InvalidChoice(_NO_PREFIX)
        case _:
            return InvalidJsonSchema(_NO_PREFIX)


def _pieces(text: str, marks: Mapping[str, int | None]) -> list[bytes | int]:
    """The text's bytes, with the token of each mark that has one wherever it is spelled."""
    known = {mark: token for mark, token in marks.items() if token is not None}
    if not known:
        return [text.encode()]
    parts = re.split(f"({'|'.join(map(re.escape, known))})", text)
    return [known[part] if index % 2 else part.encode() for index, part in enumerate(parts)]


def _byte_tokens(pieces: Sequence[bytes | int], vocabulary: Vocabulary) -> list[int]:
    tokens_by_byte: dict[int, int] = {}
    for token, data in enumerate(vocabulary.token_bytes):
        if len(data) == 1 and vocabulary.classes[token] == TokenClass.TEXT:
            tokens_by_byte.setdefault(data[0], token)
    tokens: list[int] = []
    for piece in pieces:
        if isinstance(piece, int):
            tokens.append(piece)
            continue
        for byte in piece:
            if byte not in tokens_by_byte:
                raise InvalidToolConstraint(
                    f"the text to continue cannot be spelled: the vocabulary has no token for byte 0x{byte:02X}"
                )
            tokens.append(tokens_by_byte[byte])
    return tokens
