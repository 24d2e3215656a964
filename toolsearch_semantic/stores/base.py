"""What a store of loaded tools is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

__all__ = ["StateStats", "StateStore"]


@dataclass(frozen=True, slots=True)
class StateStats:
    """How much a store holds: threads with loaded tools, and the oldest time of use in seconds since the epoch."""

    thread_count: int
    oldest_access_time: float | None


@runtime_checkable
class StateStore(Protocol):
    """Names of loaded tools, by thread. Thread-safe; every store passes ``tests/stores/contract.py``.

    A store holds names and never tools, so that no caller can get another's. Any string is a thread id.
    """

    @property
    def blocking(self) -> bool:
        """Whether a call may wait for a disk or a network, so that it must not run on an event loop."""
        ...

    def loaded(self, thread_id: str, *, touch: bool = True) -> tuple[str, ...]:
        """Give the names that a thread has loaded, in load order; counts as a use unless ``touch`` is False."""
        ...

    def add(self, thread_id: str, names: Sequence[str]) -> tuple[str, ...]:
        """Load names, in order, at once for all; give those that were not loaded before."""
        ...

    def remove(self, thread_id: str, names: Sequence[str]) -> None:
        """Unload names; those that are not loaded are passed over."""
        ...

    def mark_used(self, thread_id: str, names: Sequence[str]) -> None:
        """Note that loaded tools were called now; others are passed over. Adding is a use, too."""
        ...

    def by_last_use(self, thread_id: str) -> tuple[str, ...]:
        """Give the names that a thread has loaded, the one whose last use is longest ago first."""
        ...

    def clear(self, thread_id: str) -> None:
        """Forget a thread; an unknown one is passed over."""
        ...

    def clear_all(self) -> None:
        """Forget every thread."""
        ...

    def stats(self) -> StateStats:
        """Count what is held; not a use."""
        ...

    def cleanup(self) -> int:
        """Forget the threads that were idle for too long; give their number."""
        ...
