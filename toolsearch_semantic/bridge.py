"""Running a coroutine to its end from synchronous code, inside or outside a running event loop."""

from __future__ import annotations

import contextvars
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

__all__ = ["run_sync"]

Result = TypeVar("Result")


class _Loops(threading.local):
    """The event loop that this thread's synchronous calls share, made when it is first needed.

    One loop for all calls, since what a filter or a tool holds (a lock, a client's connections) is bound to the loop
    that it was first used on. It is never the thread's current one outside a call: the host may have its own.
    """

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._process = 0

    def runner(self) -> asyncio.Runner:
        import asyncio

        if self._runner is None or self._process != os.getpid():  # a forked process must not share the selector
            self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
            self._process = os.getpid()
            weakref.finalize(self, _close, self._runner)
        return self._runner


_loops = _Loops()


def _close(runner: asyncio.Runner) -> None:
    loop = runner.get_loop()
    if not loop.is_running() and not loop.is_closed():
        loop.close()


def run_sync(start: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine on this thread's own event loop for synchronous calls, and return what it returns.

    Where this thread runs a loop already, another thread gets one for this call, and this one is blocked until it
    ends: so what the coroutine awaits must not need this thread's loop.

    Args:
        start: Makes the coroutine; called on the loop that runs it.
    """
    import asyncio

    async def run() -> Result:
        return await start()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _loops.runner().run(run())
    results: list[Result] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def work() -> None:
        import asyncio

        try:
            results.append(context.run(asyncio.run, run()))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="toolsearch-sync")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
