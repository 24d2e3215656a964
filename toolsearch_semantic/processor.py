"""Keeping a catalogue out of the prompt, step by step."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from toolsearch_semantic.access import AccessFilter, ReportedOnce, StepAccess
from toolsearch_semantic.bridge import run_sync
from toolsearch_semantic.checks import read_count, read_flag, read_messages, read_seconds, read_thread
from toolsearch_semantic.encoders.base import Encoder
from toolsearch_semantic.errors import InvalidOptionError, ToolNameConflictError, ToolNotFoundError
from toolsearch_semantic.formats.names import written_names
from toolsearch_semantic.formats.read import NamedTools, read_tools, same_tool
from toolsearch_semantic.messages.read import last_user_text, read_exchanges, read_user_turns
from toolsearch_semantic.meta_tools import MetaTools, catalogue_message
from toolsearch_semantic.options import Mode, SearchOptions
from toolsearch_semantic.receipts import Receipt, receipts_in, replay
from toolsearch_semantic.request_catalogue import OnConflict, RequestCatalogues, is_safe
from toolsearch_semantic.search import ToolSearch
from toolsearch_semantic.session import Session
from toolsearch_semantic.stores.base import StateStats, StateStore
from toolsearch_semantic.stores.context import ContextStore
from toolsearch_semantic.stores.in_memory import InMemoryStore
from toolsearch_semantic.tool import Tool

__all__ = ["StepResult", "ToolSearchProcessor"]

logger = logging.getLogger(__name__)

_NO_TOOLS = NamedTools((), MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step gives to the model, and what runs what the model calls.

    Args:
        tools: Name → tool, in the order in which they are to be sent: meta-tools, the host's own, loaded ones.
        system_messages: Constant texts to append to the system prompt.
    """

    tools: Mapping[str, Tool]
    system_messages: tuple[str, ...]
    _session: Session = field(repr=False, compare=False)

    async def call(self, name: str, arguments: object = None) -> Any:
        """Run a tool of this step: by its name, or by the safe name that a provider was given for it.

        Nothing raises for what a model wrote: an unknown name, arguments that break the schema and an executor's
        exception give an `ErrorResult`. A plain function runs in a thread; cancellation passes through.

        Args:
            name: As the model wrote it.
            arguments: An object, or JSON text of one; None for no arguments.
        """
        return await self._session.call(name, arguments)

    def call_sync(self, name: str, arguments: object = None) -> Any:
        """Run a tool of this step, as `call` does, and wait for it.

        Inside a running event loop it blocks that loop meanwhile, so nothing that the tool awaits may need it.
        """
        return run_sync(lambda: self._session.call(name, arguments))


class ToolSearchProcessor:
    """Gives an agent two meta-tools in place of a catalogue, and each thread the tools that it loaded.

    Args:
        tools: The catalogue, in any shape that `as_tools` reads, or a `ToolSearch` over it.
        search: `SearchOptions`, or a mapping of them: ``top_k``, ``min_score``, ``auto_load``, ``preselect``.
        include_resolved_tools: Whether the tools of a request join its catalogue and are withheld until loaded.
        storage: ``"in-memory"``; ``"context"``: read from the conversation; or a store.
        ttl: Seconds without a step after which the in-memory store forgets a thread; 0 is never.
        filter: Decides who may find, load and use which tool; see `FilterArgs`.
        filter_timeout: Seconds that an asynchronous filter may take; None is without bound.
        filter_concurrency: How many asynchronous filters run at once.
        on_conflict: What a request's tool with the name of a different static one is: ``"error"``, or which counts.
        always_loaded: Names of the catalogue that are shown without having been loaded, where the filter's
            ``active`` phase allows them; they do not count among ``max_loaded``.
        max_loaded: How many tools a thread may have loaded; the one unused for longest makes room, and of more than
            fit the first are loaded. None is without bound.
        inject_catalog: Whether a system message lists the names and short descriptions of the catalogue, without
            resolved tools and without what the filter's ``search`` phase denies; for small catalogues.
        meta_tools: Names and texts of the meta-tools.
        mode: How the catalogue is ranked, where ``tools`` is no `ToolSearch`.
        encoder: What embeds it, likewise.

    Raises:
        UnknownToolShapeError: Something among the tools is not a tool.
        ToolNameConflictError: Two different tools have one name, or one has a meta-tool's.
        ToolNotFoundError: A name of ``always_loaded`` is not in the catalogue.
        InvalidOptionError: An option is unknown, of a wrong type or out of range.
    """

    id = "tool-search"
    name = "Tool Search Processor"

    def __init__(
        self,
        tools: Mapping[str, Any] | Iterable[Any] | ToolSearch = (),
        *,
        search: SearchOptions | Mapping[str, Any] | None = None,
        include_resolved_tools: bool = False,
        storage: str | StateStore = "in-memory",
        ttl: float = 3600.0,
        filter: AccessFilter | None = None,
        filter_timeout: float | None = None,
        filter_concurrency: int = 64,
        on_conflict: OnConflict = "error",
        always_loaded: Iterable[str] = (),
        max_loaded: int | None = None,
        inject_catalog: bool = False,
        meta_tools: MetaTools | None = None,
        mode: Mode = "hybrid",
        encoder: Encoder | str | Path | None = None,
    ) -> None:
        self._options = SearchOptions.read(search)
        self._include_resolved = read_flag("include_resolved_tools", include_resolved_tools)
        self._store = _store(storage, ttl)
        self._filter = filter
        self._filter_timeout = read_seconds("filter_timeout", filter_timeout)
        self._filter_concurrency = read_count("filter_concurrency", filter_concurrency)
        self._max_loaded = None if max_loaded is None else read_count("max_loaded", max_loaded)
        self._inject_catalog = read_flag("inject_catalog", inject_catalog)
        self._meta = MetaTools() if meta_tools is None else meta_tools
        if filter is not None and not callable(filter):
            raise InvalidOptionError(f"filter must be a function of FilterArgs, not {filter!r}.")
        if on_conflict not in get_args(OnConflict):
            raise InvalidOptionError(f"on_conflict must be one of {get_args(OnConflict)}, not {on_conflict!r}.")
        if isinstance(tools, ToolSearch):
            self._search = tools
            self._check_reserved(NamedTools(tools.tools, tools.aliases), "catalogue")
        else:
            named = read_tools(tools)
            self._check_reserved(named, "catalogue")
            keyed = {tool.name: tool for tool in named.tools}
            keyed |= {alias: keyed[name] for alias, name in named.aliases.items()}
            self._search = ToolSearch(keyed, mode=mode, encoder=encoder)
        self._always = self._always_loaded(always_loaded)
        self._requests = RequestCatalogues(on_conflict=on_conflict)
        self._reported = ReportedOnce()
        self._instructions = self._meta.system_message(auto_load=self._options.auto_load)

    async def process_input_step(
        self,
        *,
        messages: Iterable[Any] | None = None,
        tools: Mapping[str, Any] | Iterable[Any] | None = None,
        request_context: Mapping[str, Any] | None = None,
        thread_id: str | None = None,
        state: MutableMapping[str, Any] | None = None,
    ) -> StepResult:
        """Prepare one step of an agent: the tools to send to the model, and how to run what it calls.

        Args:
            messages: The conversation, in any provider's shape; needed by the context store and by preselection.
            tools: The host's own tools for this request. They are passed on untouched, or, with
                ``include_resolved_tools``, join the catalogue of this request.
            request_context: Handed to the filter; its ``thread_id`` names the thread where none is given.
            thread_id: The conversation that loaded tools belong to; ``"default"`` where nothing names one.
            state: A mapping that the host keeps for the steps of one request, and of no other. The context store
                remembers in it what a step loaded until the conversation says so.

        Raises:
            UnknownToolShapeError: Something among the tools is not a tool.
            ToolNameConflictError: A tool has the name of a meta-tool, of a different loaded tool, or, with
                ``include_resolved_tools``, of a different static tool.
            InvalidOptionError: An argument is of a wrong type.
        """
        session = await self._session(read_messages(messages), tools, request_context, thread_id, state)
        loaded = await self._loaded(session, touch=True)
        meta = {self._meta.search_name: self._bound(session, self._meta.search_name)}
        if not self._options.auto_load:
            meta[self._meta.load_name] = self._bound(session, self._meta.load_name)
        session.shown = {**meta, **session.direct, **{n: t for n, t in loaded.items() if n not in session.direct}}
        system = [self._instructions] if self._instructions else []
        if self._inject_catalog:
            listed = [*self._search.tools]
            allowed = await session.access.allowed(listed, "search")
            listed = [tool for tool, passes in zip(listed, allowed, strict=True) if passes]
            system.append(catalogue_message(listed, auto_load=self._options.auto_load))
        return StepResult(MappingProxyType(session.shown), tuple(system), session)

    def process_input_step_sync(
        self,
        *,
        messages: Iterable[Any] | None = None,
        tools: Mapping[str, Any] | Iterable[Any] | None = None,
        request_context: Mapping[str, Any] | None = None,
        thread_id: str | None = None,
        state: MutableMapping[str, Any] | None = None,
    ) -> StepResult:
        """Prepare one step, as `process_input_step` does, and wait for it.

        Inside a running event loop it blocks that loop meanwhile, so the filter must not need it.
        """
        return run_sync(
            lambda: self.process_input_step(
                messages=messages, tools=tools, request_context=request_context, thread_id=thread_id, state=state
            )
        )

    async def loaded_tools(
        self,
        *,
        messages: Iterable[Any] | None = None,
        tools: Mapping[str, Any] | Iterable[Any] | None = None,
        request_context: Mapping[str, Any] | None = None,
        thread_id: str | None = None,
        state: MutableMapping[str, Any] | None = None,
    ) -> dict[str, Tool]:
        """Give the tools of the catalogue that the next step would show, name → tool, in its order; changes nothing.

        The arguments are those of `process_input_step`. For a host that goes on after a person's approval or a
        restart, and has to run a call without a step before it.
        """
        own_state = None if state is None else dict(state)
        session = await self._session(
            read_messages(messages), tools, request_context, thread_id, own_state, changes=False
        )
        return await self._loaded(session, touch=False)

    def clear_state(self, thread_id: str) -> None:
        """Forget what a thread has loaded."""
        self._store.clear(thread_id)

    def clear_all_state(self) -> None:
        """Forget what every thread has loaded."""
        self._store.clear_all()

    def get_state_stats(self) -> StateStats:
        """Count the threads that have loaded tools, and give the oldest time of use."""
        return self._store.stats()

    def cleanup_now(self) -> int:
        """Forget the threads that were idle for too long; give their number."""
        return self._store.cleanup()

    async def _session(
        self,
        messages: Sequence[Any],
        tools: Mapping[str, Any] | Iterable[Any] | None,
        request_context: Mapping[str, Any] | None,
        thread_id: str | None,
        state: MutableMapping[str, Any] | None,
        *,
        changes: bool = True,
    ) -> Session:
        if request_context is not None and not isinstance(request_context, Mapping):
            raise InvalidOptionError(f"request_context must be a mapping or None, not {request_context!r}.")
        if state is not None and not isinstance(state, MutableMapping):
            raise InvalidOptionError(f"state must be a mutable mapping or None, not {state!r}.")
        context: Mapping[str, Any] = {} if request_context is None else request_context
        named = _NO_TOOLS if tools is None else read_tools(tools)
        self._check_reserved(named, "request")
        resolved = named if self._include_resolved else _NO_TOOLS
        direct = {} if self._include_resolved else {tool.name: tool for tool in named.tools}
        catalogue = self._requests.for_request(self._search, resolved)
        thread = read_thread(thread_id, context)
        access = StepAccess(
            self._filter,
            context,
            timeout=self._filter_timeout,
            concurrency=self._filter_concurrency,
            reported=self._reported,
            thread_id=thread,
        )
        session = Session(
            thread_id=thread,
            catalogue=catalogue,
            direct=direct,
            always={name: tool for name in self._always if (tool := catalogue.get(name)) is not None},
            store=self._store,
            access=access,
            options=self._options,
            meta_tools=self._meta,
            max_loaded=self._max_loaded,
            recovered=isinstance(self._store, ContextStore),
        )
        if isinstance(self._store, ContextStore):
            await self._recover(self._store, messages, session, state)
        elif self._options.preselect:
            turn = last_user_text(messages)
            if turn is not None and not turn.assistant_follows and turn.text.strip():
                if not changes:
                    await session.detach()
                await session.preselect(turn.text)
        return session

    async def _recover(
        self,
        store: ContextStore,
        messages: Sequence[Any],
        session: Session,
        state: MutableMapping[str, Any] | None,
    ) -> None:
        """Read from the conversation what is loaded, and preselect again: what is not remembered is computed."""
        # Calls of other tools matter only where the one unused for longest makes room.
        wanted = None if self._max_loaded is not None else (*self._meta.written, "tool_search")
        receipts = [*receipts_in(read_exchanges(messages, tool_names=wanted), self._meta)]
        if self._options.preselect:
            turns = [turn for turn in read_user_turns(messages) if turn.text.strip()]
            preselected = await session.preselected([turn.text for turn in turns])
            found = zip(turns, preselected, strict=True)
            receipts = [*(Receipt(turn.position, tuple(names)) for turn, names in found), *receipts]
        session.store = store.bind(*replay(receipts, session.own_name), state)
        await session.make_room()

    async def _loaded(self, session: Session, *, touch: bool) -> dict[str, Tool]:
        loaded = await session.visible(touch=touch)
        for name, tool in loaded.items():
            own = session.direct.get(name)
            if own is not None and not same_tool(own, tool):
                raise ToolNameConflictError(
                    f"The request's tool {name!r} ({own.description[:60]!r}) has the name of a loaded tool "
                    f"({tool.description[:60]!r}). Rename one of them."
                )
        return loaded

    def _bound(self, session: Session, name: str) -> Tool:
        """Define a meta-tool that runs in this step; equal in every step but for what it runs."""
        searching = name == self._meta.search_name
        tool = self._meta.search_tool(auto_load=self._options.auto_load) if searching else self._meta.load_tool()
        return Tool(tool.name, tool.description, tool.input_schema, session.search if searching else session.load)

    def _check_reserved(self, named: NamedTools, whose: str) -> None:
        written = self._meta.written
        for name, taken in [*((tool.name, tool.name) for tool in named.tools), *named.aliases.items()]:
            if name in written or (not is_safe(name) and written_names(name) & written):
                under = "" if name == taken else f" (under the key {name!r})"
                raise ToolNameConflictError(
                    f"The {whose}'s tool {taken!r}{under} has the name of a meta-tool, "
                    f"{' or '.join(self._meta.names)}, or would be written like it. Rename it, or name the "
                    "meta-tools otherwise with meta_tools=MetaTools(search_name=..., load_name=...)."
                )

    def _always_loaded(self, names: Iterable[str]) -> tuple[str, ...]:
        if isinstance(names, str):
            raise InvalidOptionError(f"always_loaded takes several names: give [{names!r}], not {names!r}.")
        found = []
        for name in names:
            tool = self._search.get(name)
            if tool is None:
                raise ToolNotFoundError(f"The always-loaded tool {name!r} is not in the catalogue.")
            found.append(tool.name)
        return tuple(dict.fromkeys(found))


def _store(storage: str | StateStore, ttl: float) -> StateStore:
    in_memory = InMemoryStore(ttl=ttl)  # also where it is not used: a wrong ttl must not wait for a change of storage
    if storage == "in-memory":
        return in_memory
    if storage == "context":
        return ContextStore()
    if isinstance(storage, type):
        raise InvalidOptionError(
            f"storage must be a store, not the class {storage.__name__}: give {storage.__name__}()."
        )
    if isinstance(storage, StateStore) and not isinstance(storage, str):
        return storage
    lacking = [name for name in vars(StateStore) if name[0] != "_" and not hasattr(storage, name)]
    why = "" if isinstance(storage, str) else f" It lacks {', '.join(lacking)}."
    raise InvalidOptionError(f"storage must be 'in-memory', 'context' or a StateStore, not {storage!r}.{why}")
