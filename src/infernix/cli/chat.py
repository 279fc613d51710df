"""`infernix chat`: a conversation on the terminal, or with lines from a pipe."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from infernix.cli import exit_codes
from infernix.cli.answer import publish_answer
from infernix.cli.arguments import Once, load_engine, refuse_shared_input
from infernix.cli.chat_arguments import add_answer_arguments, options_from, thinking_from, tools_from
from infernix.cli.dialogue import Dialogue
from infernix.cli.lines import LineReader
from infernix.cli.report import finish_line
from infernix.errors import ConstraintDeadEnd, ContextLengthExceeded, InvalidPrompt
from infernix.messages import ChatPrompt
from infernix.options import RequestOptions
from infernix.results import FinishReason, GenerationResult
from infernix.tools import ToolChoice, ToolDefinition, ToolMode

_EXIT, _RESET = "/exit", "/reset"
# What one line brings about, and another line need not.
_ERRORS_OF_A_LINE = (ContextLengthExceeded, ConstraintDeadEnd, InvalidPrompt)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command's own parser."""
    parser = commands.add_parser(
        "chat",
        help="talk with the model",
        description="Reads a line, answers it, and so on to the end of the input. Where the model calls tools, the"
        " calls are printed and the next lines are their results, one each. The lines /exit and /reset end the chat and"
        " begin it anew; Ctrl-C ends an answer.",
        allow_abbrev=False,
    )
    parser.add_argument("--system", metavar="TEXT", action=Once, help="what the model is told before all else")
    add_answer_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code. With lines from a pipe, the first error ends the chat; on a terminal the chat goes on."""
    refuse_shared_input("-", arguments.grammar_file, arguments.json_schema_file, arguments.tools)
    tools = tools_from(arguments)
    options = options_from(arguments, tools)
    return _Chat(arguments, tools, options).run(LineReader())


class _Chat:
    """One run of the command. `exit_code` tells of the answers so far."""

    def __init__(
        self, arguments: argparse.Namespace, tools: tuple[ToolDefinition, ...], options: RequestOptions
    ) -> None:
        self._arguments = arguments
        self._tools = tools
        self._options = options
        self._engine = load_engine(arguments)
        self._dialogue = Dialogue(arguments.system)
        self._exit_code = exit_codes.SUCCESS

    def run(self, lines: LineReader) -> int:
        """Answers line after line."""
        while (line := lines.read("> ")) not in (None, _EXIT):
            if line == _RESET:
                self._dialogue = Dialogue(self._arguments.system)
            elif line.strip():
                self._dialogue.ask(line)
                if not self._answer(lines):
                    break
        return self._exit_code

    def _answer(self, lines: LineReader) -> bool:
        """Answers the last question, calls and their results included; False: the chat is to end."""
        dialogue, choice = self._dialogue, self._options.tool_choice
        while dialogue.is_waiting:
            try:
                result = self._generate(choice)
            except _ERRORS_OF_A_LINE as error:
                if not lines.is_terminal:
                    raise
                print(f"\ninfernix: error: {error}", file=sys.stderr)
                dialogue.take_back()
                return True
            dialogue.answer(result)
            while dialogue.open_calls:
                line = lines.read(f"result of {dialogue.open_calls[0].name}> ")
                if line is None or line == _EXIT:
                    return False
                dialogue.give_result(line)
            choice = self._after_calls(choice)
        return True

    def _generate(self, choice: ToolChoice) -> GenerationResult:
        prompt = ChatPrompt(self._dialogue.messages, self._tools, thinking=thinking_from(self._arguments))
        stream = self._engine.stream(prompt, replace(self._options, tool_choice=choice))
        result = publish_answer(stream, ends_line=True, show_reasoning=self._arguments.show_reasoning)
        if result.finish_reason is not FinishReason.STOP_TOKEN:
            print(finish_line(result), file=sys.stderr)
        is_interrupted = result.finish_reason is FinishReason.CANCELLED
        if result.constraint is not None and not result.constraint.complete and not is_interrupted:
            self._exit_code = exit_codes.INCOMPLETE
        return result

    def _after_calls(self, choice: ToolChoice) -> ToolChoice:
        """A call that was required has been made: the answer to its result may be text."""
        if choice.mode is not ToolMode.REQUIRED:
            return choice
        return ToolChoice(parallel=not self._arguments.no_parallel_tools, enforcement=choice.enforcement)
