"""The catalogue of one request: what is always there, and what the request brought."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from toolsearch_semantic.errors import InvalidToolError, ToolNameConflictError
from toolsearch_semantic.formats.names import written_names
from toolsearch_semantic.formats.read import NamedTools, same_tool
from toolsearch_semantic.formats.record import to_record
from toolsearch_semantic.hits import SearchHit
from toolsearch_semantic.locks import ForkHeldLock
from toolsearch_semantic.search import ToolSearch
from toolsearch_semantic.tool import Tool

__all__ = ["OnConflict", "RequestCatalogue", "RequestCatalogues", "is_safe", "written_alike"]

logger = logging.getLogger(__name__)

OnConflict = Literal["error", "resolved", "static"]

_SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what every provider is given as it is


def is_safe(name: str) -> bool:
    """Tell whether every provider is given this name as it is."""
    return _SAFE.fullmatch(name) is not None


def written_alike(names: Iterable[str], there: Iterable[str]) -> dict[str, str]:
    """Find, in order, names that a provider could be given under a name that is taken: name → who has it."""
    new, there = list(names), list(there)
    if all(map(is_safe, (*there, *new))):
        return {}
    taken = {written: name for name in there for written in written_names(name)}
    alike: dict[str, str] = {}
    for name in new:
        other = next((taken[written] for written in written_names(name) if written in taken), None)
        if other is None:
            taken |= dict.fromkeys(written_names(name), name)
        elif name not in there:
            alike[name] = other
    return alike


class RequestCatalogue:
    """What one request can search and load. The instances of its own tools are in nobody else's.

    Args:
        static: The search over the tools that every request has.
        resolved: The tools that this request brought, by name.
        aliases: Key → name, for those.
        hidden: Names of static tools that this request's replace.
        catalogues: Where the index over both is made, when it is first searched.
    """

    def __init__(
        self,
        static: ToolSearch,
        resolved: Mapping[str, Tool],
        aliases: Mapping[str, str],
        hidden: Sequence[str],
        catalogues: RequestCatalogues,
    ) -> None:
        self._static = static
        self._resolved = resolved
        self._aliases = aliases
        self._hidden = hidden
        self._catalogues = catalogues
        self._search: ToolSearch | None = None
        self._key: bytes | None = None
        self._written: dict[str, str] | None = None

    def __len__(self) -> int:
        """Count the tools."""
        return len(self._static) + len(self._resolved) - len(self._hidden)

    def get(self, name: str) -> Tool | None:
        """Give the tool of a name or an alias; this request's own instance."""
        name = self._aliases.get(name, name)
        own = self._resolved.get(name)
        if own is not None:
            return own
        there = self._static.get(name)
        return None if there is None else self._resolved.get(there.name, there)

    def find(self, name: str) -> Tool | None:
        """Give the tool of a name or an alias, or of the safe name that a provider or a model is given for it."""
        tool = self.get(name)
        if tool is not None:
            return tool
        if self._written is None:
            written: dict[str, str] = {}
            for own in self.names():
                if not is_safe(own):
                    for other in written_names(own):
                        written.setdefault(other, own)
            self._written = written
        own_name = self._written.get(name)
        return None if own_name is None else self.get(own_name)

    def names(self) -> Iterator[str]:
        """Give all names, static ones first."""
        hidden = set(self._hidden)
        yield from (tool.name for tool in self._static.tools if tool.name not in hidden)
        yield from self._resolved

    def is_weak(self, hit: SearchHit) -> bool:
        """Tell whether a hit scores so low that hardly any right tool does."""
        return self._static.is_weak(hit)

    def search(self, queries: Sequence[str], *, top_k: int, min_score: float) -> list[SearchHit]:
        """Find tools, as `ToolSearch.search` does; may take a while where much is to be embedded."""
        hits = self._over_all().search(queries, top_k=top_k, min_score=min_score)
        return [
            replace(hit, tool=self._resolved[hit.tool.name]) if hit.tool.name in self._resolved else hit for hit in hits
        ]

    def ranked(self, texts: Iterable[str], *, top_k: int, min_score: float) -> list[list[Tool]]:
        """Find tools for each of several texts by itself, best first; what was asked lately is remembered."""
        search = self._over_all()
        key = b"" if self._key is None else self._key
        rankings = (
            self._catalogues.ranking(key, self._static, search, text, top_k=top_k, min_score=min_score)
            for text in texts
        )
        return [[tool for tool in map(self.get, names) if tool is not None] for names in rankings]

    def _over_all(self) -> ToolSearch:
        if self._search is None:
            if self._resolved:
                self._key = _key(self._resolved.values(), self._hidden)
                self._search = self._catalogues.search_over(
                    self._key, self._static, self._resolved.values(), self._hidden
                )
            else:
                self._search = self._static
        return self._search


class RequestCatalogues:
    """Makes request catalogues, and keeps the indexes of the latest ones: definitions and vectors, never instances.

    Args:
        on_conflict: What a resolved tool with the name of a different static tool is: an error, or which one counts.
        kept: How many indexes are kept.
        rankings_kept: How many rankings are kept, as names.
    """

    def __init__(self, *, on_conflict: OnConflict, kept: int = 32, rankings_kept: int = 2_000) -> None:
        self._on_conflict = on_conflict
        self._kept = kept
        self._rankings_kept = rankings_kept
        # Each with the static tools that it was made over: those may change.
        self._indexes: OrderedDict[bytes, tuple[tuple[Tool, ...], ToolSearch]] = OrderedDict()
        self._rankings: OrderedDict[bytes, tuple[tuple[Tool, ...], tuple[str, ...]]] = OrderedDict()
        self._lock = ForkHeldLock()

    def for_request(self, static: ToolSearch, resolved: NamedTools) -> RequestCatalogue:
        """Join the tools of a request to the static ones, for this request alone.

        Raises:
            ToolNameConflictError: One has the name of a different static tool, and conflicts are errors; or a key
                is another tool's name.
        """
        own: dict[str, Tool] = {}
        hidden: list[str] = []
        for tool in resolved.tools:
            there = static.get(tool.name)
            if there is None:
                own[tool.name] = tool
            elif there.name != tool.name:
                raise ToolNameConflictError(
                    f"The request brought a tool named {tool.name!r}, and that is a key of the static tool "
                    f"{there.name!r} ({there.description[:60]!r}). Rename one."
                )
            elif same_tool(there, tool):
                continue
            elif self._on_conflict == "static":
                logger.info("The static tool %r counts, not the one that the request brought.", tool.name)
            elif self._on_conflict == "resolved":
                logger.info("The tool %r that the request brought counts, not the static one.", tool.name)
                own[tool.name] = tool
                hidden.append(tool.name)
            else:
                raise ToolNameConflictError(
                    f"The request brought a tool named {tool.name!r} ({tool.description[:60]!r}), and there is a "
                    f"different static tool {there.name!r} ({there.description[:60]!r}). Rename one, or choose one "
                    "with on_conflict='resolved' or 'static'."
                )
        for key, name in resolved.aliases.items():
            there = static.get(key)
            if there is not None and there.name != name:
                raise ToolNameConflictError(
                    f"The key {key!r} of the request's tool {name!r} is the static tool {there.name!r}. Rename one."
                )
        return RequestCatalogue(static, own, resolved.aliases, hidden, self)

    def search_over(
        self, key: bytes, static: ToolSearch, resolved: Iterable[Tool], hidden: Sequence[str]
    ) -> ToolSearch:
        """Give a search over both, made of definitions alone; the one made before where nothing differs."""
        tools = static.tools
        with self._lock:
            kept = self._indexes.get(key)
            if kept is not None and kept[0] is tools:
                self._indexes.move_to_end(key)
                return kept[1]
        definitions = [replace(tool, execute=None, source=None) for tool in resolved]
        made = static.extended(definitions, without=hidden)
        if made.active_mode == static.active_mode:  # else the encoder failed on these, and may work the next time
            with self._lock:
                self._indexes[key] = (tools, made)
                while len(self._indexes) > self._kept:
                    self._indexes.popitem(last=False)
        return made

    def ranking(
        self, key: bytes, static: ToolSearch, search: ToolSearch, text: str, *, top_k: int, min_score: float
    ) -> Sequence[str]:
        """Give the names that a search finds, best first; those found before where nothing differs.

        Args:
            key: Tells the request's own tools.
            static: The search over the static ones.
            search: The search over both.
            text: The query.
            top_k: The most names.
            min_score: The lowest score.
        """
        tools = static.tools
        asked = hashlib.sha256(json.dumps([key.hex(), text, top_k, min_score]).encode()).digest()
        with self._lock:
            kept = self._rankings.get(asked)
            if kept is not None and kept[0] is tools:
                self._rankings.move_to_end(asked)
                return kept[1]
        failures = search.failures
        hits = search.search(text, top_k=top_k)
        names = tuple(hit.tool.name for hit in hits if hit.score >= min_score)
        # What keywords found while the encoder failed is not kept; where nothing was found, nobody can tell.
        if hits and search.failures == failures and search.active_mode == search.mode:
            with self._lock:
                self._rankings[asked] = (tools, names)
                while len(self._rankings) > self._rankings_kept:
                    self._rankings.popitem(last=False)
        return names


def _key(resolved: Iterable[Tool], hidden: Sequence[str]) -> bytes:
    digest = hashlib.sha256()
    for tool in resolved:
        try:
            record = json.dumps(to_record(tool))
        except InvalidToolError:  # a schema that JSON cannot hold is searched by what its repr shows
            record = repr((tool.name, tool.description, tool.namespace, tool.search_text, tool.input_schema))
        digest.update(record.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(json.dumps(list(hidden)).encode())
    return digest.digest()
