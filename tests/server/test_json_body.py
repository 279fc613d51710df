from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from infernix.server.api_error import ApiError
from infernix.server.json_body import MAX_DEPTH, MAX_VALUES, RawJson, read_json_object

PATHS = (("format", "schema"), ("tools", "*", "parameters"))


def error_of(data: bytes) -> str:
    with pytest.raises(ApiError) as found:
        read_json_object(data, PATHS)
    assert (found.value.code, found.value.kind.value.status) == ("invalid_json", 400)
    return found.value.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff{}", "not UTF-8"),
        (b"", "not JSON"),
        (b'{"a": 1,}', "line 1, column 9"),
        (b"[]", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (b'{"a": {"b": 1, "b": 2}}', "'b' comes twice"),
        (b"{" + b"".join(b'"n%d":1,' % number for number in range(90_000)) + b'"n89999":1}', "'n89999' comes twice"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": [-Infinity]}', "-Infinity is not JSON"),
        (b'{"a": ["\\ud83d"]}', "surrogate"),
        (b'{"\\udc00": 1}', "surrogate"),
        (b'{"a": ' + b"1" * 5000 + b"}", "not usable JSON"),
        (b'{"a": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}", "nested deeper"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 100_000, "nested deeper"),
    ],
)
def test_what_is_refused(data: bytes, message: str) -> None:
    assert message in error_of(data)


def test_the_deepest_that_is_taken() -> None:
    data = b'{"a": ' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}"
    value = read_json_object(data)["a"]
    for _ in range(MAX_DEPTH - 2):
        (value,) = value
    assert value == []


ODD_TEXT = json.dumps('[[,{"\\' * 3)


@pytest.mark.parametrize(
    ("entry", "num_values"),
    # An opening bracket counts with what comes behind it, also where nothing does.
    [("0", 1), (ODD_TEXT, 1), ("[]", 2), ('{"a": [1, {}]}', 5), ("[\n[1, 2],\n3]", 5)],
)
def test_the_number_of_values_is_bounded(entry: str, num_values: int) -> None:
    """Whatever they are, and whatever stands in texts."""
    num_entries, num_left = divmod(MAX_VALUES - 2, num_values)
    entries = [entry] * num_entries + ["0"] * num_left
    fits = f'{{"a": [{", ".join(entries)}], "b": {ODD_TEXT}'
    assert len(read_json_object(f"{fits}}}".encode())["a"]) == len(entries)
    assert f"more than {MAX_VALUES} values" in error_of(f'{fits}, "c": 0}}'.encode())


def test_the_place_of_a_value_too_many_is_told() -> None:
    entries = "0,\n" * MAX_VALUES
    assert error_of(f'{{"a": [{entries}0]}}'.encode()).endswith(f"twice: line {MAX_VALUES - 1}, column 2")


def test_brackets_in_texts_are_not_depth() -> None:
    text = "[{" * 1000 + '"' + "\\" + "[" * 1000
    assert read_json_object(json.dumps({"a": text}).encode()) == {"a": text}


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert read_json_object(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


def test_raw_values_keep_their_text() -> None:
    schema = '{ "b" : 1.50, "a":[1e2 ,  -0.0], "\\u0061c": "}{\\"]" }'
    text = f'{{"x": [1, 2], "format" : {{"schema" :{schema} , "y": 1}}, "tools":[{{"parameters": true}}, 3, {{}}]}}'
    document = read_json_object(text.encode(), PATHS)
    assert document["format"] == {"schema": RawJson(schema), "y": 1}
    assert document["tools"] == [{"parameters": RawJson("true")}, 3, {}]
    assert document["x"] == [1, 2]


@pytest.mark.parametrize("seed", range(30))
def test_raw_values_of_random_documents(seed: int) -> None:
    """The raw texts parse to what an ordinary parser finds in their places."""
    rng = Random(seed)

    def value(depth: int) -> Any:
        kind = rng.randrange(6 if depth else 3)
        if kind == 0:
            return rng.choice(["", 'a"b', "\\", "{[", "在", None, True, -1.5, 10**20])
        if kind <= 2:
            return rng.randrange(100)
        if kind == 3:
            return [value(depth - 1) for _ in range(rng.randrange(4))]
        names = rng.sample(["format", "schema", "tools", "parameters", "x", 'q"'], rng.randrange(5))
        return {name: value(depth - 1) for name in names}

    document = {
        "tools": [value(4) for _ in range(3)],
        "format": value(4),
        "z": {"format": {"schema": 1}},
    }
    text = json.dumps(document, indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5)
    found = read_json_object(text.encode(), PATHS)
    num_raw = 0

    def plain(item: Any) -> Any:
        nonlocal num_raw
        if isinstance(item, RawJson):
            num_raw += 1
            return json.loads(item.text)
        if isinstance(item, dict):
            return {name: plain(member) for name, member in item.items()}
        return [plain(member) for member in item] if isinstance(item, list) else item

    assert plain(found) == document
    expected = sum(isinstance(tool, dict) and "parameters" in tool for tool in document["tools"])
    expected += isinstance(document["format"], dict) and "schema" in document["format"]
    assert num_raw == expected
