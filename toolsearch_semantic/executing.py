"""Running what a tool runs, sync or async, off the event loop where it would block it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["described", "execute"]


async def execute(executor: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Run an executor and return what it returns, awaited where it has to be; a plain function runs in a thread.

    Raises:
        Exception: What the executor raised. What would end more than the call comes as a `RuntimeError`: a
            `StopIteration`, as from a coroutine; a `SystemExit`; a cancellation of something that it waited for,
            while nobody cancelled the call itself.
    """
    import asyncio

    try:
        if inspect.iscoroutinefunction(executor) or inspect.iscoroutinefunction(type(executor).__call__):
            return await executor(**arguments)
        result = await asyncio.to_thread(_called, executor, arguments)
        return await result if inspect.isawaitable(result) else result
    except (asyncio.CancelledError, BaseExceptionGroup, SystemExit) as error:
        task = asyncio.current_task()
        if isinstance(error, Exception) or (
            not isinstance(error, SystemExit) and task is not None and task.cancelling()
        ):
            raise
        raise RuntimeError(described(error)) from error


def described(error: BaseException) -> str:
    """Name an exception's class, and say what it says; the class alone where it cannot say it."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _called(executor: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    try:
        return executor(**arguments)
    except (StopIteration, SystemExit) as error:
        # A future cannot hold the first, and whoever waits would wait for ever; the second would end the thread.
        raise RuntimeError(described(error)) from error
