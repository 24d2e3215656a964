"""Running a coroutine to its end from synchronous code, inside or outside a running event loop."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["run_sync"]

Result = TypeVar("Result")


def run_sync(start: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine on an event loop of its own, and return what it returns.

    Where this thread runs a loop already, the other loop gets a thread, and this one is blocked until it ends: so
    what the coroutine awaits must not need this thread's loop.

    Args:
        start: Makes the coroutine; called on the loop that runs it.
    """
    import asyncio

    async def run() -> Result:
        return await start()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run())
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
