"""What a caller may give as a prompt, and the tokens it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from infernix.errors import InvalidPrompt
from infernix.frontend.template import ChatTemplate, Message
from infernix.frontend.tokenizer import Tokenizer
from infernix.options import shown_value

Messages: TypeAlias = Sequence[Message | Mapping[str, object]]
Prompt: TypeAlias = str | Sequence[int] | Messages


def encode_prompt(prompt: Prompt, tokenizer: Tokenizer, template: ChatTemplate) -> list[int]:
    """The tokens of a prompt, at least one.

    A text is continued as it stands, without a template; the spelling of a control token in it is that token, and what
    the model expects before any text (a beginning-of-sequence token) comes first. Messages go through the model's chat
    template, where no content can spell a control token. Token ids are taken as they are. Raises InvalidPrompt.
    """
    if isinstance(prompt, str):
        tokens = tokenizer.encode_prompt(prompt)
    elif not isinstance(prompt, Sequence) or isinstance(prompt, bytes | bytearray):
        raise InvalidPrompt(f"a prompt is a text, messages or token ids, not {type(prompt).__name__}")
    elif any(isinstance(item, int) for item in prompt):
        tokens = [_checked_token(item, tokenizer.num_tokens) for item in prompt]
    elif prompt:
        tokens = template.render(cast(Messages, prompt))
    else:
        tokens = []
    if not tokens:
        raise InvalidPrompt("the prompt is empty: there is nothing to continue")
    return tokens


def _checked_token(item: object, num_tokens: int) -> int:
    if isinstance(item, bool) or not isinstance(item, int):
        raise InvalidPrompt(f"a list of token ids holds a {type(item).__name__}")
    if not 0 <= item < num_tokens:
        raise InvalidPrompt(f"token id {shown_value(item)} is outside 0..{num_tokens - 1}")
    return item
