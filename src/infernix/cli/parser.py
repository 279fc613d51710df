"""The flags of the whole command line."""

from __future__ import annotations

import argparse
from importlib.metadata import version

from infernix.cli import chat, check, generate, serve

_EXIT_CODES = """\
exit codes:
  0    finished (check: accepted, and the text belongs to the language)
  1    an internal error (check --text: the text does not belong to the language)
  2    a flag, a file, a model, a constraint or tools that cannot be used
  3    generate, chat: a limit cut an answer before it had the shape that was asked for
  130  interrupted with Ctrl-C
  141  nobody reads standard output any more
"""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line; abbreviated flags are refused, so that a new flag never changes a script's meaning."""
    parser = argparse.ArgumentParser(
        prog="infernix",
        description="A language model engine whose output has exactly the shape that was asked for.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"infernix {version('infernix')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    generate.add_command(commands)
    chat.add_command(commands)
    check.add_command(commands)
    serve.add_command(commands)
    return parser
