"""A lock that a forked process can still take."""

from __future__ import annotations

import os
import threading
from types import TracebackType

__all__ = ["ForkSafeLock"]


class ForkSafeLock:
    """A lock for ``with``; in a process that was forked while another thread held it, it is free again.

    What it guards must be replaced as a whole, so that a fork never sees half a change.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __enter__(self) -> None:
        if self._process != os.getpid():  # the thread that held it does not exist here
            self._lock, self._process = threading.Lock(), os.getpid()
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()
