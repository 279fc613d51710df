from __future__ import annotations

import json
from random import Random

import pytest

from infernix.server.chat.custom_input import CustomInput

TEXTS = ["", "plain", 'a "quoted"\n\t\\ text', "在\U0001f600é", "\u2028\x00\x1f", "}{", "\\u0041", "x" * 300]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_pieces_join_to_the_input(text: str, escaped: bool, seed: int) -> None:
    rng = Random(seed)
    arguments = json.dumps({"input": text}, ensure_ascii=escaped, indent=rng.choice([None, 2]))
    reader = CustomInput()
    found = ""
    begin = 0
    while begin < len(arguments):
        end = begin + rng.randrange(1, 4)
        found += reader.feed(arguments[begin:end])
        assert text.startswith(found)
        begin = end
    assert found == text
