"""Loaded tools read from the conversation itself."""

from __future__ import annotations

import threading
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from toolsearch_semantic.stores.base import StateStats

__all__ = ["ContextStore", "ConversationView"]

_STATE_KEY = "toolsearch_semantic"


class ContextStore:
    """Remembers nothing: what is loaded is what the conversation says was loaded.

    The processor reads the conversation of each request and binds what it finds (`bind`); so loaded tools survive
    a restart with the messages, are unloaded with the messages that loaded them, and cannot leak. By itself this
    store is empty, and clearing it does nothing.
    """

    blocking = False

    def bind(
        self, found: Sequence[str], by_last_use: Sequence[str], state: MutableMapping[str, Any] | None
    ) -> ConversationView:
        """Give the store of one request.

        Args:
            found: Names that the conversation loaded, in order of first appearance.
            by_last_use: The same names, the one whose last use is longest ago first.
            state: What the host keeps for this request from step to step; None where it keeps nothing.
        """
        return ConversationView(found, by_last_use, {} if state is None else state)

    def loaded(self, thread_id: str, *, touch: bool = True) -> tuple[str, ...]:
        """Give nothing: only a conversation tells."""
        return ()

    def add(self, thread_id: str, names: Sequence[str]) -> tuple[str, ...]:
        """Keep nothing, so nothing is new."""
        return ()

    def remove(self, thread_id: str, names: Sequence[str]) -> None:
        """Do nothing."""

    def mark_used(self, thread_id: str, names: Sequence[str]) -> None:
        """Do nothing."""

    def by_last_use(self, thread_id: str) -> tuple[str, ...]:
        """Give nothing."""
        return ()

    def clear(self, thread_id: str) -> None:
        """Do nothing."""

    def clear_all(self) -> None:
        """Do nothing."""

    def stats(self) -> StateStats:
        """Count nothing."""
        return StateStats(0, None)

    def cleanup(self) -> int:
        """Forget nothing."""
        return 0


class ConversationView:
    """The store of one request: what its conversation loaded, and what its own steps loaded since.

    The latter waits in the host's state until the conversation has it; from then on the conversation alone decides,
    so that a message that is trimmed away unloads its tools. Names that a step has shown in one order stay in it;
    those that no step has shown yet stand in the order of the conversation, as they would after a restart. The state
    holds plain lists of strings.
    """

    blocking = False

    def __init__(self, found: Sequence[str], by_last_use: Sequence[str], state: MutableMapping[str, Any]) -> None:
        there = dict.fromkeys(found)
        pending = [name for name in _kept(state, "pending") if name not in there]
        held = dict.fromkeys([*there, *pending])
        shown = [name for name in _kept(state, "order") if name in held]
        self._lock = threading.Lock()
        self._removed = {name for name in _kept(state, "removed") if name in there}
        self._shown = [name for name in dict.fromkeys([*shown, *held]) if name not in self._removed]
        self._pending = [*dict.fromkeys(pending)]
        self._used = [*dict.fromkeys(reversed([*by_last_use, *pending]))][::-1]
        self._state = state
        self._write()

    def loaded(self, thread_id: str, *, touch: bool = True) -> tuple[str, ...]:
        """Give what this request has loaded, in load order."""
        with self._lock:
            return self._loaded()

    def add(self, thread_id: str, names: Sequence[str]) -> tuple[str, ...]:
        """Load names until the conversation says so itself; give those that were not loaded before."""
        with self._lock:
            there = self._loaded()
            new = tuple(name for name in dict.fromkeys(names) if name not in there)
            self._removed.difference_update(new)
            self._pending.extend(new)
            self._use(names)
            self._write()
            return new

    def remove(self, thread_id: str, names: Sequence[str]) -> None:
        """Unload names for this request."""
        with self._lock:
            self._pending = [name for name in self._pending if name not in names]
            self._shown = [name for name in self._shown if name not in names]  # loaded again, it goes to the end
            self._used = [name for name in self._used if name not in names]
            self._removed.update(names)
            self._write()

    def mark_used(self, thread_id: str, names: Sequence[str]) -> None:
        """Note that tools were called now."""
        with self._lock:
            self._use(names)

    def by_last_use(self, thread_id: str) -> tuple[str, ...]:
        """Give what is loaded, the name whose last use is longest ago first."""
        with self._lock:
            there = self._loaded()
            return tuple(name for name in self._used if name in there)

    def clear(self, thread_id: str) -> None:
        """Do nothing: the conversation stays what it is."""

    def clear_all(self) -> None:
        """Do nothing."""

    def stats(self) -> StateStats:
        """Count nothing."""
        return StateStats(0, None)

    def cleanup(self) -> int:
        """Forget nothing."""
        return 0

    def _loaded(self) -> tuple[str, ...]:
        return tuple(n for n in dict.fromkeys([*self._shown, *self._pending]) if n not in self._removed)

    def _use(self, names: Sequence[str]) -> None:
        there = self._loaded()
        used = dict.fromkeys(name for name in names if name in there)
        self._used = [*(name for name in self._used if name not in used), *used]

    def _write(self) -> None:
        self._state[_STATE_KEY] = {
            "pending": list(self._pending),
            "order": list(self._shown),
            "removed": sorted(self._removed),
        }


def _kept(state: MutableMapping[str, Any], field: str) -> list[str]:
    own = state.get(_STATE_KEY)
    names = own.get(field) if isinstance(own, Mapping) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []
