"""`infernix generate`: one answer, content and calls on standard output, everything else on standard error."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from infernix.cli import exit_codes
from infernix.cli.answer import publish_answer
from infernix.cli.arguments import Once, load_engine, refuse_shared_input
from infernix.cli.chat_arguments import add_answer_arguments, options_from, thinking_from, tools_from
from infernix.cli.files import read_messages
from infernix.cli.report import report_lines
from infernix.errors import InvalidOptions
from infernix.messages import ChatPrompt
from infernix.results import FinishReason, GenerationResult
from infernix.tools import ToolDefinition

if TYPE_CHECKING:
    from infernix.engine.prompt import Prompt

# Flags that say something about a chat, which a text to continue is not.
_CHAT_FLAGS = ("tools", "thinking", "no_thinking", "thinking_budget", "show_reasoning", "continue_final")


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command's own parser."""
    parser = commands.add_parser(
        "generate",
        help="generate an answer, in the shape of a constraint if one is given",
        description="Generates one answer. Its text goes to standard output as it is, and behind it the tool calls, one"
        " JSON object a line; the report goes to standard error.",
        allow_abbrev=False,
    )
    group = parser.add_argument_group("prompt (--prompt or --messages)")
    prompt = group.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT", action=Once, help="a text to continue, as it stands")
    prompt.add_argument(
        "--messages",
        metavar="FILE",
        action=Once,
        help='a chat to answer: a JSON list of {"role", "content"} (\'-\': standard input)',
    )
    group.add_argument(
        "--continue-final", action="store_true", help="the chat's last message is the assistant's, and goes on"
    )
    add_answer_arguments(parser)
    parser.add_argument("--print-token-ids", action="store_true", help="list the new tokens' ids in the report")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code; what is wrong with the input is raised before the model is loaded where possible."""
    refuse_shared_input(arguments.messages, arguments.grammar_file, arguments.json_schema_file, arguments.tools)
    tools = tools_from(arguments)
    options = options_from(arguments, tools)
    prompt = _prompt(arguments, tools)
    stream = load_engine(arguments).stream(prompt, options)
    result = publish_answer(stream, ends_line=sys.stdout.isatty(), show_reasoning=arguments.show_reasoning)
    for line in report_lines(result, with_token_ids=arguments.print_token_ids):
        print(line, file=sys.stderr)
    return _exit_code(result)


def _exit_code(result: GenerationResult) -> int:
    if result.finish_reason is FinishReason.CANCELLED:
        return exit_codes.INTERRUPTED
    if result.constraint is not None and not result.constraint.complete:
        return exit_codes.INCOMPLETE
    return exit_codes.SUCCESS


def _prompt(arguments: argparse.Namespace, tools: tuple[ToolDefinition, ...]) -> Prompt:
    if arguments.messages is not None:
        return ChatPrompt(
            read_messages(arguments.messages),
            tools,
            thinking=thinking_from(arguments),
            continue_final=arguments.continue_final,
        )
    for field in _CHAT_FLAGS:
        if getattr(arguments, field) is not None and getattr(arguments, field) is not False:
            raise InvalidOptions("a text to continue (--prompt) is no chat", field=field)
    text: str = arguments.prompt
    return text
