"""The command line: what the commands are, and how errors end them."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from infernix.cli import check, exit_codes, generate
from infernix.cli.arguments import bind_text_values, constraint_source
from infernix.errors import ConstraintError, InfernixError, InternalError

_EXIT_CODES = """\
exit codes:
  0    finished (check: accepted, and the text belongs to the language)
  1    an internal error (check --text: the text does not belong to the language)
  2    a flag, a file, a model or a constraint that cannot be used
  3    generate: a limit cut the answer before it had the shape that was asked for
  130  interrupted with Ctrl-C
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
    check.add_command(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; argparse itself exits (code 2) on a wrong flag."""
    _prepare_standard_streams()
    parsed = build_parser().parse_args(bind_text_values(sys.argv[1:] if arguments is None else arguments))
    if sys.stdout is None:
        print("infernix: error: standard output is closed", file=sys.stderr)
        return exit_codes.OUTPUT_CLOSED
    try:
        code: int = parsed.run(parsed)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _discard_output()
        return exit_codes.OUTPUT_CLOSED
    except KeyboardInterrupt:
        print("infernix: interrupted", file=sys.stderr)
        return exit_codes.INTERRUPTED
    except InternalError as error:
        print(f"infernix: internal error: {error}", file=sys.stderr)
        return exit_codes.INTERNAL_ERROR
    except InfernixError as error:
        source = constraint_source(parsed) if isinstance(error, ConstraintError) else None
        print(f"infernix: error: {'' if source is None else f'{source}: '}{error}", file=sys.stderr)
        return exit_codes.BAD_INPUT
    except OSError as error:  # such as a full disk under standard output
        print(f"infernix: error: {error}", file=sys.stderr)
        _discard_output()
        return exit_codes.BAD_INPUT


def _prepare_standard_streams() -> None:
    """Makes sure that messages can be written: a name or a text may hold what the terminal's encoding does not."""
    if sys.stderr is None:  # closed by the caller; `print` would then write to standard output instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Points standard output nowhere, or the interpreter would try to write what is left when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
