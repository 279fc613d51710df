"""From a prompt and options to a request that needs nothing but a place, on the calling thread."""

from __future__ import annotations

import time
from dataclasses import replace

from infernix.engine.constraints import ConstraintService
from infernix.engine.prompt import Prompt, prepare_prompt
from infernix.engine.request import PreparedRequest
from infernix.errors import InvalidOptions
from infernix.frontend.budget import OutputBudget
from infernix.frontend.opening import OutputModel, open_session, refuse_loose_options
from infernix.frontend.output_grammar import output_grammar
from infernix.frontend.phases import StartingPhase
from infernix.frontend.prompt import PreparedPrompt
from infernix.frontend.tools.selection import select_tools
from infernix.models import LoadedModel
from infernix.options import RequestOptions, resolve_sampling


class Preparation:
    """Prepares prompts and requests of one model. All methods may be called from any thread."""

    def __init__(
        self, loaded: LoadedModel, constraints: ConstraintService, forced_end: tuple[int, ...], max_context: int
    ) -> None:
        """`forced_end` are the tokens that end the reasoning when its budget is used up."""
        self._loaded = loaded
        self._constraints = constraints
        self._output = OutputModel(loaded.tokenizer.vocabulary(), loaded.framing, forced_end)
        self._max_context = max_context

    def prompt(self, prompt: Prompt) -> PreparedPrompt:
        """The prompt as tokens, with where its answer begins. Compiles nothing. Raises InvalidPrompt and, for tools
        that are not well formed, InvalidToolConstraint.
        """
        start = time.perf_counter()
        prepared = prepare_prompt(prompt, self._loaded)
        return replace(prepared, prepare_seconds=time.perf_counter() - start)

    def request(self, prepared: PreparedPrompt, options: RequestOptions) -> PreparedRequest:
        """A request with its own matcher and output. Compiles its grammar, unless that is known.

        Raises a RequestError for what cannot be honoured.
        """
        start = time.perf_counter()
        budget = OutputBudget.of(options.max_new_tokens, len(prepared.tokens), self._max_context)
        content = options.constraint
        sampling = resolve_sampling(options.sampling, self._loaded.sampling_defaults, constrained=content is not None)
        framing = self._loaded.framing
        policy = select_tools(
            prepared.tools, options.tool_choice, framing.tool_style, None if content is None else content.kind
        )
        if prepared.phase is StartingPhase.RAW:
            policy = None  # a text to continue has no tools, and a mark of a call in it is text
            if options.thinking_budget is not None:
                raise InvalidOptions("a text to continue has no thinking apart from the rest", field="thinking_budget")
        grammar = output_grammar(framing, prepared.phase, policy, content)
        if grammar is not None:
            refuse_loose_options(options)
        session = open_session(
            self._output,
            prepared.phase,
            budget,
            options,
            constraint=None if grammar is None else self._constraints.prepare(grammar),
            policy=policy,
            continuation=prepared.continuation,
        )
        return PreparedRequest(
            prompt=prepared.tokens,
            budget=budget,
            sampling=sampling,
            session=session,
            prompt_seconds=prepared.prepare_seconds,
            prepare_seconds=time.perf_counter() - start,
        )
