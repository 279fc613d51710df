"""The companion that belongs to an answer's grammar."""

from __future__ import annotations

from functools import cached_property

from infernix.frontend.framing import ToolStyle
from infernix.frontend.output_grammar import OutputGrammar
from infernix.frontend.tools.argument_names import ArgumentNameIndex, ArgumentNames
from infernix.frontend.tools.parameter_names import ParameterNameIndex, ParameterNames
from infernix.matching.matcher import Companion
from infernix.matching.vocabulary import Vocabulary


class NameCompanions:
    """Makes companions for one vocabulary. What they need of it is worked out once, when the first one is made; two
    threads may do so at the same time, to the same end."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def companion(self, grammar: OutputGrammar) -> Companion | None:
        """What a matcher of this grammar has to be made with; None where all names are declared."""
        if not grammar.has_open_names:
            return None
        if grammar.framing.tool_style is ToolStyle.XML:
            return ParameterNames(grammar, self._parameter_names)
        return ArgumentNames(grammar, self._argument_names)

    @cached_property
    def _parameter_names(self) -> ParameterNameIndex:
        return ParameterNameIndex(self._vocabulary)

    @cached_property
    def _argument_names(self) -> ArgumentNameIndex:
        return ArgumentNameIndex(self._vocabulary)
