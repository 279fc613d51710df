"""From the items of a responses request to the engine's conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from infernix.frontend.template_json import parse_json
from infernix.messages import Message
from infernix.server.api_error import invalid
from infernix.server.responses.item_fields import (
    AnswerMessage,
    FunctionCall,
    FunctionCallOutput,
    InputMessage,
    Item,
    Reasoning,
)
from infernix.server.responses.items import text_of
from infernix.server.responses.tools import engine_name
from infernix.tools import ToolCall


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """An item, and the field that its errors are about."""

    item: Item
    place: str


@dataclass(slots=True)
class _Turn:
    """An answer that is put together from items: reasoning, then content, then calls."""

    thoughts: list[str] = field(default_factory=list)
    content: str | None = None
    calls: list[ToolCall] = field(default_factory=list)

    def message(self) -> Message:
        return Message("assistant", self.content or "", "".join(self.thoughts), tuple(self.calls))


class _Conversation:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._turn: _Turn | None = None
        self._names: dict[str, str] = {}

    def add(self, item: Item, place: str) -> None:
        match item:
            case Reasoning():
                turn = self._turn_where(lambda turn: turn.content is None and not turn.calls)
                turn.thoughts += [part.text for part in item.content or item.summary or ()]
            case AnswerMessage():
                self._turn_where(lambda turn: turn.content is None and not turn.calls).content = text_of(item.content)
            case FunctionCall():
                self._turn_where(lambda turn: True).calls.append(_call(item, place))
                self._names[item.call_id] = engine_name(item.namespace, item.name)
            case FunctionCallOutput():
                self.end_turn()
                self.messages.append(self._result(item, place))
            case InputMessage():
                self.end_turn()
                role = "system" if item.role == "developer" else item.role
                self.messages.append(Message(role, text_of(item.content)))

    def end_turn(self) -> None:
        if self._turn is not None:
            self.messages.append(self._turn.message())
            self._turn = None

    def _turn_where(self, fits: Callable[[_Turn], bool]) -> _Turn:
        """The turn that is being put together, or a new one where it does not fit."""
        if self._turn is None or not fits(self._turn):
            self.end_turn()
            self._turn = _Turn()
        return self._turn

    def _result(self, item: FunctionCallOutput, place: str) -> Message:
        name = self._names.get(item.call_id)
        if name is None:
            raise invalid("no call with this id comes before its result", f"{place}.call_id", "invalid_value")
        if item.name is not None and engine_name(item.namespace, item.name) != name:
            raise invalid("the call with this id is of another function", f"{place}.name", "invalid_value")
        return Message("tool", text_of(item.output), name=name, tool_call_id=item.call_id)


def conversation(instructions: str | None, items: Iterable[PlacedItem]) -> tuple[list[Message], bool]:
    """The turns of the items in their order, and whether the last one is to be continued.

    Raises ApiError for a result without its call, a call whose arguments are no JSON object, and an end in what no
    answer can follow.
    """
    whole = _Conversation()
    if instructions is not None:
        whole.messages.append(Message("system", instructions))
    last: PlacedItem | None = None
    for last in items:
        whole.add(last.item, last.place)
    whole.end_turn()
    if last is None:
        raise invalid("there is nothing to answer", "input", "missing_required_parameter")
    if isinstance(last.item, FunctionCall):
        raise invalid("the last item is a call without its result", last.place, "invalid_value")
    if isinstance(last.item, Reasoning):
        raise invalid("the last item is reasoning, which cannot be continued", last.place, "invalid_value")
    return whole.messages, isinstance(last.item, AnswerMessage)


def _call(item: FunctionCall, place: str) -> ToolCall:
    try:
        arguments = parse_json(item.arguments)
    except (ValueError, RecursionError) as error:
        raise invalid(f"not usable JSON: {error}", f"{place}.arguments", "invalid_value") from error
    if not isinstance(arguments, dict):
        raise invalid("expected a JSON object", f"{place}.arguments", "invalid_value")
    return ToolCall(engine_name(item.namespace, item.name), item.arguments)
