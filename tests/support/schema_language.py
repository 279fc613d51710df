"""The language of a schema, for tests: compile it, ask what it holds."""

from __future__ import annotations

import json
from typing import Any

from infernix.grammar.schema import parse_json_schema
from support.recognizer import Recognizer


class SchemaLanguage:
    """What a schema's grammar derives; `schema` is its text or a document."""

    def __init__(self, schema: Any, *, ignore_keywords: frozenset[str] = frozenset()) -> None:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        self.grammar = parse_json_schema(text, ignore_keywords=ignore_keywords)
        self._recognizer = Recognizer(self.grammar)

    def __contains__(self, text: str | bytes) -> bool:
        return self._recognizer.matches(text.encode() if isinstance(text, str) else text)

    def begins(self, text: str | bytes) -> bool:
        """Whether `text` can be completed."""
        return self._recognizer.is_prefix(text.encode() if isinstance(text, str) else text)


def check_language(schema: Any, inside: list[str], outside: list[str]) -> None:
    """Asserts that the texts of `inside`, and none of `outside`, are in the language."""
    language = SchemaLanguage(schema)
    assert [text for text in inside if text not in language] == [], f"refused by {schema}"
    assert [text for text in outside if text in language] == [], f"let through by {schema}"
