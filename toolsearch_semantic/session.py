"""One step of one request: searching, loading and calling, for the caller of this request alone."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from toolsearch_semantic.access import FilterPhase, StepAccess
from toolsearch_semantic.arguments import ArgumentsError, read_arguments
from toolsearch_semantic.formats.names import written_names
from toolsearch_semantic.hits import SearchHit
from toolsearch_semantic.meta_tools import (
    ErrorResult,
    MetaTools,
    load_result,
    nothing_found,
    quoted,
    search_result,
)
from toolsearch_semantic.near import near_names
from toolsearch_semantic.options import SearchOptions
from toolsearch_semantic.request_catalogue import RequestCatalogue
from toolsearch_semantic.stores.base import StateStore
from toolsearch_semantic.text import clean, split_identifier
from toolsearch_semantic.tool import Tool

__all__ = ["Session"]

logger = logging.getLogger("toolsearch_semantic.processor")

_SUGGESTIONS = 3
_NEAR = 30
_STORE_DOWN = "What is loaded could not be remembered, because the store failed. Try again later."

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(slots=True, kw_only=True)
class Session:
    """What a step acts on. Not shared between requests.

    Args:
        thread_id: The conversation.
        catalogue: What this request can search and load.
        direct: Tools that the host passes on as they are, by name.
        always: Tools of the catalogue that are shown without having been loaded, by name.
        store: What remembers the loaded names, for this request.
        access: The caller's filter, for this step.
        options: How searches are answered.
        meta_tools: Names and texts.
        max_loaded: How many tools a thread may have loaded; None is without bound.
        shown: The tools of this step, once they are known.
        loaded_now: Names that were loaded since the step began.
    """

    thread_id: str
    catalogue: RequestCatalogue
    direct: Mapping[str, Tool]
    always: Mapping[str, Tool]
    store: StateStore
    access: StepAccess
    options: SearchOptions
    meta_tools: MetaTools
    max_loaded: int | None
    recovered: bool
    shown: Mapping[str, Tool]
    loaded_now: set[str]

    async def _with_store(
        self, function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        """Call a method of the store, off the event loop where it may block."""
        import asyncio

        if self.store.blocking:
            return await asyncio.to_thread(function, *args, **kwargs)
        return function(*args, **kwargs)

    async def visible(self, *, touch: bool) -> dict[str, Tool]:
        """Give the catalogue's tools that this request may call now, always-loaded ones first, then in load order."""
        import asyncio

        try:
            names = await self._with_store(self.store.loaded, self.thread_id, touch=touch)
        except Exception as error:
            self._log(logging.ERROR, "store", "The store of loaded tools failed: %r", error)
            names = ()
        loaded = [tool for tool in map(self.catalogue.get, names) if tool is not None and tool.name not in self.always]
        phases: tuple[FilterPhase, ...] = ("load", "active") if self.recovered else ("active",)
        always_allowed, loaded_allowed = await asyncio.gather(
            self.access.allowed([*self.always.values()], "active"), self.access.allowed(loaded, *phases)
        )
        everything = [
            *zip(self.always.values(), always_allowed, strict=True),
            *zip(loaded, loaded_allowed, strict=True),
        ]
        return {tool.name: tool for tool, allowed in everything if allowed}

    async def find(self, queries: Sequence[str], *phases: FilterPhase, top_k: int) -> list[SearchHit]:
        """Find tools that pass the filter, best first: one that does not pass takes no place."""
        import asyncio

        depth = top_k
        while True:
            hits = await asyncio.to_thread(
                self.catalogue.search, queries, top_k=depth, min_score=self.options.min_score
            )
            allowed = await self.access.allowed([hit.tool for hit in hits], *phases)
            passing = [hit for hit, passes in zip(hits, allowed, strict=True) if passes]
            if len(passing) >= top_k or len(hits) < depth:
                return passing[:top_k]
            depth *= 4

    async def preselect(self, text: str) -> None:
        """Load what a new user message asks for."""
        hits = await self.find([text], "search", "load", top_k=self.options.preselect)
        names = [hit.tool.name for hit in hits if hit.tool.name not in self.always]
        if names:
            try:
                new = await self._with_store(self.store.add, self.thread_id, names)
                await self.make_room(keep=names)
            except Exception as error:
                self._log(logging.ERROR, "store", "The store of loaded tools failed: %r", error)
            else:
                self._log(logging.INFO, "preselect", "Preselected %s", list(new))

    async def search(self, query: str | Sequence[str]) -> dict[str, Any]:
        """Answer the meta-tool that searches."""
        queries = [query] if isinstance(query, str) else list(query)
        auto = self.options.auto_load
        phases: tuple[FilterPhase, ...] = ("search", "load") if auto else ("search",)
        hits = await self.find(queries, *phases, top_k=self.options.top_k)
        source = hits[0].source if hits else "none"
        self._log(logging.INFO, "search", "A search found %d tools (%s)", len(hits), source)
        logger.debug("The search was for %r; it found %r", queries, [hit.tool.name for hit in hits])
        if not hits:
            return nothing_found(queries)
        weak = self.catalogue.is_weak(hits[0])
        if not auto:
            return search_result(hits, weak=weak, load_name=self.meta_tools.load_name)
        names = [hit.tool.name for hit in hits]
        try:
            loaded, already, unloaded = await self._remember(names)
        except Exception as error:
            self._log(logging.ERROR, "store", "The store of loaded tools failed: %r", error)
            return ErrorResult(_STORE_DOWN)
        return search_result(hits, weak=weak, load_name=None, loaded=loaded, already=already, unloaded=unloaded)

    async def load(self, tool_name: str | None = None, tool_names: Sequence[str] = ()) -> dict[str, Any]:
        """Answer the meta-tool that loads."""
        asked = list(dict.fromkeys([*([] if tool_name is None else [tool_name]), *tool_names]))
        if not asked:
            return ErrorResult(
                f"No name was given. Give tool_name or tool_names, as {self.meta_tools.search_name} found them."
            )
        there = {name: tool for name in asked if (tool := self._named(name)) is not None}
        may_load = [tool for tool in dict.fromkeys(there.values()) if tool.name not in self.direct]
        allowed = dict(zip((t.name for t in may_load), await self.access.allowed(may_load, "load"), strict=True))
        granted = {name: tool for name, tool in there.items() if tool.name in self.direct or allowed[tool.name]}
        names = list(dict.fromkeys(tool.name for tool in granted.values()))
        try:
            loaded, already, unloaded = await self._remember([name for name in names if name not in self.direct])
        except Exception as error:
            self._log(logging.ERROR, "store", "The store of loaded tools failed: %r", error)
            return ErrorResult(_STORE_DOWN)
        missing = {name: await self._suggestions(name) for name in asked if name not in granted}
        for name in missing:
            self._log(logging.INFO, "denial", "A load of an unknown or denied tool was refused")
            logger.debug("The name was %r", name)
        there_already = [name for name in names if name in self.direct or name in already]
        return load_result(loaded=loaded, already=there_already, missing=missing, unloaded=unloaded)

    async def call(self, name: str, arguments: object = None) -> Any:
        """Run a tool of this step; what goes wrong is a result that tells the model."""
        tool = self.shown.get(name) or next(
            (tool for tool in self.shown.values() if isinstance(name, str) and name in written_names(tool.name)), None
        )
        if tool is None:
            return await self._not_callable(name)
        try:
            given = read_arguments(tool, arguments)
        except ArgumentsError as error:
            return ErrorResult(str(error))
        if tool.execute is None:
            return ErrorResult(f"The tool {tool.name} cannot be run here: it is run by whoever provides it.")
        try:
            if tool.name not in self.direct and tool.name not in self.meta_tools.names:
                await self._with_store(self.store.mark_used, self.thread_id, [tool.name])
        except Exception as error:
            self._log(logging.ERROR, "store", "The store of loaded tools failed: %r", error)
        return await self._run(tool, given)

    async def make_room(self, *, keep: Iterable[str]) -> list[str]:
        """Unload what was not used for longest, while there are more tools than a thread may have."""
        if self.max_loaded is None:
            return []
        oldest_first = await self._with_store(self.store.by_last_use, self.thread_id)
        excess = len(oldest_first) - self.max_loaded
        if excess <= 0:
            return []
        kept = set(keep)
        # New ones go only where they alone are too many.
        order = [*(n for n in oldest_first if n not in kept), *(n for n in oldest_first if n in kept)]
        await self._with_store(self.store.remove, self.thread_id, order[:excess])
        self._log(logging.INFO, "unload", "Unloaded %s to make room", order[:excess])
        return order[:excess]

    async def _remember(self, names: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
        """Load names: those that are loaded now, those that were before, and those that had to make room."""
        new = await self._with_store(self.store.add, self.thread_id, [n for n in names if n not in self.always])
        unloaded = await self.make_room(keep=names)
        loaded = [name for name in new if name not in unloaded]
        self.loaded_now.update(loaded)
        if loaded:
            self._log(logging.INFO, "load", "Loaded %s", loaded)
        return loaded, [name for name in names if name not in new], unloaded

    def _named(self, name: str) -> Tool | None:
        return self.direct.get(name) or self.catalogue.get(name)

    async def _suggestions(self, name: str) -> list[str]:
        """Suggest up to three names that the caller may load, near in spelling, then in meaning."""
        import asyncio

        asked = self._named(name)
        # Left out first: a denied tool must not even take the place of another.
        others = [other for other in self.catalogue.names() if asked is None or other != asked.name]
        spelt = near_names(name, others, limit=_NEAR)
        words = " ".join(split_identifier(clean(name)))
        hits = await asyncio.to_thread(self.catalogue.search, [words], top_k=_NEAR, min_score=0.0)
        meant = [
            hit.tool.name
            for hit in hits
            if not self.catalogue.is_weak(hit) and (asked is None or hit.tool.name != asked.name)
        ]
        tools = [tool for tool in map(self.catalogue.get, dict.fromkeys([*spelt, *meant])) if tool is not None]
        allowed = await self.access.allowed(tools, "search", "load")
        return [tool.name for tool, passes in zip(tools, allowed, strict=True) if passes][:_SUGGESTIONS]

    async def _not_callable(self, name: object) -> ErrorResult:
        search_name, load_name = self.meta_tools.names
        tool = self._named(name) if isinstance(name, str) else None
        if tool is not None and tool.name in self.loaded_now:
            return ErrorResult(f"The tool {tool.name} was loaded in this step. Call it in your next step.")
        if tool is not None and (await self.access.allowed([tool], "load", "active"))[0]:
            how = (
                f"Search for it with {search_name}, which loads what it finds"
                if self.options.auto_load
                else f"Load it with {load_name}"
            )
            return ErrorResult(f"The tool {tool.name} is not loaded. {how}, then call it in your next step.")
        return ErrorResult(f"There is no tool named {quoted(str(name))}. Search for one with {search_name}.")

    async def _run(self, tool: Tool, arguments: Mapping[str, Any]) -> Any:
        import asyncio

        execute = tool.execute
        assert execute is not None
        try:
            if inspect.iscoroutinefunction(execute) or inspect.iscoroutinefunction(type(execute).__call__):
                return await execute(**arguments)
            result = await asyncio.to_thread(_called, execute, arguments)
            return await result if inspect.isawaitable(result) else result
        except Exception as error:
            self._log(logging.WARNING, "tool error", "The tool %r failed: %s", tool.name, type(error).__name__)
            logger.debug("It failed with", exc_info=error)
            return ErrorResult(f"The tool {tool.name} failed: {type(error).__name__}: {clean(str(error))[:1000]}")

    def _log(self, level: int, event: str, message: str, *values: object) -> None:
        logger.log(level, message, *values, extra={"event": event, "thread_id": self.thread_id})


def _called(execute: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    try:
        return execute(**arguments)
    except StopIteration as error:  # a future cannot hold it, and whoever waits would wait for ever
        raise RuntimeError(f"StopIteration: {error}") from error
