"""Grammars of whole answers, written down by hand: the framing that the readers of output rely on."""

from __future__ import annotations

from infernix.frontend.framing import Framing, ToolStyle
from infernix.grammar import ir
from infernix.grammar.unicode import character_class

LETTERS = ir.Repeat(character_class([(ord("a"), ord("d")), (ord("\n"), ord("\n")), (0x5728, 0x5728)]), 0, 5)
# Its string can spell the marks.
JSON_CONTENT = ir.Sequence(
    (ir.Literal(b'{"a": "'), ir.Repeat(character_class([(0x3C, 0x5B), (0x5F, 0x7A)]), 0, 12), ir.Literal(b'"}'))
)
ANY_TEXT = ir.Repeat(ir.TokenSet((), excluded=True), 0, None)


def _mark(token: int | None, spelling: bytes) -> ir.Expression:
    return ir.Literal(spelling) if token is None else ir.TokenSet((token,))


def tool_call(framing: Framing) -> ir.Expression:
    """A call of `f` with an optional string `a`."""
    if framing.tool_style is ToolStyle.XML:
        parameter = ir.Sequence((ir.Literal(b"<parameter=a>\n"), LETTERS, ir.Literal(b"\n</parameter>\n")))
        body: tuple[ir.Expression, ...] = (
            ir.Literal(b"\n<function=f>\n"),
            ir.optional(parameter),
            ir.Literal(b"</function>\n"),
        )
    else:
        member = ir.Sequence(
            (ir.Literal(b'"a": "'), ir.Repeat(character_class([(ord("a"), ord("d"))]), 0, 5), ir.Literal(b'"'))
        )
        body = (ir.Literal(b'\n{"name": "f", "arguments": {'), ir.optional(member), ir.Literal(b"}}\n"))
    return ir.Sequence((_mark(framing.tool_open, b"<tool_call>"), *body, _mark(framing.tool_close, b"</tool_call>")))


def tool_calls(framing: Framing) -> ir.Expression:
    """One call or several."""
    call = tool_call(framing)
    return ir.Sequence((call, ir.Repeat(ir.Sequence((ir.Literal(b"\n"), call)), 0, 2)))


def text_then_calls(framing: Framing) -> ir.Expression:
    """Any text, and then perhaps calls; for framings with tokens."""
    assert framing.tool_open is not None
    return ir.Sequence((ANY_TEXT, ir.optional(tool_calls(framing))))


def json_or_calls(framing: Framing) -> ir.Expression:
    """An object, or calls."""
    return ir.Choice((JSON_CONTENT, tool_calls(framing)))
