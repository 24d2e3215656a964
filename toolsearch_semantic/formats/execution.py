"""Calling what an outside tool runs, in the one way that `Tool.execute` promises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MethodType
from typing import Any

__all__ = ["AsyncExecute", "SyncExecute"]


class SyncExecute:
    """Runs a tool with keyword arguments, at once.

    Two are equal when they run the very same object, so that a tool read twice is still one tool.

    Args:
        target: The outside object that is run in the end; decides equality.
        run: Takes all arguments as one mapping and runs the target.
    """

    __slots__ = ("_run", "target")

    def __init__(self, target: object, run: Callable[[Mapping[str, Any]], Any]) -> None:
        self.target = target
        self._run = run

    # Positional-only, because a tool may well have an argument called "self".
    def __call__(self, /, **arguments: Any) -> Any:
        """Run the tool and return what it returns."""
        return self._run(arguments)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, SyncExecute):
            return NotImplemented
        mine, theirs = self.target, other.target
        # Each look-up of a method makes a new object; its equality compares the owners by identity.
        return mine is theirs or (isinstance(mine, MethodType) and isinstance(theirs, MethodType) and mine == theirs)

    def __hash__(self) -> int:
        return hash((type(self), id(getattr(self.target, "__func__", self.target))))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {getattr(self.target, '__qualname__', type(self.target).__name__)}>"


class AsyncExecute(SyncExecute):
    """Runs a tool with keyword arguments; the call must be awaited."""

    __slots__ = ()

    _run: Callable[[Mapping[str, Any]], Awaitable[Any]]

    async def __call__(self, /, **arguments: Any) -> Any:
        """Run the tool and return what it returns, awaited."""
        return await self._run(arguments)
