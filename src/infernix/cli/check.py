"""`infernix check`: is this constraint accepted, and does a text belong to its language?"""

from __future__ import annotations

import argparse

from infernix.cli import exit_codes
from infernix.cli.arguments import Once, add_constraint_arguments, constraint_from, refuse_shared_input
from infernix.cli.files import display_name, read_bytes
from infernix.cli.judgement import judge
from infernix.errors import InvalidOptions
from infernix.grammar import ir


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
    parser.add_argument("--model", metavar="PATH", action=Once, help="also check against this model's vocabulary")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code; a refused constraint is raised."""
    refuse_shared_input(arguments.grammar_file, arguments.json_schema_file, arguments.text)
    constraint = constraint_from(arguments)
    if constraint is None:
        raise InvalidOptions("one is needed", field="constraint")
    text = None if arguments.text is None else read_bytes(arguments.text)

    # Imported here, so that a wrong flag is answered at once: these load numba.
    from infernix.grammar.build import build_grammar
    from infernix.matching import ConfigurationTable

    grammar = build_grammar(constraint)
    table = ConfigurationTable(grammar)
    print("accepted")
    if text is None:
        return exit_codes.SUCCESS
    if names_tokens(grammar):
        raise InvalidOptions(
            "the grammar names tokens, and a text does not say which tokens it is made of", field="text"
        )
    judgement = judge(table, text)
    print(judgement.describe(display_name(arguments.text)))
    return exit_codes.SUCCESS if judgement.belongs else exit_codes.DOES_NOT_BELONG


def names_tokens(grammar: ir.Grammar) -> bool:
    """Whether a token terminal stands anywhere in the rules."""
    pending: list[ir.Expression] = [rule.body for rule in grammar.rules]
    while pending:
        expression = pending.pop()
        match expression:
            case ir.TokenSet():
                return True
            case ir.Sequence(items=parts) | ir.Choice(options=parts):
                pending += parts
            case ir.Repeat(body=body):
                pending.append(body)
            case _:
                pass
    return False
