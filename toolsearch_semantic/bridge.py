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


class _OwnLoop:
    """One thread's event loop for synchronous calls; closed when the thread ends.

    One loop for all calls, since what a filter or a tool holds (a lock, a client's connections) is bound to the loop
    that it was first used on. It is never the thread's current one outside a call: the host may have its own. What a
    tool leaves running stands still between calls and goes on with the next.
    """

    def __init__(self) -> None:
        import asyncio

        self.process = os.getpid()
        self.runner = asyncio.Runner(loop_factory=_new_loop)
        self.runner.get_loop()
        weakref.finalize(self, _close, self.runner.get_loop())


class _Loops(threading.local):
    own: _OwnLoop | None = None


_loops = _Loops()


def _new_loop() -> asyncio.AbstractEventLoop:
    """Make a loop whose selector has nothing in the kernel: an epoll would be shared with forked processes.

    One that a child closes, or only collects as garbage, would take the parent's file descriptors out of it.
    """
    import asyncio
    import selectors

    if hasattr(selectors, "PollSelector"):
        return asyncio.SelectorEventLoop(selectors.PollSelector())
    return asyncio.new_event_loop()


def _close(loop: asyncio.AbstractEventLoop) -> None:
    if not loop.is_running() and not loop.is_closed():
        loop.close()


def _runner() -> asyncio.Runner:
    if _loops.own is None or _loops.own.process != os.getpid():  # a forked process makes its own
        _loops.own = _OwnLoop()
    return _loops.own.runner


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
        # A runner's own context would be the first caller's, and with it the user that a filter asks for.
        return _runner().run(run(), context=contextvars.copy_context())
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
