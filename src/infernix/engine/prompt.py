"""What a caller may give as a prompt, and the tokens it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from infernix.errors import InvalidPrompt

if TYPE_CHECKING:
    from infernix.models import LoadedModel

Prompt: TypeAlias = str | Sequence[int] | Sequence[Mapping[str, str]]


def encode_prompt(loaded: LoadedModel, num_tokens: int, prompt: Prompt) -> list[int]:
    """The tokens of a prompt, at least one, each below `num_tokens`.

    A text is continued as it stands: no template, and the spelling of a special token is that token. Messages go
    through the model's chat template. Token ids are taken as they are. Raises InvalidPrompt.
    """
    if isinstance(prompt, str):
        tokens = loaded.tokenizer.encode(prompt, allow_special=True)
    elif not isinstance(prompt, Sequence) or isinstance(prompt, bytes | bytearray):
        raise InvalidPrompt(f"a prompt is a text, messages or token ids, not {type(prompt).__name__}")
    elif prompt and all(isinstance(item, Mapping) for item in prompt):
        tokens = loaded.template.render(prompt)
    else:
        tokens = [_checked_token(item, num_tokens) for item in prompt]
    if not tokens:
        raise InvalidPrompt("the prompt is empty: there is nothing to continue")
    return tokens


def _checked_token(item: object, num_tokens: int) -> int:
    if isinstance(item, bool) or not isinstance(item, int):
        raise InvalidPrompt(f"a list of token ids or of messages holds a {type(item).__name__}")
    if not 0 <= item < num_tokens:
        raise InvalidPrompt(f"token id {item} is outside 0..{num_tokens - 1}")
    return item
