"""Rendering a message list the short way."""

from __future__ import annotations

from typing import Any

from infernix.frontend.messages import checked_messages
from infernix.frontend.template import ChatTemplate
from infernix.frontend.template_values import Conversation


def rendered(template: ChatTemplate, messages: Any, **fields: Any) -> list[int]:
    """Token ids of the conversation; `fields` are the Conversation's own."""
    return template.render(Conversation(tuple(checked_messages(messages)), **fields))
