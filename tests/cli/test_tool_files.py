"""Files with tools: both forms, texts kept as they stand, and places of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from infernix.cli.files import InputFileError
from infernix.cli.tool_files import read_tools
from infernix.tools import ToolDefinition


def read(path: Path, text: str) -> tuple[ToolDefinition, ...]:
    (path / "tools.json").write_text(text, encoding="utf-8")
    return read_tools(str(path / "tools.json"))


def test_both_forms(tmp_path: Path) -> None:
    tools = read(
        tmp_path,
        '[{"type": "function", "function": {"name": "f", "description": "Does f.", "strict": true}},'
        ' {"name": "天气", "parameters": {}, "type": "function"}, {"name": "g"}]',
    )
    assert tools == (
        ToolDefinition("f", "Does f.", strict=True),
        ToolDefinition("天气", parameters="{}"),
        ToolDefinition("g"),
    )
    assert read(tmp_path, " [ ] ") == ()


def test_parameters_are_kept_as_they_are_written(tmp_path: Path) -> None:
    parameters = '{ "b":{"maximum" : 1.50e1}, "a]\\"}": [\n1.0, "\\u00e9"],"parameters":{"parameters": 1}}'
    texts = [
        '[{"parameters":' + parameters + ',"name":"f"}]',
        '[ {"function" : { "description":"parameters", "name":"f",\n"parameters" : ' + parameters + " } } ]",
        '[{"name": "[{", "parameters": {}},\t{ "name":"f" , "p\\u0061rameters":' + parameters + "\n}]",
    ]
    for text in texts:
        assert read(tmp_path, text)[-1].parameters == parameters


def test_null_is_not_there(tmp_path: Path) -> None:
    tools = read(tmp_path, '[{"name": "f", "description": null, "parameters": null, "strict": null}]')
    assert tools == (ToolDefinition("f"),)


def test_many_tools(tmp_path: Path) -> None:
    entries = [f'{{"name": "f{index}", "parameters": {{"title": "{index}"}}}}' for index in range(400)]
    tools = read(tmp_path, f"[{','.join(entries)}]")
    assert [tool.parameters for tool in tools] == [f'{{"title": "{index}"}}' for index in range(400)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "tools.json: expected a list of tools, got an object"),
        ("[1]", r"tools.json: tools\[0\]: expected an object, got a number"),
        ('[{"name": "f"}, {"nam": "g"}]', r"tools\[1\].nam: unknown field; a tool has type, name, description"),
        ('[{"type": "web_search"}]', r"tools\[0\].type: only 'function' is known, not 'web_search'"),
        ('[{"type": null, "name": "f"}]', r"tools\[0\].type: only 'function' is known, not 'None'"),
        ('[{"function": {"name": "f"}, "strict": true}]', r"tools\[0\].strict: unknown field; a tool has type, func"),
        ('[{"function": []}]', r"tools\[0\].function: expected an object, got a list"),
        ('[{"function": {"nam": "g"}}]', r"tools\[0\].function.nam: unknown field; a tool has name, description"),
        ("[{}]", r"tools\[0\].name: missing"),
        ('[{"function": {"name": null}}]', r"tools\[0\].function.name: missing"),
        ('[{"name": 1}]', r"tools\[0\].name: expected a string, got a number"),
        ('[{"name": "f", "description": []}]', r"tools\[0\].description: expected a string, got a list"),
        ('[{"name": "f", "strict": "yes"}]', r"tools\[0\].strict: expected a boolean, got a string"),
        ('[{"name": "f", "strict": 1}]', r"tools\[0\].strict: expected a boolean, got a number"),
        ('[{"name": ""}]', r"tools\[0\]: a tool's name has 1..128 characters"),
        ('[{"name": "a<b"}]', r"tools\[0\]: the tool name 'a<b' holds"),
        ('[{"name": "f", "parameters": {"a": 1, "a": 2}}]', "the name 'a' comes twice in one object"),
        ('[{"name": "f", "parameters": {"maximum": NaN}}]', "tools.json is not usable JSON: it holds NaN"),
        ('[{"name": "f"}', r"tools.json is not JSON: .* at line 1, column 15"),
        ("[" * 100_000, "tools.json is nested too deeply"),
    ],
)
def test_mistakes_have_a_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputFileError, match=message):
        read(tmp_path, text)
