"""The program around its commands: what it loads before it can answer, and an interrupt while it loads the rest."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from infernix.cli import exit_codes
from infernix.cli.main import main


def test_an_interrupt_while_modules_load_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "infernix.cli.parser", Interrupted("infernix.cli.parser"))
    assert main(["check", "--regex", "a"]) == exit_codes.INTERRUPTED
    assert capsys.readouterr() == ("", "infernix: interrupted\n")


def test_little_is_loaded_before_an_interrupt_is_answered() -> None:
    code = "import sys; import infernix.cli.main; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "infernix.cli.main" in loaded
    assert {"argparse", "numpy", "numba", "torch", "infernix.cli.parser"}.isdisjoint(loaded)


def test_python_m_infernix_is_the_program() -> None:
    answer = subprocess.run([sys.executable, "-m", "infernix", "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("infernix ")
