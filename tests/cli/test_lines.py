"""Lines from a real terminal, and Ctrl-C in the place of one."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

NUM_INTERRUPTS = 10
SCRIPT = """
import fcntl, functools, os, readline, signal, sys, termios
from infernix.cli.lines import LineReader

fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C on this terminal is for this process
reader = LineReader()
if "at once" in sys.argv:
    # Behind the question and before the wait for a key. Unlike other functions that send signals, this one goes back
    # to its caller, which is no Python code, without a look whether one has come.
    readline.set_pre_input_hook(functools.partial(os.killpg, os.getpgrp(), signal.SIGINT))
while True:
    try:
        line = reader.read("line> ")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        readline.set_pre_input_hook()
    else:
        print(f"got {line!r}", file=sys.stderr)
        break
"""


class Terminal:
    """A terminal's other end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unread = b""

    def type(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def read_until(self, mark: bytes) -> bytes:
        """What is shown, up to the mark; waits for it."""
        while mark not in self._unread:
            assert select.select([self._descriptor], [], [], 60)[0], f"waits for {mark!r} behind {self._unread!r}"
            self._unread += os.read(self._descriptor, 4096)
        shown, _, self._unread = self._unread.partition(mark)
        return shown


@contextmanager
def on_terminal(*arguments: str, shows_output: bool = True) -> Iterator[Terminal]:
    """The script on a terminal of its own, where its standard output goes or does not."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        stdin=theirs,
        stdout=theirs if shows_output else subprocess.DEVNULL,
        stderr=theirs,
        start_new_session=True,
    ) as running:
        os.close(theirs)
        try:
            yield Terminal(ours)
        finally:
            running.kill()
            os.close(ours)


@pytest.mark.parametrize("shows_output", [True, False])
def test_an_interrupt_ends_the_wait_for_a_line(shows_output: bool) -> None:
    with on_terminal(shows_output=shows_output) as terminal:
        for _ in range(NUM_INTERRUPTS):
            terminal.read_until(b"line> ")
            terminal.type(b"\x03")
            terminal.read_until(b"interrupted")
        terminal.read_until(b"line> ")
        terminal.type(b"yes\n")
        terminal.read_until(b"got 'yes'")


def test_an_interrupt_between_the_question_and_the_wait_is_seen_without_another_key() -> None:
    with on_terminal("at once") as terminal:
        terminal.read_until(b"interrupted")
        terminal.read_until(b"line> ")
        terminal.type(b"yes\n")
        terminal.read_until(b"got 'yes'")
