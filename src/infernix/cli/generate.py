"""`infernix generate`: one answer, content on standard output, everything else on standard error."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from infernix.cli import exit_codes
from infernix.cli.arguments import (
    Once,
    add_constraint_arguments,
    add_sampling_arguments,
    constraint_from,
    refuse_shared_input,
    sampling_from,
)
from infernix.cli.files import read_messages
from infernix.cli.report import print_progress, report_lines
from infernix.options import RequestOptions
from infernix.results import FinishReason, GenerationResult

if TYPE_CHECKING:
    from infernix.engine.stream import GenerationStream


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command's own parser."""
    parser = commands.add_parser(
        "generate",
        help="generate an answer, in the shape of a constraint if one is given",
        description="Generates one answer. Its text goes to standard output as it is, the report to standard error.",
        allow_abbrev=False,
    )
    prompt = parser.add_argument_group("prompt (one of these)").add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT", action=Once, help="a text to continue, as it stands")
    prompt.add_argument(
        "--messages",
        metavar="FILE",
        action=Once,
        help='a chat to answer: a JSON list of {"role", "content"} (\'-\': standard input)',
    )
    add_constraint_arguments(parser, required=False)
    add_sampling_arguments(parser)
    parser.add_argument(
        "--max-new", metavar="N", type=int, action=Once, default=256, help="most new tokens (default 256)"
    )
    parser.add_argument("--model", metavar="PATH", action=Once, help="a Hugging Face directory (default: embedded)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), action=Once, default="auto", help="(default auto)")
    parser.add_argument(
        "--threads", metavar="N", type=int, action=Once, default=1, help="compute threads on a CPU (default 1)"
    )
    parser.add_argument("--max-context", metavar="N", type=int, action=Once, help="most tokens, prompt and answer")
    parser.add_argument("--print-token-ids", action="store_true", help="list the new tokens' ids in the report")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code; what is wrong with the input is raised before the model is loaded where possible."""
    refuse_shared_input(arguments.messages, arguments.grammar_file, arguments.json_schema_file)
    options = RequestOptions(
        max_new_tokens=arguments.max_new,
        constraint=constraint_from(arguments),
        sampling=sampling_from(arguments),
    )
    prompt = arguments.prompt if arguments.messages is None else read_messages(arguments.messages)
    result = _generate(arguments, prompt, options)
    for line in report_lines(result, with_token_ids=arguments.print_token_ids):
        print(line, file=sys.stderr)
    if result.finish_reason is FinishReason.CANCELLED:
        return exit_codes.INTERRUPTED
    if result.constraint is not None and not result.constraint.complete:
        return exit_codes.INCOMPLETE
    return exit_codes.SUCCESS


def _generate(arguments: argparse.Namespace, prompt: Any, options: RequestOptions) -> GenerationResult:
    # Imported here, so that a wrong flag is answered at once: PyTorch takes seconds to load.
    from infernix.engine import Engine

    engine = Engine.load(
        arguments.model,
        device=arguments.device,
        num_threads=arguments.threads,
        max_context=arguments.max_context,
        progress=print_progress,
    )
    stream = engine.stream(prompt, options)
    output = sys.stdout.buffer
    with _cancelled_by_interrupt(stream):
        for piece in stream:
            output.write(piece.encode("utf-8"))
            output.flush()
    if sys.stdout.isatty():
        print(flush=True)
    return stream.result


@contextmanager
def _cancelled_by_interrupt(stream: GenerationStream) -> Iterator[None]:
    """The first Ctrl-C ends the generation between two tokens, so that a report can follow; the second ends all."""

    def cancel(signal_number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, previous)
        stream.cancel()

    previous = signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
