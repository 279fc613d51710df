"""A compiler that loosens schemas in silence, to see that the runners notice."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.languages import Outcome, SchemaCompiler


class ForgetfulCompiler(SchemaCompiler):
    """Compiles every schema without one keyword, wherever it stands."""

    def __init__(self, compiler: SchemaCompiler, keyword: str) -> None:
        vars(self).update(vars(compiler))
        self._keyword = keyword

    def compile(self, schema: str) -> Outcome:
        """The language of the schema without the keyword."""
        return super().compile(json.dumps(without(json.loads(schema), self._keyword)))


def without(document: Any, keyword: str) -> Any:
    """The document without any member of that name."""
    if isinstance(document, dict):
        return {name: without(item, keyword) for name, item in document.items() if name != keyword}
    return [without(item, keyword) for item in document] if isinstance(document, list) else document
