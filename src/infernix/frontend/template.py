"""Chat templates: a conversation to token ids, with what callers say kept apart from what the template says."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2

from infernix.errors import InvalidPrompt
from infernix.frontend.regions import Marks, Region
from infernix.frontend.template_environment import compile_template, own_template, render
from infernix.frontend.template_values import Conversation, marked_values, meaningless_values, plain_values
from infernix.frontend.tokenizer import TextPiece, Tokenizer


class ChatTemplate:
    """A Jinja template over a message list, as Hugging Face models carry it; `source` None: the model has none.

    Where the model's own template says nothing of tools, a conversation with tools is rendered by the ChatML template
    of this package instead, if the model has ChatML's tokens.
    """

    def __init__(
        self, source: str | None, tokenizer: Tokenizer, *, special_tokens: Mapping[str, str] | None = None
    ) -> None:
        """`special_tokens` are the template's variables such as `bos_token`. Raises ModelLoadError for bad syntax."""
        self.source = source
        self._tokenizer = tokenizer
        self._special_tokens = dict(special_tokens or {})
        self._template = None if source is None else compile_template(source)
        has_chatml = all(tokenizer.control_id(token) is not None for token in ("<|im_start|>", "<|im_end|>"))
        self._tool_template = compile_template(own_template("chatml")) if has_chatml else None

    def render(self, conversation: Conversation) -> list[int]:
        """Token ids of the conversation: up to where the next assistant turn begins, or the final one goes on.

        Raises InvalidPrompt where the model has no template, the template fails, it shows no tools although there are
        some, or it changes what callers say so that it cannot be kept apart from control tokens.
        """
        template = self._template_for(conversation)
        # One moment for all renderings, or a template that prints the time could render two texts.
        values = {**self._special_tokens, "strftime_now": datetime.datetime.now().strftime}
        try:
            pieces = self._pieces(template, values, conversation)
        except RecursionError as error:
            raise InvalidPrompt("the arguments of a call or the parameters of a tool are nested too deeply") from error
        return self._tokenizer.encode_pieces(pieces)

    def _pieces(
        self, template: jinja2.Template, values: Mapping[str, Any], conversation: Conversation
    ) -> list[TextPiece | int]:
        plain = render(template, {**values, **plain_values(conversation)})
        marks = Marks(self._tokenizer.control_spellings)
        pieces = self._pieces_by_marks(template, values, conversation, plain, marks)
        return self._pieces_if_inert(template, values, conversation, plain, marks) if pieces is None else pieces

    def _template_for(self, conversation: Conversation) -> jinja2.Template:
        if self._template is None:
            raise InvalidPrompt("the model has no chat template: give the prompt as text")
        if not conversation.has_tools or self._shows_tools():
            return self._template
        if self._tool_template is None:
            raise InvalidPrompt("the model's chat template shows no tools: they cannot be declared to it")
        return self._tool_template

    def _shows_tools(self) -> bool:
        """Whether the template's text depends on the tools; one that uses the word at all is taken to mean it."""
        return self.source is not None and "tools" in self.source

    def _pieces_by_marks(
        self,
        template: jinja2.Template,
        values: Mapping[str, Any],
        conversation: Conversation,
        plain: str,
        marks: Marks,
    ) -> list[TextPiece | int] | None:
        """Pieces of `plain`, or None where a rendering with marks is another text."""
        for marked in marked_values(conversation, marks):
            try:
                text = render(template, {**values, **marked})
            except InvalidPrompt:
                continue
            regions = marks.split(text)
            if regions is None or "".join(region.text for region in regions) != plain:
                continue
            return self._join(_up_to_final(regions) if conversation.continue_final else regions)
        if conversation.continue_final:
            raise InvalidPrompt("the chat template changes the message that is to be continued")
        return None

    def _pieces_if_inert(
        self,
        template: jinja2.Template,
        values: Mapping[str, Any],
        conversation: Conversation,
        plain: str,
        marks: Marks,
    ) -> list[TextPiece | int]:
        """Pieces of `plain` where what callers say provably adds no control token.

        That is so if the same conversation with meaningless texts renders to the same row of control tokens.
        """
        pieces = list(self._tokenizer.split_control(plain))
        control = [piece for piece in pieces if isinstance(piece, int)]
        inert = render(template, {**values, **meaningless_values(conversation, marks)})
        if control == [piece for piece in self._tokenizer.split_control(inert) if isinstance(piece, int)]:
            return pieces
        raise InvalidPrompt(
            "the chat template changes the contents of the messages, and they spell control tokens of the model:"
            " they cannot be kept apart"
        )

    def _join(self, regions: Sequence[Region]) -> list[TextPiece | int]:
        """Control tokens of the template's regions, and between them text with what callers say in place.

        Text of both origins between two control tokens is one piece, so it is tokenised as if it were rendered plainly.
        """
        pieces: list[TextPiece | int] = []
        text = ""
        for region in regions:
            if region.is_said:
                text += region.text
                continue
            for piece in self._tokenizer.split_control(region.text):
                if isinstance(piece, int):
                    pieces += [TextPiece(text), piece]
                    text = ""
                else:
                    text += piece.text
        pieces.append(TextPiece(text))
        return pieces


def _up_to_final(regions: Sequence[Region]) -> Sequence[Region]:
    """Without what the template says after the last content, which ends the turn that is to go on."""
    num_kept = max((index + 1 for index, region in enumerate(regions) if region.is_said), default=0)
    return regions[:num_kept]
