"""Random regular expressions and all short texts over a small alphabet."""

from __future__ import annotations

import itertools
import re

from hypothesis import strategies as st

ALPHABET = "ab\n"


def texts(max_length: int, alphabet: str = ALPHABET) -> list[str]:
    """Every text over `alphabet` of at most `max_length` characters."""
    return ["".join(text) for n in range(max_length + 1) for text in itertools.product(alphabet, repeat=n)]


_ATOMS = st.sampled_from(["a", "b", "ab", "ba", ".", "[ab]", "[^a]", "[^b]", "\\n", "\\s", "\\w", "[\\s\\S]"])
_QUANTIFIERS = st.sampled_from(["*", "+", "?", "{2}", "{0,1}", "{1,3}", "{2,}", "{0,2}", "*?"])


def _extended(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = st.builds("({})".format, inner)
    repeats = st.builds("{}{}".format, groups | st.sampled_from(["a", "b", ".", "[ab]", "[^a]"]), _QUANTIFIERS)
    return (
        groups
        | repeats
        | st.builds("{}{}".format, inner | repeats, repeats | groups)
        | st.builds("({}|{})".format, inner, inner)
    )


_BODIES = st.recursive(_ATOMS, _extended, max_leaves=6)
_ALTERNATIVES = st.builds(
    "{}{}{}".format, st.sampled_from(["", "^"]), _BODIES | st.just(""), st.sampled_from(["", "$"])
)

BODIES = _BODIES
"""Without anchors and top-level alternatives."""

PATTERNS = st.lists(_ALTERNATIVES, min_size=1, max_size=3).map("|".join)
"""Alternatives with anchors of their own."""


def python_pattern(pattern: str) -> re.Pattern[str]:
    """The same expression for Python, whose `$` also matches before a last line feed."""
    return re.compile(pattern.replace("$", "\\Z"), re.ASCII)
