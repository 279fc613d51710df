"""What the tests of this folder share."""

import pytest

from tests.conformance.languages import SchemaCompiler


@pytest.fixture(scope="session")
def schema_compiler() -> SchemaCompiler:
    """A compiler for SmolLM2's vocabulary, which takes some seconds to set up."""
    return SchemaCompiler()
