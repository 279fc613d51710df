"""How the XML way of writing frames a call and its parameters."""

from __future__ import annotations

FUNCTION, FUNCTION_END = "\n<function=", "</function>\n"
PARAMETER, NAME_END = "<parameter=", ">\n"
VALUE_END = "\n</parameter>"

NAME_EXCLUDES = "<>\r\n"


def is_parameter_name(name: str) -> bool:
    """Whether the framing can hold this name."""
    return bool(name) and not any(character in NAME_EXCLUDES for character in name)
