"""Everything that an answer can be, as one grammar: thinking, then content or tool calls.

    answer     = thinking? body                                 (thinking where the prompt ends inside it)
    thinking   = reasoning-token* close-token "\\n\\n"
    body       = content-constraint                             without tools
               | text | text? calls                             tools may be called
               | calls                                          a call is required
               | content-constraint | calls                     JSON output and tools: one of them
               | text                                           no tool may be called
    calls      = call ("\\n" call)*                              or a single call
    call       = opener framed-call closer

The marks are tokens where the vocabulary has them, and the spelling of such a mark by ordinary tokens is text like any
other. Where it has none, they are text, and the first `<tool_call>` in free text opens a call. Free text is any
Unicode text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from infernix.errors import InvalidToolConstraint
from infernix.frontend.framing import THINK_SEPARATOR, TOOL_CLOSE, TOOL_OPEN, Framing, ToolStyle
from infernix.frontend.phases import StartingPhase
from infernix.frontend.tools.contract import ToolPolicy
from infernix.frontend.tools.json_calls import json_call
from infernix.frontend.tools.xml_calls import xml_call
from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.grammar.schema.nodes import StringNode
from infernix.grammar.schema.strings import lower_raw_string
from infernix.grammar.unicode import character_class
from infernix.matching.matcher import Matcher
from infernix.matching.sources import constraint_key, digest
from infernix.options import ConstraintKind, OutputConstraint

_ANY_TEXT = ir.Repeat(character_class([(0, ir.MAX_CODE_POINT)]), 0, None)


@dataclass(frozen=True)
class OutputGrammar:
    """A source that `GrammarCompiler.compile` takes; see `output_grammar`."""

    framing: Framing
    thinks: bool
    policy: ToolPolicy | None
    content: OutputConstraint | None

    @property
    def content_kind(self) -> ConstraintKind | None:
        """The kind of the content constraint."""
        return None if self.content is None else self.content.kind

    @property
    def has_open_names(self) -> bool:
        """Whether arguments may have names that are not declared: then a companion has to see that none comes twice."""
        return self.policy is not None and any(not tool.strict for tool in self.policy.tools)

    @property
    def has_json_branch(self) -> bool:
        """Whether the answer is either JSON content or calls."""
        return self.content is not None and self.policy is not None and not self.policy.required

    @cached_property
    def cache_key(self) -> bytes:
        """Two answers have the same key where their grammars are the same. Of a tool that is not strict, no more than
        its name counts."""
        content = b"" if self.content is None else constraint_key(self.content)
        if self.policy is None and not self.thinks:
            return content
        framing = self.framing
        thinking = repr((framing.think_close, framing.passing_ids)) if self.thinks else ""
        tools: list[str] = []
        if self.policy is not None:
            marks = (framing.tool_style.value, framing.tool_open, framing.tool_close)
            tools.append(repr((marks, self.policy.required, self.policy.parallel)))
            for tool in self.policy.tools:
                # Errors tell which of the tools they are about.
                tools += (tool.name, tool.parameters, str(tool.index)) if tool.strict else (tool.name, "", "")
        return digest("answer", thinking, content, *tools)

    def build(self, token_error: Callable[[int], str | None] | None = None) -> ir.Grammar:
        """The grammar. Raises the content constraint's own errors, and those of a strict tool's schema with the tool's
        name and a pointer into the list of tools."""
        content = None if self.content is None else build_grammar(self.content, token_error)
        if content is not None and self.policy is None and not self.thinks:
            return content
        builder = ir.GrammarBuilder() if content is None else ir.GrammarBuilder.extending(content)
        content_rule = None if content is None else ir.RuleReference(content.root)
        body = self._body(builder, content_rule)
        return builder.build(builder.add("answer", ir.Sequence((*self._thinking(), body))))

    def advance_to_content(self, matcher: Matcher) -> None:
        """Closes thinking in the shortest way."""
        if self.thinks and self.framing.think_close is not None:
            matcher.accept(self.framing.think_close)
            matcher.accept_bytes(THINK_SEPARATOR)

    def _thinking(self) -> tuple[ir.Expression, ...]:
        close = self.framing.think_close
        if not self.thinks or close is None:
            return ()
        reasoning: list[ir.Expression] = [ir.TokenSet((close,), excluded=True)]
        if self.framing.passing_ids:
            reasoning.append(ir.TokenSet(self.framing.passing_ids))
        return ir.Repeat(ir.choice(*reasoning), 0, None), ir.TokenSet((close,)), ir.Literal(THINK_SEPARATOR)

    def _body(self, builder: ir.GrammarBuilder, content: ir.Expression | None) -> ir.Expression:
        if self.policy is None:
            return _ANY_TEXT if content is None else content
        if not self.policy.tools:
            return _ANY_TEXT if self.framing.tool_open is not None else _text_without_opener()
        calls = self._calls(builder, self.policy)
        if self.policy.required:
            return calls
        if content is not None:
            return ir.Choice((content, calls))
        if self.framing.tool_open is not None:
            return ir.Sequence((_ANY_TEXT, ir.optional(calls)))
        return ir.Sequence((_text_without_opener(), ir.optional(calls)))

    def _calls(self, builder: ir.GrammarBuilder, policy: ToolPolicy) -> ir.Expression:
        framing = self.framing
        call = builder.declare("call")
        framed_call = xml_call if framing.tool_style is ToolStyle.XML else json_call
        opener, closer = _mark(framing.tool_open, TOOL_OPEN), _mark(framing.tool_close, TOOL_CLOSE)
        builder.define(call, ir.Sequence((opener, framed_call(policy.tools, builder), closer)))
        if not policy.parallel:
            return call
        return ir.Sequence((call, ir.Repeat(ir.Sequence((ir.Literal(b"\n"), call)), 0, None)))


def output_grammar(
    framing: Framing, phase: StartingPhase, policy: ToolPolicy | None, content: OutputConstraint | None
) -> OutputGrammar | None:
    """The grammar of an answer that begins in `phase`; None where nothing constrains it.

    A raw text has neither thinking nor calls: the content constraint binds from the first token. Raises
    InvalidToolConstraint for tools there.
    """
    if phase is StartingPhase.RAW:
        if policy is not None and policy.tools:
            raise InvalidToolConstraint("a text that is continued as it stands has no tool calls")
        policy = None
    if policy is not None and not policy.constrained:
        policy = None
    if policy is None and content is None:
        return None
    thinks = phase is StartingPhase.THINKING and framing.think_close is not None
    return OutputGrammar(framing, thinks, policy, content)


def _mark(token: int | None, spelling: str) -> ir.Expression:
    return ir.text(spelling) if token is None else ir.TokenSet((token,))


def _text_without_opener() -> ir.Expression:
    return lower_raw_string(StringNode(), TOOL_OPEN)
