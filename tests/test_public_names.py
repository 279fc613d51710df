from __future__ import annotations

import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import infernix
from infernix import errors, messages, options, results, tools


def test_the_list_is_sorted_and_every_name_exists() -> None:
    assert infernix.__all__ == sorted(infernix.__all__)
    assert len(set(infernix.__all__)) == len(infernix.__all__)
    for name in infernix.__all__:
        assert getattr(infernix, name).__name__ == name


@pytest.mark.parametrize("module", [errors, options, results, messages, tools])
def test_every_public_class_of_the_nouns_is_in_the_list(module: ModuleType) -> None:
    public = {
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert public <= set(infernix.__all__)


def test_every_public_name_is_documented() -> None:
    for name in infernix.__all__:
        assert inspect.getdoc(getattr(infernix, name)), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Motor'"):
        _ = infernix.Motor
    assert set(infernix.__all__) <= set(dir(infernix))


def test_importing_the_package_loads_neither_pytorch_nor_numba() -> None:
    code = "import sys, infernix; assert not {'torch', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
