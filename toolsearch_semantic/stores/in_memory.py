"""Loaded tools in this process's memory."""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from toolsearch_semantic.errors import InvalidOptionError
from toolsearch_semantic.locks import ForkHeldLock
from toolsearch_semantic.stores.base import StateStats

__all__ = ["InMemoryStore"]

_LONGEST_WAIT = 60.0
_SHORTEST_WAIT = 0.05


@dataclass(slots=True)
class _Thread:
    last_access: float
    loaded: dict[str, None] = field(default_factory=dict)  # in load order
    used: OrderedDict[str, None] = field(default_factory=OrderedDict)  # in order of last use


class InMemoryStore:
    """Keeps threads until they were idle for ``ttl`` seconds, or there are more than ``max_threads``.

    Idle threads are forgotten when they are read, and swept by a daemon thread, which starts with the first load,
    ends with the store, and never keeps the process alive. Gone with the process; not shared between processes.

    Args:
        ttl: Seconds without a use after which a thread is forgotten; exactly so many do not; 0 is never.
        max_threads: Beyond so many, the least recently used is forgotten; None is without bound.
        clock: Seconds that never go backwards.

    Raises:
        InvalidOptionError: The ttl is negative or no number, or the bound is not a positive integer.
    """

    blocking = False

    def __init__(
        self,
        *,
        ttl: float = 3600.0,
        max_threads: int | None = 100_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not math.isfinite(ttl) or ttl < 0:
            raise InvalidOptionError(f"ttl must be a number of seconds, 0 or more (0 is never), not {ttl!r}.")
        if max_threads is not None and (
            isinstance(max_threads, bool) or not isinstance(max_threads, int) or max_threads < 1
        ):
            raise InvalidOptionError(f"max_threads must be an integer of at least 1 or None, not {max_threads!r}.")
        self._ttl = float(ttl)
        self._max_threads = max_threads
        self._clock = clock
        self._threads: OrderedDict[str, _Thread] = OrderedDict()  # in order of last access
        self._lock = ForkHeldLock()
        self._sweeper: int | None = None  # the process that a sweeper runs in; a fork has none

    def loaded(self, thread_id: str, *, touch: bool = True) -> tuple[str, ...]:
        """Give the names that a thread has loaded, in load order."""
        with self._lock:
            thread = self._alive(thread_id, touch=touch)
            return () if thread is None else tuple(thread.loaded)

    def add(self, thread_id: str, names: Sequence[str]) -> tuple[str, ...]:
        """Load names, in order; give those that were not loaded before."""
        if not names:
            return ()
        with self._lock:
            thread = self._alive(thread_id, touch=True)
            if thread is None:
                thread = self._threads[thread_id] = _Thread(self._clock())
                if self._max_threads is not None and len(self._threads) > self._max_threads:
                    self._threads.popitem(last=False)
            new = tuple(name for name in dict.fromkeys(names) if name not in thread.loaded)
            thread.loaded.update(dict.fromkeys(new))
            _use(thread, names)
        self._start_sweeper()
        return new

    def remove(self, thread_id: str, names: Sequence[str]) -> None:
        """Unload names; a thread that has none left is forgotten."""
        with self._lock:
            thread = self._alive(thread_id, touch=False)
            if thread is not None:
                for name in names:
                    thread.loaded.pop(name, None)
                    thread.used.pop(name, None)
                if not thread.loaded:
                    del self._threads[thread_id]

    def mark_used(self, thread_id: str, names: Sequence[str]) -> None:
        """Note that loaded tools were called now."""
        with self._lock:
            thread = self._alive(thread_id, touch=True)
            if thread is not None:
                _use(thread, [name for name in names if name in thread.loaded])

    def by_last_use(self, thread_id: str) -> tuple[str, ...]:
        """Give the names that a thread has loaded, the one whose last use is longest ago first."""
        with self._lock:
            thread = self._alive(thread_id, touch=False)
            return () if thread is None else tuple(thread.used)

    def clear(self, thread_id: str) -> None:
        """Forget a thread."""
        with self._lock:
            self._threads.pop(thread_id, None)

    def clear_all(self) -> None:
        """Forget every thread."""
        with self._lock:
            self._threads.clear()

    def stats(self) -> StateStats:
        """Count the threads that are not idle for too long."""
        with self._lock:
            alive = [thread for thread in self._threads.values() if not self._is_idle(thread)]
            if not alive:
                return StateStats(0, None)
            return StateStats(len(alive), time.time() - (self._clock() - alive[0].last_access))

    def cleanup(self) -> int:
        """Forget the threads that were idle for too long; give their number."""
        with self._lock:
            idle: list[str] = []
            for thread_id, thread in self._threads.items():  # the longest idle first
                if not self._is_idle(thread):
                    break
                idle.append(thread_id)
            for thread_id in idle:
                del self._threads[thread_id]
            return len(idle)

    def _alive(self, thread_id: str, *, touch: bool) -> _Thread | None:
        thread = self._threads.get(thread_id)
        if thread is None:
            return None
        if self._is_idle(thread):
            del self._threads[thread_id]
            return None
        if touch:
            thread.last_access = self._clock()
            self._threads.move_to_end(thread_id)
        return thread

    def _is_idle(self, thread: _Thread) -> bool:
        return self._ttl > 0 and self._clock() - thread.last_access > self._ttl

    def _start_sweeper(self) -> None:
        if self._ttl > 0 and self._sweeper != os.getpid():
            self._sweeper = os.getpid()
            wait = min(max(self._ttl / 2, _SHORTEST_WAIT), _LONGEST_WAIT)
            stop = threading.Event()
            weakref.finalize(self, stop.set)
            threading.Thread(
                target=_sweep, args=(weakref.ref(self), wait, stop), name="toolsearch-sweeper", daemon=True
            ).start()


def _sweep(reference: weakref.ref[InMemoryStore], wait: float, stop: threading.Event) -> None:
    while not stop.wait(wait):
        store = reference()
        if store is None:
            return
        store.cleanup()
        del store  # or this thread would keep it alive while it waits


def _use(thread: _Thread, names: Sequence[str]) -> None:
    for name in names:
        thread.used[name] = None
        thread.used.move_to_end(name)
