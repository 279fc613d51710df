"""What a response is made from, earlier responses included, and what of it is kept for the next one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from infernix.server.api_error import invalid
from infernix.server.responses.body import PromptBody
from infernix.server.responses.conversation import PlacedItem
from infernix.server.responses.item_fields import AnswerMessage, InputMessage, Item, ItemReference
from infernix.server.responses.items import input_id, listed_item, output_text, packed, text_of, unpacked
from infernix.server.responses.store import ResponseStore, StoredResponse
from infernix.server.sse import json_bytes


@dataclass(frozen=True, slots=True)
class History:
    """What a response is made from.

    earlier   the items of the response that it follows
    new       the items of the request, each also as it is kept
    """

    earlier: tuple[bytes, ...]
    new: tuple[tuple[Item, bytes], ...]

    def placed(self) -> Iterator[PlacedItem]:
        """All items in their order."""
        for data in self.earlier:
            yield PlacedItem(unpacked(data), "previous_response_id")
        for index, (item, _) in enumerate(self.new):
            yield PlacedItem(item, f"input[{index}]")

    def stored(self, response: dict[str, Any], *, continues: bool) -> StoredResponse:
        """The response with what it was made from. `continues`: its message is the rest of the last item's text."""
        inputs = (*self.earlier, *(data for _, data in self.new))
        output = response["output"]
        if not continues or not output or output[0]["type"] != "message":
            return StoredResponse(json_bytes(response), inputs, (*inputs, *map(packed, output)))
        begun = unpacked(inputs[-1])
        assert isinstance(begun, AnswerMessage)
        whole = text_of(begun.content) + output[0]["content"][0]["text"]
        message = output[0] | {"content": [output_text(whole)]}
        return StoredResponse(json_bytes(response), inputs, (*inputs[:-1], *map(packed, [message, *output[1:]])))


def read_history(store: ResponseStore, body: PromptBody, key: str, max_bytes: int) -> History:
    """The items of a request; `key` becomes part of the ids that they get.

    Raises ApiError for a response, or an item of one, that is not kept, and where what was kept is longer than
    `max_bytes` together.
    """
    earlier: tuple[bytes, ...] = ()
    if body.previous_response_id is not None:
        previous = store.get(body.previous_response_id)
        if previous is None:
            raise invalid(
                f"no response {body.previous_response_id!r} is kept",
                "previous_response_id",
                "previous_response_not_found",
            )
        earlier = previous.context
        _check_size(sum(map(len, earlier)), max_bytes, "previous_response_id")
    items = _items(body, _KeptItems(store, max_bytes))
    return History(earlier, tuple(_with_packed(item, key, index) for index, item in enumerate(items)))


def _items(body: PromptBody, kept: _KeptItems) -> Iterator[Item]:
    if isinstance(body.input, str):
        yield InputMessage(role="user", content=body.input)
        return
    for index, item in enumerate(body.input or ()):
        yield kept.take(item.id, f"input[{index}].id") if isinstance(item, ItemReference) else item


def _with_packed(item: Item, key: str, index: int) -> tuple[Item, bytes]:
    return item, packed(listed_item(item, input_id(item, key, index)))


class _KeptItems:
    """The items of kept responses by their ids, each to be taken once by one request."""

    def __init__(self, store: ResponseStore, max_bytes: int) -> None:
        self._store = store
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._of_response: dict[str, dict[str, bytes]] = {}
        self._taken: set[str] = set()

    def take(self, item_id: str, place: str) -> Item:
        """Raises ApiError where there is no such item, or it was taken before."""
        data = self._find(item_id)
        if data is None:
            raise invalid(f"no item {item_id[:80]!r} is kept", place, "item_not_found")
        if item_id in self._taken:
            raise invalid("an item can be referred to once", place, "invalid_value")
        self._taken.add(item_id)
        self._num_bytes += len(data)
        _check_size(self._num_bytes, self._max_bytes, place)
        return unpacked(data)

    def _find(self, item_id: str) -> bytes | None:
        """Ids that are given here hold the key of their response."""
        parts = item_id.split("_")
        if len(parts) != 3:
            return None
        response_id = f"resp_{parts[1]}"
        if response_id not in self._of_response:
            stored = self._store.get(response_id)
            known = () if stored is None else (*stored.inputs, *stored.context)
            self._of_response[response_id] = {json.loads(data)["id"]: data for data in known}
        return self._of_response[response_id].get(item_id)


def _check_size(num_bytes: int, max_bytes: int, place: str) -> None:
    if num_bytes > max_bytes:
        raise invalid(f"what was kept is longer than {max_bytes} bytes", place, "context_length_exceeded")
