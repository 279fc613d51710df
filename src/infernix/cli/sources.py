"""Where a refused constraint stands: which of the files that the command line names an error is about."""

from __future__ import annotations

import argparse

from infernix.cli.files import display_name
from infernix.errors import ConstraintError, InvalidToolConstraint


def constraint_source(arguments: argparse.Namespace, error: ConstraintError) -> str | None:
    """What to call the file that the error is about; None if it is about none."""
    tools_file = getattr(arguments, "tools", None)
    if tools_file is not None and _is_about_a_tool(error):
        return display_name(tools_file)
    path = arguments.grammar_file or arguments.json_schema_file
    if path is None or isinstance(error, InvalidToolConstraint):
        return None
    return display_name(path)


def _is_about_a_tool(error: ConstraintError) -> bool:
    """Every error about one tool's declaration begins with the tool, or has a pointer into the list of tools."""
    return error.message.startswith("tool '") or (isinstance(error, InvalidToolConstraint) and bool(error.pointer))
