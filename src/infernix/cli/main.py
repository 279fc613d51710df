"""The program `infernix`: runs a command, and says how errors end it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from infernix.cli import exit_codes
from infernix.errors import ConstraintError, InfernixError, InternalError, InvalidOptions


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; argparse itself exits (code 2) on a wrong flag."""
    try:
        _prepare_standard_streams()
        return _run(sys.argv[1:] if arguments is None else arguments)
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
        print(f"infernix: error: {error}", file=sys.stderr)
        return exit_codes.BAD_INPUT
    except OSError as error:  # such as a full disk under standard output
        print(f"infernix: error: {error}", file=sys.stderr)
        _discard_output()
        return exit_codes.BAD_INPUT


def _run(arguments: Sequence[str]) -> int:
    # Imported here, where Ctrl-C is answered: these modules are most of what a start takes.
    from infernix.cli.arguments import bind_text_values, flag_of
    from infernix.cli.parser import build_parser
    from infernix.cli.sources import constraint_source

    parsed = build_parser().parse_args(bind_text_values(arguments))
    if sys.stdout is None:
        print("infernix: error: standard output is closed", file=sys.stderr)
        return exit_codes.OUTPUT_CLOSED
    try:
        code: int = parsed.run(parsed)
    except InvalidOptions as error:
        print(f"infernix: error: {flag_of(error.field)}: {error.reason}", file=sys.stderr)
        return exit_codes.BAD_INPUT
    except ConstraintError as error:
        source = constraint_source(parsed, error)
        print(f"infernix: error: {'' if source is None else f'{source}: '}{error}", file=sys.stderr)
        return exit_codes.BAD_INPUT
    sys.stdout.flush()
    return code


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
