"""What a caller may give as a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TypeAlias, cast

from infernix.errors import InvalidPrompt
from infernix.frontend.prompt import PreparedPrompt, prepare_chat, prepare_text, prepare_tokens
from infernix.messages import ChatPrompt, Message
from infernix.models import LoadedModel

Messages: TypeAlias = Sequence[Message | Mapping[str, object]]
Prompt: TypeAlias = str | Sequence[int] | Messages | ChatPrompt


def prepare_prompt(prompt: Prompt, loaded: LoadedModel) -> PreparedPrompt:
    """A prompt as tokens, at least one.

    A text is continued as it stands, without a template; the spelling of a control token in it is that token, and what
    the model expects before any text (a beginning-of-sequence token) comes first. Messages, alone or in a ChatPrompt,
    go through the model's chat template, where no content can spell a control token. Token ids are taken as they are.
    Raises InvalidPrompt.
    """
    tokenizer = loaded.tokenizer
    if isinstance(prompt, str):
        return prepare_text(prompt, tokenizer)
    if isinstance(prompt, ChatPrompt):
        return prepare_chat(prompt, tokenizer, loaded.template, loaded.framing)
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes | bytearray):
        raise InvalidPrompt(f"a prompt is a text, messages or token ids, not {type(prompt).__name__}")
    if not prompt or any(isinstance(item, Integral) for item in prompt):
        return prepare_tokens(cast(Sequence[int], prompt), tokenizer)
    return prepare_chat(ChatPrompt(cast(Messages, prompt)), tokenizer, loaded.template, loaded.framing)
