"""The thread that runs an engine's cycles."""

from __future__ import annotations

import threading

from infernix.engine.core import EngineCore
from infernix.errors import EngineClosed

_PAUSE_SECONDS = 0.001


class Worker:
    """Cycles a core from the first request on. It is a daemon: a program that forgets its engine can end."""

    def __init__(self, core: EngineCore) -> None:
        self._lock = threading.Lock()
        # None after `stop`: whoever keeps the worker does not keep the core's memory.
        self._core: EngineCore | None = core
        self._thread: threading.Thread | None = None

    def ensure_running(self) -> None:
        """Starts the thread, once.

        Raises EngineClosed in a fork of the process that runs it, and RuntimeError where the system has no thread to
        give.
        """
        thread, core = self._thread, self._core
        if thread is not None:
            if core is not None and not core.is_stopped and not thread.is_alive():
                raise EngineClosed("the engine runs in another process, of which this is a fork: load one here")
            return
        with self._lock:
            if self._thread is None and self._core is not None:
                thread = threading.Thread(target=_run, args=(self._core,), name="infernix-worker", daemon=True)
                thread.start()
                self._thread = thread

    def stop(self) -> None:
        """Has every request answered and waits until the thread has ended, unless it is this one that calls."""
        with self._lock:
            core, self._core = self._core, None
            thread = self._thread
        if core is not None:
            core.stop()
        if thread is None:
            if core is not None:
                core.cycle()
        elif thread is not threading.current_thread():
            thread.join()


def _run(core: EngineCore) -> None:
    while not core.is_stopped:
        if not core.cycle() and not core.is_stopped:
            # With nothing to run and somebody waiting, memory or a deadline will come: look again soon.
            core.wait(None if core.is_idle else _PAUSE_SECONDS)
