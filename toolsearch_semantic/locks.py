"""Locks that a forked process can still take."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType

__all__ = ["ForkHeldLock", "ForkSafeLock"]


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


class ForkHeldLock:
    """A lock for ``with`` that is held while the process forks: a child never sees half of what it guards.

    Whoever holds one must not take another.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _held_at_fork.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()


_held_at_fork: weakref.WeakSet[ForkHeldLock] = weakref.WeakSet()
_holding: list[ForkHeldLock] = []


def _hold() -> None:
    for lock in list(_held_at_fork):
        lock.__enter__()
        _holding.append(lock)


def _let_go() -> None:
    while _holding:
        _holding.pop().__exit__(None, None, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)
