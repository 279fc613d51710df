"""Items in the one form in which they are kept and listed, and the way back from it."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from infernix.server.responses.item_fields import (
    AnswerMessage,
    FunctionCall,
    FunctionCallOutput,
    InputMessage,
    InputText,
    Item,
    ItemField,
    OutputText,
    Reasoning,
    RefusalPart,
)
from infernix.server.sse import json_bytes

_ITEM: TypeAdapter[Any] = TypeAdapter(ItemField)
_PREFIXES = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}


def listed_item(item: Item, item_id: str | None = None) -> dict[str, Any]:
    """An item as it is listed. Its own id comes before `item_id`."""
    value = {"id": item.id or item_id, **_own_members(item)}
    return value | {"status": item.status or "completed"}


def input_id(item: Item, key: str, index: int) -> str:
    """The id of the input item at `index` of the request `key`, for one that has none."""
    return f"{_PREFIXES[item.type or 'message']}_{key}_in{index}"


def packed(value: dict[str, Any]) -> bytes:
    """A listed item, or an item of an answer, as it is kept."""
    return json_bytes(value)


def unpacked(data: bytes) -> Item:
    """The item that was packed."""
    item: Item = _ITEM.validate_python(json.loads(data))
    return item


def text_of(parts: str | list[InputText] | list[InputText | OutputText | RefusalPart]) -> str:
    """The text of a content; parts follow each other without anything between them."""
    if isinstance(parts, str):
        return parts
    return "".join(part.refusal if isinstance(part, RefusalPart) else part.text for part in parts)


def output_text(text: str) -> dict[str, Any]:
    """The part that a text of the model is."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def reasoning_text(text: str) -> dict[str, Any]:
    """The part that a thought is."""
    return {"type": "reasoning_text", "text": text}


def _own_members(item: Item) -> dict[str, Any]:
    match item:
        case InputMessage():
            content = [{"type": "input_text", "text": text} for text in _texts(item.content)]
            return {"type": "message", "role": item.role, "content": content}
        case AnswerMessage():
            parts = [_answer_part(part) for part in _answer_parts(item)]
            return {"type": "message", "role": "assistant", "content": parts}
        case FunctionCall():
            namespace = {} if item.namespace is None else {"namespace": item.namespace}
            members = {"type": item.type, "call_id": item.call_id, "name": item.name, "arguments": item.arguments}
            return members | namespace
        case FunctionCallOutput():
            return {"type": item.type, "call_id": item.call_id, "output": text_of(item.output)}
        case Reasoning():
            return {
                "type": item.type,
                "summary": [{"type": part.type, "text": part.text} for part in item.summary or ()],
                "content": [{"type": part.type, "text": part.text} for part in item.content or ()],
            }


def _texts(content: str | list[InputText]) -> list[str]:
    return [content] if isinstance(content, str) else [part.text for part in content]


def _answer_parts(item: AnswerMessage) -> list[InputText | OutputText | RefusalPart]:
    if isinstance(item.content, str):
        return [OutputText(type="output_text", text=item.content)]
    return item.content


def _answer_part(part: InputText | OutputText | RefusalPart) -> dict[str, Any]:
    return {"type": "refusal", "refusal": part.refusal} if isinstance(part, RefusalPart) else output_text(part.text)
