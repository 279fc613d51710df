"""The language of a schema by way of the public interface: a constraint, compiled for a vocabulary of bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from itertools import permutations
from typing import Any

from infernix.matching import CompiledGrammar, ConfigurationTable, GrammarCompiler
from infernix.options import OutputConstraint
from support.vocabularies import byte_vocabulary


@cache
def byte_compiler() -> GrammarCompiler:
    """One compiler for all tests; its vocabulary is the 256 bytes and an end token."""
    return GrammarCompiler(byte_vocabulary())


class CompiledLanguage:
    """What the compiled grammar of a schema admits; `schema` is its text or a document."""

    def __init__(self, schema: Any, *, ignore_keywords: Iterable[str] = ()) -> None:
        text = schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False)
        constraint = OutputConstraint.json_schema(text, ignore_keywords=ignore_keywords)
        self.grammar: CompiledGrammar = byte_compiler().compile(constraint).grammar

    def __contains__(self, text: str | bytes) -> bool:
        matcher = self.grammar.new_matcher()
        return matcher.accept_bytes(text.encode() if isinstance(text, str) else text) and matcher.may_end

    def admits(self, value: Any) -> bool:
        """Whether the compact text of `value` belongs to the language with its members in any order."""
        return any(text in self for text in compact_texts(value))

    def up_to(self, length: int) -> frozenset[str]:
        """All ASCII texts of at most `length` characters."""
        table: ConfigurationTable = self.grammar.configurations
        found: set[str] = set()
        pending = [("", table.start)]
        while pending:
            text, configuration = pending.pop()
            if table.may_end(configuration):
                found.add(text)
            if len(text) < length:
                steps = [byte for byte in table.allowed_bytes(configuration) if byte < 128]
                pending.extend((text + chr(byte), table.step_byte(configuration, byte)) for byte in steps)
        return frozenset(found)


def compact_texts(value: Any) -> list[str]:
    """`value` without white space, in all orders of members."""
    if isinstance(value, list):
        texts = [""]
        for index, item in enumerate(value):
            texts = [text + ("," if index else "") + part for text in texts for part in compact_texts(item)]
        return [f"[{text}]" for text in texts]
    if isinstance(value, dict):
        found = []
        for names in permutations(value):
            texts = [""]
            for index, name in enumerate(names):
                opening = ("," if index else "") + json.dumps(name, ensure_ascii=False) + ":"
                texts = [text + opening + part for text in texts for part in compact_texts(value[name])]
            found += [f"{{{text}}}" for text in texts]
        return found
    return [json.dumps(value, ensure_ascii=False)]
