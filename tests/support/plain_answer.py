"""A plain second reading of a whole answer's tokens, to compare the reader with."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infernix.frontend.framing import Framing, ToolStyle
from support.chat_output import CHAT, EOS, SECOND_EOS

# No UTF-8 text holds these bytes.
_OPEN, _CLOSE = b"\xfe", b"\xfd"


@dataclass(frozen=True)
class PlainAnswer:
    """`calls` are names and arguments, or None for a call that is not complete."""

    reasoning: bytes
    content: bytes
    calls: list[tuple[str, dict[str, Any]] | None]


def plain_answer(
    tokens: Sequence[int], framing: Framing, types: Mapping[str, Mapping[str, str]] | None, *, thinks: bool
) -> PlainAnswer:
    """`types` are the argument types of each tool that may be called, None: no calls are read."""
    tokens = [token for token in tokens if token not in (EOS, SECOND_EOS)]
    reasoning = b""
    if thinks:
        end = tokens.index(framing.think_close) if framing.think_close in tokens else len(tokens)
        reasoning = _joined(tokens[:end])
        reasoning = reasoning.removesuffix(b"\n")
        if end == len(tokens):
            return PlainAnswer(reasoning, b"", [])
        tokens = tokens[end + 1 :]
    if types is None:
        body = _joined(tokens)
        parts = [_without_separator(body) if thinks else body]
    else:
        marks = {framing.tool_open: _OPEN, framing.tool_close: _CLOSE}
        body = b"".join(marks.get(token, CHAT.token_bytes[token]) for token in tokens)
        body = _without_separator(body) if thinks else body
        if framing.tool_open is None:
            body = body.replace(b"<tool_call>", _OPEN).replace(b"</tool_call>", _CLOSE)
        parts = body.split(_OPEN)
    read = _xml_call if framing.tool_style is ToolStyle.XML else _json_call
    calls = [read(part, types or {}) if _CLOSE in part else None for part in parts[1:]]
    return PlainAnswer(reasoning, parts[0], calls)


def _joined(tokens: Sequence[int]) -> bytes:
    return b"".join(CHAT.token_bytes[token] for token in tokens)


def _without_separator(body: bytes) -> bytes:
    assert body.startswith(b"\n\n") or b"\n\n".startswith(body)
    return body[2:]


def _xml_call(part: bytes, types: Mapping[str, Mapping[str, str]]) -> tuple[str, dict[str, Any]]:
    found = re.fullmatch(rb"\n<function=([^>]*)>\n(.*)</function>\n\xfd\n?", part, re.DOTALL)
    assert found is not None, part
    name = found[1].decode()
    arguments: dict[str, Any] = {}
    rest = found[2]
    while rest:
        parameter = re.match(rb"<parameter=([^>]+)>\n(.*?)\n</parameter>\n", rest, re.DOTALL)
        assert parameter is not None, rest
        key = parameter[1].decode()
        assert key not in arguments, "an argument comes twice"
        arguments[key] = _value(parameter[2].decode(), types[name].get(key))
        rest = rest[parameter.end() :]
    return name, arguments


def _value(text: str, declared: str | None) -> Any:
    if declared == "string":
        return text
    try:
        return json.loads(text.strip(" \t\r\n"), parse_constant=_refuse)
    except ValueError:
        assert declared is None
        return text


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _json_call(part: bytes, types: Mapping[str, Mapping[str, str]]) -> tuple[str, dict[str, Any]]:
    found = re.fullmatch(rb'\n\{"name": (".*?"), "arguments": (.*)\}\n\xfd\n?', part, re.DOTALL)
    assert found is not None, part

    # The outermost object's names are the arguments; only they are kept apart.
    names = [name for name, _ in json.loads(found[2], object_pairs_hook=list)]
    assert len(set(names)) == len(names), "an argument comes twice"
    return json.loads(found[1]), json.loads(found[2])
