"""Flags that several commands share, and what they mean."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from infernix.cli.files import InputFileError, read_text
from infernix.cli.report import print_progress
from infernix.errors import InvalidOptions
from infernix.options import OutputConstraint, SamplingOptions
from infernix.program.drafters.ngram import DEFAULT_MIN_MATCH

if TYPE_CHECKING:
    from infernix.engine import Engine

# Their value is the next argument whatever it looks like: an expression may well start with a dash.
_TEXT_FLAGS = frozenset({"--prompt", "--system", "--regex", "--choice", "--ignore-keyword", "--stop", "--tool-choice"})

_FLAG_OF_FIELD = {
    "max_new_tokens": "--max-new",
    "num_threads": "--threads",
    "speculation": "--spec",
    "ignore_keywords": "--ignore-keyword",
    "parallel": "--no-parallel-tools",
    "enforcement": "--tool-enforcement",
}


class Once(argparse.Action):
    """Stores a value, and refuses the flag's second use instead of forgetting the first."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        given: set[str] = namespace.__dict__.setdefault("given_flags", set())
        if self.dest in given:  # a value that is there may also be the default
            parser.error(f"argument {option_string}: given twice")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


def bind_text_values(arguments: Sequence[str]) -> list[str]:
    """`--regex -?[0-9]` as `--regex=-?[0-9]`: argparse would take the value for a flag."""
    bound: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        value = next(remaining, None) if argument in _TEXT_FLAGS else None
        bound.append(argument if value is None else f"{argument}={value}")
    return bound


def add_constraint_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """The five forms of a constraint, of which one may be used, and what goes with one of them."""
    forms = parser.add_argument_group("constraint (one of these)")
    group = forms.add_mutually_exclusive_group(required=required)
    group.add_argument("--grammar-file", metavar="FILE", action=Once, help="GBNF grammar with the entry rule root")
    group.add_argument("--json-schema-file", metavar="FILE", action=Once, help="JSON that this JSON Schema accepts")
    group.add_argument("--json-object", action="store_true", help="any JSON object")
    group.add_argument("--regex", metavar="REGEX", action=Once, help="text that the expression matches as a whole")
    group.add_argument("--choice", metavar="TEXT", action="append", help="exactly one of these; repeat the flag")
    forms.add_argument(
        "--ignore-keyword",
        metavar="NAME",
        action="append",
        default=[],
        help="a keyword of the JSON Schema that is to have no effect instead of being refused; repeat the flag",
    )


def constraint_from(arguments: argparse.Namespace) -> OutputConstraint | None:
    """The constraint that the flags ask for; its source is read, not yet parsed."""
    if arguments.ignore_keyword and arguments.json_schema_file is None:
        raise InvalidOptions("only a JSON Schema has keywords", field="ignore_keywords")
    if arguments.grammar_file is not None:
        return OutputConstraint.grammar(read_text(arguments.grammar_file))
    if arguments.json_schema_file is not None:
        return OutputConstraint.json_schema(
            read_text(arguments.json_schema_file), ignore_keywords=arguments.ignore_keyword
        )
    if arguments.json_object:
        return OutputConstraint.json_object()
    if arguments.regex is not None:
        return OutputConstraint.regex(arguments.regex)
    if arguments.choice is not None:
        return OutputConstraint.choice(arguments.choice)
    return None


def flag_of(field: str) -> str:
    """The flag that sets an option."""
    return _FLAG_OF_FIELD.get(field, f"--{field.replace('_', '-')}")


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    """How tokens are drawn; what is not given is the model's own default."""
    group = parser.add_argument_group("sampling (default: the model's own)")
    heat = group.add_mutually_exclusive_group()
    heat.add_argument("--greedy", action="store_true", help="always the best legal token")
    heat.add_argument("--temperature", metavar="T", type=float, action=Once, help="0..2; 0 is greedy")
    group.add_argument("--top-k", metavar="N", type=int, action=Once, help="0 keeps every legal token")
    group.add_argument("--top-p", metavar="P", type=float, action=Once, help="0..1")
    group.add_argument("--min-p", metavar="P", type=float, action=Once, help="0..1, relative to the best token")
    group.add_argument("--presence-penalty", metavar="X", type=float, action=Once, help="-2..2")
    group.add_argument("--frequency-penalty", metavar="X", type=float, action=Once, help="-2..2")
    group.add_argument("--seed", metavar="N", type=int, action=Once, help="same seed, same answer (default 0)")


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """How long an answer may be, and what else may end it."""
    parser.add_argument(
        "--max-new", metavar="N", type=int, action=Once, default=256, help="most new tokens (default 256)"
    )
    parser.add_argument(
        "--stop",
        metavar="TEXT",
        action="append",
        default=[],
        help="a text that ends the answer where it first comes, not with a constraint; repeat the flag",
    )


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Which model runs, and on what."""
    parser.add_argument("--model", metavar="PATH", action=Once, help="a Hugging Face directory (default: embedded)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), action=Once, default="auto", help="(default auto)")
    parser.add_argument(
        "--dtype",
        choices=("auto", "float32", "bfloat16", "float16", "int8"),
        action=Once,
        default="auto",
        help="number format of the weights (default auto)",
    )
    parser.add_argument(
        "--threads", metavar="N", type=int, action=Once, default=1, help="compute threads on a CPU (default 1)"
    )
    parser.add_argument("--max-context", metavar="N", type=int, action=Once, help="most tokens, prompt and answer")
    add_draft_arguments(parser)


def add_draft_arguments(parser: argparse.ArgumentParser) -> None:
    """What is guessed ahead; it makes decoding faster and changes no answer."""
    parser.add_argument(
        "--ngram-draft-tokens",
        metavar="N",
        type=int,
        action=Once,
        default=0,
        help="guess up to N tokens ahead by copying from prompt and answer, 0..63 (default 0: off)",
    )
    parser.add_argument(
        "--ngram-min-match",
        metavar="N",
        type=int,
        action=Once,
        default=DEFAULT_MIN_MATCH,
        help=f"tokens before a copy that must be the same, 4..64 (default {DEFAULT_MIN_MATCH})",
    )
    parser.add_argument(
        "--spec",
        metavar="BACKEND",
        action=Once,
        default="none",
        help="a network that guesses where nothing is copied: mtp (the predictor of a Qwen3.5 or"
        " Qwen3.8-Flash-Next checkpoint), dflash or dflash2 (default none)",
    )
    parser.add_argument(
        "--draft-tokens",
        metavar="N",
        type=int,
        action=Once,
        help="guess up to N tokens ahead with it: mtp 1..5 (default 3), dflash and dflash2 1..15 (default 7)",
    )
    parser.add_argument(
        "--draft-model", metavar="DIR", action=Once, help="the directory of a dflash or dflash2 drafter"
    )


def load_engine(arguments: argparse.Namespace) -> Engine:
    """The engine that the flags of `add_model_arguments` ask for."""
    # Imported here, so that a wrong flag is answered at once: PyTorch takes seconds to load.
    from infernix.engine import Engine

    return Engine.load(arguments.model, max_concurrency=1, **model_options(arguments))


def model_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the flags of `add_model_arguments` mean to `Engine.load`, but for the model itself."""
    return {
        "device": arguments.device,
        "dtype": arguments.dtype,
        "num_threads": arguments.threads,
        "max_context": arguments.max_context,
        "ngram_draft_tokens": arguments.ngram_draft_tokens,
        "ngram_min_match": arguments.ngram_min_match,
        "speculation": arguments.spec,
        "draft_tokens": arguments.draft_tokens,
        "draft_model": arguments.draft_model,
        "progress": print_progress,
    }


def sampling_from(arguments: argparse.Namespace) -> SamplingOptions:
    """Raises InvalidOptions for a value that is out of range."""
    return SamplingOptions(
        temperature=0.0 if arguments.greedy else arguments.temperature,
        top_k=arguments.top_k,
        top_p=arguments.top_p,
        min_p=arguments.min_p,
        presence_penalty=arguments.presence_penalty,
        frequency_penalty=arguments.frequency_penalty,
        seed=arguments.seed,
    )


def refuse_shared_input(*paths: str | None) -> None:
    """Standard input can be read once: two files named `-` are a mistake."""
    if sum(path == "-" for path in paths) > 1:
        raise InputFileError("only one of the files can be standard input ('-')")
