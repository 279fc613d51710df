"""What can be compiled: anything that can say which grammar it is, and write it out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.matching.matcher import Matcher
from infernix.options import ConstraintKind, OutputConstraint
from infernix.tools import is_unicode


class GrammarSource(Protocol):
    """A grammar that is not written out yet. Of two sources with the same key, only one is compiled."""

    @property
    def cache_key(self) -> bytes:
        """A digest of everything that the grammar depends on, except for the vocabulary."""
        ...

    @property
    def content_kind(self) -> ConstraintKind | None:
        """The kind of the content constraint in it, if there is one."""
        ...

    def build(self, token_error: Callable[[int], str | None] | None = None) -> ir.Grammar:
        """The grammar; raises a ConstraintError. `token_error` is that of `infernix.grammar.build.build_grammar`."""
        ...

    def advance_to_content(self, matcher: Matcher) -> None:
        """Moves a fresh matcher to where the content may begin."""
        ...


@dataclass(frozen=True, slots=True)
class ConstraintSource:
    """A content constraint by itself."""

    constraint: OutputConstraint

    @property
    def cache_key(self) -> bytes:
        """See `constraint_key`."""
        return constraint_key(self.constraint)

    @property
    def content_kind(self) -> ConstraintKind:
        """The constraint's own."""
        return self.constraint.kind

    def build(self, token_error: Callable[[int], str | None] | None = None) -> ir.Grammar:
        """See `infernix.grammar.build.build_grammar`."""
        return build_grammar(self.constraint, token_error)

    def advance_to_content(self, matcher: Matcher) -> None:
        """It begins at once."""


def constraint_key(constraint: OutputConstraint) -> bytes:
    """Two constraints have the same key where kind, source text and ignored keywords are the same, to the letter; a
    choice is a set, in any order."""
    texts: list[str] = [constraint.source, *sorted(constraint.ignore_keywords)]
    if constraint.kind is ConstraintKind.CHOICE:
        # Errors name entries by their place: with an entry that cannot be encoded, the order matters.
        is_set = all(is_unicode(text) for text in constraint.choices)
        texts = sorted(set(constraint.choices)) if is_set else list(constraint.choices)
    return digest(constraint.kind, *texts)


def digest(*parts: str | bytes) -> bytes:
    """One digest for these parts in this order, so that large ones need not be kept."""
    sha = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        sha.update(len(data).to_bytes(8, "little"))
        sha.update(data)
    return sha.digest()
