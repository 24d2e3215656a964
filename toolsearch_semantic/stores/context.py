"""Loaded tools read from the conversation itself."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
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
    so that a message that is trimmed away unloads its tools. Names that were shown in one order stay in it.
    """

    blocking = False

    def __init__(self, found: Sequence[str], by_last_use: Sequence[str], state: MutableMapping[str, Any]) -> None:
        own = state.get(_STATE_KEY)
        own = own if isinstance(own, dict) else {}
        there = set(found)
        self._pending: list[str] = [name for name in own.get("pending", ()) if name not in there]
        held = dict.fromkeys([*found, *self._pending])
        shown = [name for name in own.get("order", ()) if name in held]
        self._order: list[str] = list(dict.fromkeys([*shown, *held]))
        self._used: list[str] = list(dict.fromkeys(reversed([*by_last_use, *self._pending])))[::-1]
        self._removed: set[str] = set(own.get("removed", ())) & there
        self._state = state
        self._write()

    def loaded(self, thread_id: str, *, touch: bool = True) -> tuple[str, ...]:
        """Give what this request has loaded, in load order."""
        return tuple(name for name in self._order if name not in self._removed)

    def add(self, thread_id: str, names: Sequence[str]) -> tuple[str, ...]:
        """Load names until the conversation says so itself; give those that were not loaded before."""
        there = self.loaded(thread_id)
        new = tuple(name for name in dict.fromkeys(names) if name not in there)
        self._removed -= set(new)
        self._pending.extend(name for name in new if name not in self._pending)
        # A name that was unloaded and is loaded again goes to the end.
        self._order = [*(name for name in self._order if name not in new), *new]
        self.mark_used(thread_id, names)
        self._write()
        return new

    def remove(self, thread_id: str, names: Sequence[str]) -> None:
        """Unload names for this request."""
        self._pending = [name for name in self._pending if name not in names]
        self._removed |= set(names)
        self._write()

    def mark_used(self, thread_id: str, names: Sequence[str]) -> None:
        """Note that tools were called now."""
        held = [name for name in names if name in self._order]
        self._used = [*(name for name in self._used if name not in held), *dict.fromkeys(held)]

    def by_last_use(self, thread_id: str) -> tuple[str, ...]:
        """Give what is loaded, the name whose last use is longest ago first."""
        return tuple(name for name in self._used if name not in self._removed)

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

    def _write(self) -> None:
        self._state[_STATE_KEY] = {
            "pending": list(self._pending),
            "order": list(self._order),
            "removed": sorted(self._removed),
        }
