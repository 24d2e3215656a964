"""One step of one request: searching, loading and calling, for the caller of this request alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from toolsearch_semantic.access import FilterPhase, StepAccess
from toolsearch_semantic.arguments import ArgumentsError, read_arguments
from toolsearch_semantic.executing import described, execute
from toolsearch_semantic.formats.names import written_names
from toolsearch_semantic.hits import SearchHit
from toolsearch_semantic.meta_tools import (
    ErrorResult,
    MetaTools,
    load_result,
    nothing_found,
    printable,
    quoted,
    search_result,
    shown_name,
)
from toolsearch_semantic.near import near_names
from toolsearch_semantic.options import SearchOptions
from toolsearch_semantic.request_catalogue import RequestCatalogue, written_alike
from toolsearch_semantic.stores.base import StateStore
from toolsearch_semantic.stores.context import ContextStore
from toolsearch_semantic.text import split_identifier
from toolsearch_semantic.tool import Tool

__all__ = ["Session"]

logger = logging.getLogger("toolsearch_semantic.processor")

_SUGGESTIONS = 3
_NEAR = 30
_MOST_SUGGESTED_FOR = 20
_LONGEST_NAME = 200
_STORE_DOWN = "What is loaded could not be remembered, because the store failed. Try again later."

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Loads:
    """What became of names.

    Args:
        loaded: Loaded now.
        already: Loaded before.
        available: Shown without being loaded, so that no store has to remember them.
        unloaded: Gone to make room.
        left: There was no room for them.
        alike: Would be written like a tool that is there: name → that tool's.
    """

    loaded: list[str]
    already: list[str]
    available: list[str]
    unloaded: list[str]
    left: list[str]
    alike: dict[str, str]


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
        recovered: Whether what is loaded comes out of a conversation, and so has to be allowed again.
        shown: The tools of this step, once they are known.
        loaded_now: Names that were asked for since the step began, and are loaded.
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
    shown: Mapping[str, Tool] = field(default_factory=dict)
    loaded_now: set[str] = field(default_factory=set)

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
            names = [str(name) for name in await self._with_store(self.store.loaded, self.thread_id, touch=touch)]
        except Exception as error:
            self._store_failed(error)
            names = []
        reserved = {*self.always, *self.meta_tools.names}
        loaded = [tool for tool in map(self.catalogue.get, names) if tool is not None and tool.name not in reserved]
        phases: tuple[FilterPhase, ...] = ("load", "active") if self.recovered else ("active",)
        always_allowed, loaded_allowed = await asyncio.gather(
            self.access.allowed([*self.always.values()], "active"), self.access.allowed(loaded, *phases)
        )
        everything = [
            *zip(self.always.values(), always_allowed, strict=True),
            *zip(loaded, loaded_allowed, strict=True),
        ]
        shown = {tool.name: tool for tool, allowed in everything if allowed}
        for name, other in written_alike(shown, (*self.meta_tools.names, *self.direct)).items():
            self._log(logging.INFO, "name", "The tool %r is hidden: it would be written like %r", name, other)
            del shown[name]
        return shown

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

    async def preselected(self, texts: Sequence[str]) -> list[list[str]]:
        """Find what each of several user messages asks for: names that pass the filter, best first."""
        import asyncio

        wanted = self._fitting(self.options.preselect)
        found: dict[str, list[str]] = {}
        open_texts, depth = list(dict.fromkeys(texts)), wanted
        while open_texts:
            try:
                rankings = await asyncio.to_thread(
                    self.catalogue.ranked, open_texts, top_k=depth, min_score=self.options.min_score
                )
            except Exception as error:
                self._log(logging.ERROR, "preselect", "Nothing was preselected, because the search failed: %r", error)
                break
            unfinished = []
            for text, ranking in zip(open_texts, rankings, strict=True):
                allowed = await self.access.allowed(ranking, "search", "load")
                names = [tool.name for tool, passes in zip(ranking, allowed, strict=True) if passes]
                found[text] = [name for name in names[:wanted] if not self._is_given(name)]
                if len(names) < wanted and len(ranking) == depth:
                    unfinished.append(text)
            open_texts, depth = unfinished, depth * 4
        return [found.get(text, []) for text in texts]

    async def preselect(self, text: str) -> None:
        """Load what a new user message asks for."""
        [names] = await self.preselected([text])
        if names:
            try:
                new = await self._with_store(self.store.add, self.thread_id, names)
                await self.make_room()
            except Exception as error:
                self._store_failed(error)
            else:
                self._log(logging.INFO, "preselect", "Preselected %s", list(new))

    async def detach(self) -> None:
        """Go on with a copy of what the store has for this thread, so that nothing is changed in the store."""
        try:
            names = await self._with_store(self.store.loaded, self.thread_id, touch=False)
            used = await self._with_store(self.store.by_last_use, self.thread_id)
        except Exception as error:
            self._store_failed(error)
            names = used = ()
        self.store = ContextStore().bind(names, used, None)

    def own_name(self, name: str) -> str:
        """Give a tool's own name for one that the model was shown; another name stays what it is."""
        tool = self.catalogue.find(name)
        return name if tool is None else tool.name

    async def search(self, query: str | Sequence[str]) -> dict[str, Any]:
        """Answer the meta-tool that searches."""
        queries = [query] if isinstance(query, str) else list(query)
        auto = self.options.auto_load
        phases: tuple[FilterPhase, ...] = ("search", "load") if auto else ("search",)
        top_k = self._fitting(self.options.top_k) if auto else self.options.top_k
        hits = await self.find(queries, *phases, top_k=top_k)
        source = hits[0].source if hits else "none"
        self._log(logging.INFO, "search", "A search found %d tools (%s)", len(hits), source)
        logger.debug("The search was for %r; it found %r", queries, [hit.tool.name for hit in hits])
        if not hits:
            return nothing_found(queries)
        weak = self.catalogue.is_weak(hits[0])
        if not auto:
            return search_result(hits, weak=weak, load_name=self.meta_tools.load_name)
        try:
            done = await self._remember([hit.tool.name for hit in hits])
        except Exception as error:
            self._store_failed(error)
            return ErrorResult(_STORE_DOWN)
        hits = [hit for hit in hits if hit.tool.name not in done.alike]
        if not hits:
            return nothing_found(queries)
        return search_result(
            hits,
            weak=weak,
            load_name=None,
            loaded=done.loaded,
            already=done.already,
            available=done.available,
            unloaded=done.unloaded,
        )

    async def load(self, tool_name: str | None = None, tool_names: Sequence[str] | None = None) -> dict[str, Any]:
        """Answer the meta-tool that loads."""
        several = [tool_names] if isinstance(tool_names, str) else tool_names or ()
        asked = list(dict.fromkeys([*([] if tool_name is None else [tool_name]), *several]))
        if not asked:
            return ErrorResult(
                f"No name was given. Give tool_name or tool_names, as {self.meta_tools.search_name} found them."
            )
        there = {name: tool for name in asked if (tool := self._named(name)) is not None}
        may_load = [t for t in {tool.name: tool for tool in there.values()}.values() if t.name not in self.direct]
        allowed = dict(zip((t.name for t in may_load), await self.access.allowed(may_load, "load"), strict=True))
        granted = {name: tool for name, tool in there.items() if allowed.get(tool.name, tool.name in self.direct)}
        try:
            done = await self._remember(list(dict.fromkeys(tool.name for tool in granted.values())))
        except Exception as error:
            self._store_failed(error)
            return ErrorResult(_STORE_DOWN)
        missing: dict[str, list[str]] = {}
        refused = [name for name in asked if name not in granted]
        for name in refused[:_MOST_SUGGESTED_FOR]:
            missing[name[:_LONGEST_NAME]] = await self._suggestions(name)
            self._log(logging.INFO, "denial", "A load of an unknown or denied tool was refused")
            logger.debug("The name was %r", name)
        return load_result(
            loaded=done.loaded,
            already=done.already,
            available=done.available,
            missing=missing,
            more_missing=len(refused[_MOST_SUGGESTED_FOR:]),
            unloaded=done.unloaded,
            not_loaded=done.left,
            alike=done.alike,
        )

    async def call(self, name: object, arguments: object = None) -> Any:
        """Run a tool of this step; what goes wrong is a result that tells the model."""
        if not isinstance(name, str):
            return ErrorResult(f"A tool's name must be a string, not {type(name).__name__}.")
        tool = self.shown.get(name)
        if tool is None and self.catalogue.get(name) is None:  # a name of its own never stands for another tool
            tool = next((one for one in self.shown.values() if name in written_names(one.name)), None)
        if tool is None:
            return await self._not_callable(name)
        is_meta = tool.name in self.meta_tools.names
        try:
            given = read_arguments(tool, arguments, null_is_absent=is_meta)
        except ArgumentsError as error:
            return ErrorResult(str(error))
        if tool.execute is None:
            return ErrorResult(
                f"The tool {shown_name(tool.name)} cannot be run here: it is run by whoever provides it."
            )
        try:
            if not is_meta and tool.name not in self.direct:
                await self._with_store(self.store.mark_used, self.thread_id, [tool.name])
        except Exception as error:
            self._store_failed(error)
        try:
            return await execute(tool.execute, given)
        except Exception as error:
            self._log(logging.WARNING, "tool error", "The tool %r failed: %s", tool.name, type(error).__name__)
            logger.debug("It failed with", exc_info=error)
            return ErrorResult(f"The tool {shown_name(tool.name)} failed: {printable(described(error)[:1000])}")

    async def make_room(self) -> list[str]:
        """Unload what was not used for longest, while there are more tools than a thread may have."""
        if self.max_loaded is None:
            return []
        oldest_first = await self._with_store(self.store.by_last_use, self.thread_id)
        excess = len(oldest_first) - self.max_loaded
        if excess <= 0:
            return []
        unloaded = [*oldest_first[:excess]]
        await self._with_store(self.store.remove, self.thread_id, unloaded)
        self._log(logging.INFO, "unload", "Unloaded %s to make room", unloaded)
        return unloaded

    async def _remember(self, names: Sequence[str]) -> _Loads:
        """Load names, the first ones where not all fit."""
        available = [name for name in names if self._is_given(name)]
        alike = written_alike(names, dict.fromkeys([*self.shown, *self.loaded_now]))
        wanted = [name for name in names if name not in available and name not in alike]
        fitting = wanted[: self._fitting(len(wanted))]
        new = await self._with_store(self.store.add, self.thread_id, fitting) if fitting else ()
        unloaded = await self.make_room()
        over = wanted[len(fitting) :]
        kept = await self._with_store(self.store.loaded, self.thread_id) if over else ()
        left = [name for name in over if name not in kept and name not in unloaded]
        loaded = [name for name in new if name not in unloaded]
        elsewhere = {*new, *left, *unloaded, *alike, *available}
        already = [name for name in names if name not in elsewhere]
        # What this caller does not see is not named either.
        unloaded = [name for name in unloaded if name in self.shown or name in self.loaded_now]
        self.loaded_now.difference_update(unloaded)
        self.loaded_now.update(loaded, already)
        if loaded:
            self._log(logging.INFO, "load", "Loaded %s", loaded)
        return _Loads(loaded, already, available, unloaded, left, alike)

    def _fitting(self, count: int) -> int:
        return count if self.max_loaded is None else min(count, self.max_loaded)

    def _named(self, name: str) -> Tool | None:
        return self.direct.get(name) or self.catalogue.find(name)

    def _is_given(self, name: str) -> bool:
        return name in self.direct or (name in self.always and (name in self.shown or not self.shown))

    async def _suggestions(self, name: str) -> list[str]:
        """Suggest up to three names that the caller may load, near in spelling, then in meaning."""
        import asyncio

        asked = self._named(name)
        near = await asyncio.to_thread(self._near, name[:_LONGEST_NAME], None if asked is None else asked.name)
        tools = [tool for tool in map(self.catalogue.get, near) if tool is not None]
        allowed = await self.access.allowed(tools, "search", "load")
        return [tool.name for tool, passes in zip(tools, allowed, strict=True) if passes][:_SUGGESTIONS]

    def _near(self, name: str, denied: str | None) -> list[str]:
        # The denied one is left out before anything is cut: it must not even take the place of another.
        spelt = near_names(name, (other for other in self.catalogue.names() if other != denied), limit=_NEAR)
        words = " ".join(split_identifier(printable(name)))
        try:
            hits = self.catalogue.search([words], top_k=_NEAR + 1, min_score=0.0)
        except Exception as error:
            self._log(logging.ERROR, "search", "The search for suggestions failed: %r", error)
            hits = []
        hits = [hit for hit in hits if hit.tool.name != denied][:_NEAR]
        return [*dict.fromkeys([*spelt, *(hit.tool.name for hit in hits if not self.catalogue.is_weak(hit))])]

    async def _not_callable(self, name: str) -> ErrorResult:
        search_name, load_name = self.meta_tools.names
        tool = self._named(name)
        if tool is not None and tool.name in self.shown:
            return ErrorResult(f"Call this tool by its name: {shown_name(tool.name)}.")
        if tool is None or not (await self.access.allowed([tool], "load", "active"))[0]:
            return ErrorResult(f"There is no tool named {quoted(name)}. Search for one with {search_name}.")
        if tool.name in self.loaded_now:
            return ErrorResult(f"The tool {shown_name(tool.name)} was loaded in this step. Call it in your next step.")
        how = (
            f"Search for it with {search_name}, which loads what it finds"
            if self.options.auto_load
            else f"Load it with {load_name}"
        )
        return ErrorResult(f"The tool {shown_name(tool.name)} is not loaded. {how}, then call it in your next step.")

    def _store_failed(self, error: Exception) -> None:
        self._log(logging.ERROR, "store", "The store of loaded tools failed: %r", error)

    def _log(self, level: int, event: str, message: str, *values: object) -> None:
        logger.log(level, message, *values, extra={"event": event, "thread_id": self.thread_id})
