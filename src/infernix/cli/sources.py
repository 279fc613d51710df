"""Where a refused constraint stands: which of the files that the command line names an error is about."""

from __future__ import annotations

import argparse

from infernix.cli.files import display_name
from infernix.errors import ConstraintError, ConstraintSource


def constraint_source(arguments: argparse.Namespace, error: ConstraintError) -> str | None:
    """What to call the file that the error is about; None if it is about none."""
    if error.source is ConstraintSource.TOOLS:
        tools_file = getattr(arguments, "tools", None)
        # A choice among the tools is made by flags.
        return None if tools_file is None or not error.pointer else display_name(tools_file)
    path = arguments.grammar_file or arguments.json_schema_file
    return None if path is None else display_name(path)
