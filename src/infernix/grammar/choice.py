"""The choice constraint: the content is exactly one of the given strings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from infernix.errors import ConstraintTooLarge, InvalidChoice
from infernix.grammar import ir

MAX_SOURCE_BYTES = 4 << 20


def build_choice(choices: Sequence[str]) -> ir.Grammar:
    """The language whose members are the UTF-8 bytes of `choices`, unchanged, in ascending order.

    Order and duplicates carry no meaning. Making the rule deterministic, as every rule is made, shares equal
    beginnings. Raises InvalidChoice for an empty list or for an entry with a lone surrogate (`index` names it), and
    ConstraintTooLarge where the different entries have more than MAX_SOURCE_BYTES UTF-8 bytes in total.
    """
    if not choices:
        raise InvalidChoice("the list of choices is empty")
    return ir.Grammar.of(ir.choice(*map(ir.Literal, sorted(_encode(choices)))))


def _encode(choices: Iterable[str]) -> set[bytes]:
    encoded: set[bytes] = set()
    num_bytes = 0
    for index, choice in enumerate(choices):
        try:
            data = choice.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidChoice("a lone surrogate is not a character", index) from error
        if data not in encoded:
            encoded.add(data)
            num_bytes += len(data)
            if num_bytes > MAX_SOURCE_BYTES:
                raise ConstraintTooLarge(f"the choices have more than {MAX_SOURCE_BYTES} bytes (MAX_SOURCE_BYTES)")
    return encoded
