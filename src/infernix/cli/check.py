"""`infernix check`: is this constraint accepted, and does a text belong to its language?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from infernix.cli import exit_codes
from infernix.cli.arguments import Once, add_constraint_arguments, constraint_from, refuse_shared_input
from infernix.cli.files import display_name, read_bytes
from infernix.cli.report import print_progress
from infernix.errors import InvalidOptions
from infernix.options import OutputConstraint

if TYPE_CHECKING:
    from infernix.matching import ConfigurationTable, Vocabulary


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command's own parser."""
    parser = commands.add_parser(
        "check",
        help="say whether a constraint is accepted, and whether a text belongs to its language",
        description="Compiles a constraint without running a model. Exit code 0: accepted (and the text belongs to the "
        "language); 1: the text does not belong to it; 2: the constraint is refused.",
        allow_abbrev=False,
    )
    add_constraint_arguments(parser, required=True)
    parser.add_argument("--text", metavar="FILE", action=Once, help="also judge this text, byte for byte ('-': stdin)")
    parser.add_argument("--model", metavar="PATH", action=Once, help="also check against its vocabulary; see generate")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code; a refused constraint is raised."""
    refuse_shared_input(arguments.grammar_file, arguments.json_schema_file, arguments.text)
    constraint = constraint_from(arguments)
    if constraint is None:
        raise InvalidOptions("one is needed", field="constraint")
    text = None if arguments.text is None else read_bytes(arguments.text)

    # Imported here, so that a wrong flag is answered at once: this loads numba.
    from infernix.cli.judgement import judge

    table = _compiled(constraint, arguments.model)
    print("accepted", flush=True)
    if text is None:
        return exit_codes.SUCCESS
    if table.token_sets:
        raise InvalidOptions(
            "the grammar names tokens, and a text does not say which tokens it is made of", field="text"
        )
    judgement = judge(table, text)
    print(judgement.describe(display_name(arguments.text)))
    return exit_codes.SUCCESS if judgement.belongs else exit_codes.DOES_NOT_BELONG


def _compiled(constraint: OutputConstraint, model: str | None) -> ConfigurationTable:
    """The language of the constraint; with a model, token references and dead ends are found as well."""
    from infernix.grammar.build import build_grammar
    from infernix.matching import ConfigurationTable, GrammarCompiler, warm_kernels

    # Kernels are warmed only to say what takes so long where an installation compiles them for the first time.
    if model is None:
        grammar = build_grammar(constraint)
        warm_kernels(print_progress)
        return ConfigurationTable.of(grammar)
    compiler = GrammarCompiler(_vocabulary(model))
    warm_kernels(print_progress)
    return compiler.compile(constraint).grammar.configurations


def _vocabulary(model: str) -> Vocabulary:
    """Of the model's tokenizer: the weights are not opened."""
    from infernix.models.directory import ModelDirectory

    return ModelDirectory.find(model, print_progress).tokenizer().vocabulary()
