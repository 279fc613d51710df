"""Flags of the commands that generate answers; tools and thinking are for answers to messages only."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from infernix.cli.arguments import (
    Once,
    add_constraint_arguments,
    add_model_arguments,
    add_output_arguments,
    add_sampling_arguments,
    constraint_from,
    sampling_from,
)
from infernix.cli.tool_files import read_tools
from infernix.errors import InvalidOptions
from infernix.options import RequestOptions
from infernix.tools import ToolChoice, ToolDefinition, ToolEnforcement, ToolMode


def add_answer_arguments(parser: argparse.ArgumentParser) -> None:
    """How an answer is generated, and by what; everything but the prompt."""
    add_constraint_arguments(parser, required=False)
    _add_tool_arguments(parser)
    _add_thinking_arguments(parser)
    add_sampling_arguments(parser)
    add_output_arguments(parser)
    add_model_arguments(parser)


def _add_tool_arguments(parser: argparse.ArgumentParser) -> None:
    """Which tools the model may call, and how."""
    group = parser.add_argument_group("tools")
    group.add_argument(
        "--tools", metavar="FILE", action=Once, help="what the model may call: a JSON list in OpenAI's form"
    )
    group.add_argument(
        "--tool-choice",
        metavar="CHOICE",
        action=Once,
        default=ToolMode.AUTO.value,
        help="auto (default), none, required, or the name of the one tool to call",
    )
    group.add_argument("--no-parallel-tools", action="store_true", help="at most one call in an answer")
    group.add_argument(
        "--tool-enforcement",
        choices=[enforcement.value for enforcement in ToolEnforcement],
        action=Once,
        default=ToolEnforcement.BASIC.value,
        help="basic (default): every call has the form of one; automatic: only what is asked for is enforced",
    )


def _add_thinking_arguments(parser: argparse.ArgumentParser) -> None:
    """Whether a model that can think does so, and for how long."""
    group = parser.add_argument_group("thinking (models whose chat template has it)")
    switch = group.add_mutually_exclusive_group()
    switch.add_argument("--thinking", action="store_true", help="think before answering (default: the template's)")
    switch.add_argument("--no-thinking", action="store_true", help="answer at once")
    group.add_argument(
        "--thinking-budget", metavar="N", type=int, action=Once, help="most tokens of thinking (default: no bound)"
    )
    group.add_argument("--show-reasoning", action="store_true", help="print the thinking on standard error")


def tools_from(arguments: argparse.Namespace) -> tuple[ToolDefinition, ...]:
    """The declared tools. Raises InvalidOptions for a flag that has no meaning without them."""
    if arguments.tools is not None:
        return read_tools(arguments.tools)
    given: set[str] = getattr(arguments, "given_flags", set())
    for field in ("tool_choice", "tool_enforcement"):
        if field in given:
            raise InvalidOptions("there are no tools (--tools)", field=field)
    if arguments.no_parallel_tools:
        raise InvalidOptions("there are no tools (--tools)", field="no_parallel_tools")
    return ()


def options_from(arguments: argparse.Namespace, tools: Sequence[ToolDefinition]) -> RequestOptions:
    """The options of a request; what is wrong in them is told by flag."""
    return RequestOptions(
        max_new_tokens=arguments.max_new,
        constraint=constraint_from(arguments),
        sampling=sampling_from(arguments),
        tool_choice=_tool_choice(arguments, tools),
        thinking_budget=arguments.thinking_budget,
        stop=tuple(arguments.stop),
    )


def thinking_from(arguments: argparse.Namespace) -> bool | None:
    """True or False to switch thinking, None for the template's own way."""
    return True if arguments.thinking else False if arguments.no_thinking else None


def _tool_choice(arguments: argparse.Namespace, tools: Sequence[ToolDefinition]) -> ToolChoice:
    asked = arguments.tool_choice
    if asked in list(ToolMode):
        choice = ToolChoice(ToolMode(asked))
    elif any(tool.name == asked for tool in tools):
        choice = ToolChoice.named(asked)
    else:
        modes = ", ".join(ToolMode)
        raise InvalidOptions(f"{asked[:40]!r} is neither {modes} nor the name of a tool", field="tool_choice")
    return replace(
        choice,
        parallel=choice.parallel and not arguments.no_parallel_tools,
        enforcement=ToolEnforcement(arguments.tool_enforcement),
    )
