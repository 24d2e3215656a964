"""Who may find, load and call which tool: the caller's filter, asked once for each tool and phase of a step."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal

from toolsearch_semantic.executing import described
from toolsearch_semantic.tool import Tool

__all__ = ["AccessFilter", "FilterArgs", "FilterPhase", "ReportedOnce", "StepAccess"]

logger = logging.getLogger(__name__)

FilterPhase = Literal["search", "load", "active"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterArgs:
    """What a filter decides on.

    Args:
        tool_name: The name that the tool is called by, never the key that it was given under.
        tool: The tool, this request's own instance.
        request_context: What the host passed with the request.
        phase: ``"search"``: may it be found; ``"load"``: may it be loaded or suggested; ``"active"``: may it, having
            been loaded, be shown and called in this step.
    """

    tool_name: str
    tool: Tool
    request_context: Mapping[str, Any]
    phase: FilterPhase


AccessFilter = Callable[[FilterArgs], bool | Awaitable[bool]]


class ReportedOnce:
    """Remembers which failures were logged, so that each is logged once; bounded."""

    def __init__(self, bound: int = 10_000) -> None:
        self._seen: set[tuple[str, FilterPhase]] = set()
        self._bound = bound
        self._lock = threading.Lock()

    def is_new(self, name: str, phase: FilterPhase) -> bool:
        """Tell whether this was not asked before, and remember it."""
        with self._lock:
            if (name, phase) in self._seen or len(self._seen) >= self._bound:
                return False
            self._seen.add((name, phase))
            return True


class StepAccess:
    """The filter for one step of one request; fails closed.

    Whatever is not the answer True is a denial: an exception, a rejection, another type, a time-out. Filters that
    return awaitables run concurrently, at most ``concurrency`` at once, each at most ``timeout`` seconds; a plain
    function runs on the event loop, so it should be quick. A question whose asker was cancelled is asked again by
    whoever wants the answer next.
    """

    def __init__(
        self,
        access: AccessFilter | None,
        request_context: Mapping[str, Any],
        *,
        timeout: float | None,
        concurrency: int,
        reported: ReportedOnce,
        thread_id: str = "",
    ) -> None:
        self._thread_id = thread_id
        self._access = access
        self._request_context = request_context
        self._timeout = timeout
        self._concurrency = concurrency
        self._reported = reported
        # Futures of no event loop: two threads may run one step, each with its own loop.
        self._answers: dict[tuple[str, FilterPhase], Future[bool | None]] = {}
        self._lock = threading.Lock()

    async def allowed(self, tools: Sequence[Tool], *phases: FilterPhase) -> list[bool]:
        """Decide on tools, in order: whether each passes all phases; a phase after a denial is not asked."""
        import asyncio

        if self._access is None:
            return [True] * len(tools)
        bound = asyncio.Semaphore(self._concurrency)

        async def passes(tool: Tool) -> bool:
            async with bound:
                for phase in phases:
                    if not await self._answer(tool, phase):
                        return False
                return True

        return list(await asyncio.gather(*(passes(tool) for tool in tools)))

    async def _answer(self, tool: Tool, phase: FilterPhase) -> bool:
        import asyncio

        key = (tool.name, phase)
        while True:
            with self._lock:
                future = self._answers.get(key)
                if future is None:
                    own = self._answers[key] = Future()
                    own.set_running_or_notify_cancel()  # so that who waits for it cannot cancel it for the others
            if future is None:
                break
            answer = await asyncio.wrap_future(future)
            if answer is not None:
                return answer
        answer = None
        try:
            answer = await self._ask(tool, phase)
        finally:
            if answer is None:  # cancelled: whoever waits for the same answer asks for itself
                with self._lock:
                    del self._answers[key]
            own.set_result(answer)
        return answer

    async def _ask(self, tool: Tool, phase: FilterPhase) -> bool:
        import asyncio

        assert self._access is not None
        arguments = FilterArgs(tool_name=tool.name, tool=tool, request_context=self._request_context, phase=phase)
        limit = asyncio.timeout(None)
        try:
            given: object = self._access(arguments)
            if inspect.isawaitable(given):
                limit = asyncio.timeout(self._timeout)
                async with limit:
                    given = await given
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._report(tool, phase, f"raised {error!r}")  # something that it waited for was cancelled, not the step
            return False
        except Exception as error:
            self._report(tool, phase, _late(self._timeout) if limit.expired() else f"raised {described(error)}")
            return False
        if limit.expired():  # it would not be stopped, and answered in the end
            self._report(tool, phase, _late(self._timeout))
            return False
        if not isinstance(given, bool):
            self._report(tool, phase, f"returned {type(given).__name__}, not a bool")
            return False
        return given

    def _report(self, tool: Tool, phase: FilterPhase, what: str) -> None:
        if self._reported.is_new(tool.name, phase):
            logger.warning(
                "The filter %s for tool %r in phase %r: denied.", what, tool.name, phase,
                extra={"event": "denial", "thread_id": self._thread_id, "tool": tool.name, "phase": phase},
            )  # fmt: skip


def _late(timeout: float | None) -> str:
    return f"took longer than {timeout} s"
