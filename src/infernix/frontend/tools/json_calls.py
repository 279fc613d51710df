"""The calls of the JSON way of writing, as a grammar: all that stands between the two marks of a call.

    \\n{"name": "NAME", "arguments": {...}}\\n

with the spacing of templates throughout. A strict tool's arguments satisfy its schema; the others' are any object.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

from infernix.errors import ConstraintError
from infernix.frontend.framing import ToolStyle
from infernix.frontend.tools.contract import ToolContract
from infernix.frontend.tools.selection import tool_error
from infernix.frontend.tools.strict_schema import read_strict_schema
from infernix.grammar.ir import Expression, GrammarBuilder, Literal, Sequence, choice
from infernix.grammar.json_values import JsonRules, Spacing, canonical_string
from infernix.grammar.schema.lowering import Lowering

_HEAD, _MIDDLE, _TAIL = b'\n{"name": ', b', "arguments": ', b"}\n"


def json_call(tools: SequenceOf[ToolContract], builder: GrammarBuilder) -> Expression:
    """Any call of one of `tools`, one at least, without its marks. Raises a ConstraintError that names the tool."""
    rules = JsonRules(builder, Spacing.TEMPLATE)
    calls: list[Expression] = []
    free = [_named(tool) for tool in tools if not tool.strict]
    if free:
        calls.append(Sequence((choice(*free), rules.object)))
    for tool in tools:
        if tool.strict:
            calls.append(Sequence((_named(tool), _strict_arguments(tool, rules))))
    return Sequence((Literal(_HEAD), choice(*calls), Literal(_TAIL)))


def _named(tool: ToolContract) -> Literal:
    return Literal(canonical_string(tool.name) + _MIDDLE)


def _strict_arguments(tool: ToolContract, rules: JsonRules) -> Expression:
    try:
        schema = read_strict_schema(tool.parameters, ToolStyle.JSON)
        lowering = Lowering(schema.graph, schema.satisfiability, rules)
        root = lowering.rule(schema.graph.ROOT)
        assert root is not None
        lowering.finish()
    except ConstraintError as error:
        raise tool_error(error, tool.name, tool.index) from None
    return root
