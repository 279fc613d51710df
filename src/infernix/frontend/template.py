"""Chat templates: messages to token ids, keeping what a message says apart from what the template says.

A message may spell a control token. Rendered and tokenised as one text, that spelling would become the token, and a
user could end a turn or speak as the system. So the contents are rendered between random marks, which tell afterwards
what stems from a message; only the template's own text may give control tokens.
"""

from __future__ import annotations

import datetime
import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from infernix.errors import InvalidPrompt, ModelLoadError
from infernix.frontend.tokenizer import TextPiece, Tokenizer

ROLES = ("system", "user", "assistant")
_FIELDS = ("role", "content")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is one of ROLES."""

    role: str
    content: str


class ChatTemplate:
    """A Jinja template over a message list, as Hugging Face models carry it; `source` None: the model has none."""

    def __init__(
        self, source: str | None, tokenizer: Tokenizer, *, special_tokens: Mapping[str, str] | None = None
    ) -> None:
        """`special_tokens` are the template's variables such as `bos_token`. Raises ModelLoadError for bad syntax."""
        self._tokenizer = tokenizer
        self._special_tokens = dict(special_tokens or {})
        self._template: jinja2.Template | None = None
        if source is not None:
            try:
                self._template = _environment().from_string(source)
            except jinja2.TemplateSyntaxError as error:
                raise ModelLoadError(f"chat template: {error.message} at line {error.lineno}") from error
            except (jinja2.TemplateError, RecursionError, ValueError) as error:
                raise ModelLoadError(f"chat template: {error}") from error

    def render(self, messages: Sequence[Message | Mapping[str, object]]) -> list[int]:
        """Token ids of the conversation, ready for the next assistant turn.

        A message is a Message or a mapping with exactly `role` and `content`, both strings. Raises InvalidPrompt where
        the model has no template, a message is malformed, the template fails, or the template changes a content so that
        its text cannot be kept apart from control tokens.
        """
        turns = _checked_messages(messages)
        if self._template is None:
            raise InvalidPrompt("the model has no chat template: give the prompt as text")
        # One moment for all renderings, or a template that prints the time could render two texts.
        now = datetime.datetime.now()
        values = {**self._special_tokens, "add_generation_prompt": True, "strftime_now": now.strftime}
        plain = self._render(turns, values)
        pieces = self._pieces_by_marks(turns, values, plain)
        if pieces is None:
            pieces = self._pieces_if_inert(turns, values, plain)
        return self._tokenizer.encode_pieces(pieces)

    def _render(self, turns: Sequence[Message], values: Mapping[str, object]) -> str:
        assert self._template is not None
        messages = [{"role": turn.role, "content": turn.content} for turn in turns]
        try:
            return self._template.render(values, messages=messages)
        except jinja2.TemplateError as error:
            raise InvalidPrompt(f"the chat template refuses the messages: {error.message}") from error
        except Exception as error:  # a template is foreign code: it can fail like any expression
            raise InvalidPrompt(f"the chat template failed: {type(error).__name__}: {error}") from error

    def _pieces_by_marks(
        self, turns: Sequence[Message], values: Mapping[str, object], plain: str
    ) -> list[TextPiece | int] | None:
        """Pieces of `plain`, or None where marked contents render to another text.

        Templates often strip a content of white space, which marks around it prevent: so it is also tried stripped.
        """
        opening, closing = _Marks.new()
        for prepare in _PREPARATIONS:
            marked_turns = [Message(turn.role, f"{opening}{prepare(turn.content)}{closing}") for turn in turns]
            try:
                marked = self._render(marked_turns, values)
            except InvalidPrompt:
                continue
            regions = _split_regions(marked, opening, closing)
            if regions is not None and "".join(text for text, _ in regions) == plain:
                return self._join_regions(regions)
        return None

    def _pieces_if_inert(
        self, turns: Sequence[Message], values: Mapping[str, object], plain: str
    ) -> list[TextPiece | int]:
        """Pieces of `plain` where the contents provably add no control token.

        That is so if the same conversation with meaningless contents renders to the same row of control tokens.
        """
        pieces = list(self._tokenizer.split_control(plain))
        inert = self._render([Message(turn.role, secrets.token_hex(8)) for turn in turns], values)
        control = [piece for piece in pieces if isinstance(piece, int)]
        if control == [piece for piece in self._tokenizer.split_control(inert) if isinstance(piece, int)]:
            return pieces
        raise InvalidPrompt(
            "the chat template changes the contents of the messages, and they spell control tokens of the model:"
            " they cannot be kept apart"
        )

    def _join_regions(self, regions: Sequence[tuple[str, bool]]) -> list[TextPiece | int]:
        """Control tokens of the template's regions, and between them text with the messages' contents in place.

        Text of both origins between two control tokens is one piece, so it is tokenised as if it were rendered plainly.
        """
        pieces: list[TextPiece | int] = []
        text = ""
        for region, is_content in regions:
            if is_content:
                text += region
                continue
            for piece in self._tokenizer.split_control(region):
                if isinstance(piece, int):
                    pieces += [TextPiece(text), piece]
                    text = ""
                else:
                    text += piece.text
        pieces.append(TextPiece(text))
        return pieces


class _Marks:
    """What stands before and after a content; nobody can guess it, and no template has a reason to touch it."""

    @staticmethod
    def new() -> tuple[str, str]:
        secret = secrets.token_hex(16)
        return f"\ue000{secret}\ue001", f"\ue001{secret}\ue000"


_PREPARATIONS: tuple[Callable[[str], str], ...] = (str, str.strip, str.lstrip, str.rstrip)


def _split_regions(marked: str, opening: str, closing: str) -> list[tuple[str, bool]] | None:
    """(text, is it a content) in order, empty ones left out; None where marks do not alternate."""
    regions: list[tuple[str, bool]] = []
    is_content = False
    for part in re.split(f"({opening}|{closing})", marked):
        if part in (opening, closing):
            if is_content == (part == opening):
                return None
            is_content = not is_content
        elif part:
            regions.append((part, is_content))
    return None if is_content else regions


def _checked_messages(messages: Sequence[Message | Mapping[str, object]]) -> list[Message]:
    if isinstance(messages, str) or not isinstance(messages, Sequence):
        raise InvalidPrompt(f"messages are a list, not {type(messages).__name__}")
    if not messages:
        raise InvalidPrompt("messages: the list is empty")
    return [_checked_message(message, index) for index, message in enumerate(messages)]


def _checked_message(message: object, index: int) -> Message:
    place = f"messages[{index}]"
    if isinstance(message, Message):
        fields: Mapping[Any, object] = {"role": message.role, "content": message.content}
    elif isinstance(message, Mapping):
        fields = message
    else:
        raise InvalidPrompt(f"{place}: expected an object with role and content, got {type(message).__name__}")
    for name in fields:
        if name not in _FIELDS:
            raise InvalidPrompt(f"{place}.{str(name)[:40]}: unknown field; a message has role and content")
    values = []
    for name in _FIELDS:
        if name not in fields:
            raise InvalidPrompt(f"{place}.{name}: missing")
        value = fields[name]
        if not isinstance(value, str):
            raise InvalidPrompt(f"{place}.{name}: expected a string, got {type(value).__name__}")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidPrompt(f"{place}.{name}: no Unicode: lone surrogate at character {error.start}") from error
        values.append(value)
    role, content = values
    if role not in ROLES:
        raise InvalidPrompt(f"{place}.role: {role[:40]!r} is not one of {', '.join(ROLES)}")
    return Message(role, content)


def _environment() -> ImmutableSandboxedEnvironment:
    """The environment that Hugging Face templates are written for; a template can change nothing outside itself."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    return environment


def _raise_exception(message: str) -> str:
    raise jinja2.TemplateError(message)


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as it is written, without the escapes for HTML that Jinja's own filter adds."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
