"""The catalogue of one request: what is always there, and what the request brought."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from toolsearch_semantic.errors import InvalidToolError, ToolNameConflictError
from toolsearch_semantic.formats.read import NamedTools, same_tool
from toolsearch_semantic.formats.record import to_record
from toolsearch_semantic.hits import SearchHit
from toolsearch_semantic.search import ToolSearch
from toolsearch_semantic.tool import Tool

__all__ = ["OnConflict", "RequestCatalogue", "RequestCatalogues"]

logger = logging.getLogger(__name__)

OnConflict = Literal["error", "resolved", "static"]


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

    def __len__(self) -> int:
        """Count the tools."""
        return len(self._static) + len(self._resolved) - len(self._hidden)

    def get(self, name: str) -> Tool | None:
        """Give the tool of a name or an alias; this request's own instance."""
        own = self._resolved.get(self._aliases.get(name, name))
        return self._static.get(name) if own is None else own

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
        if self._search is None:
            self._search = (
                self._catalogues.search_over(self._static, tuple(self._resolved.values()), self._hidden)
                if self._resolved
                else self._static
            )
        hits = self._search.search(queries, top_k=top_k, min_score=min_score)
        return [
            replace(hit, tool=self._resolved[hit.tool.name]) if hit.tool.name in self._resolved else hit for hit in hits
        ]


class RequestCatalogues:
    """Makes request catalogues, and keeps the indexes of the latest ones: definitions and vectors, never instances.

    Args:
        on_conflict: What a resolved tool with the name of a different static tool is: an error, or which one counts.
        kept: How many indexes are kept.
    """

    def __init__(self, *, on_conflict: OnConflict, kept: int = 32) -> None:
        self._on_conflict = on_conflict
        self._kept = kept
        self._indexes: OrderedDict[bytes, tuple[tuple[Tool, ...], ToolSearch]] = OrderedDict()
        self._lock = threading.Lock()

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
            elif there.name == tool.name and (same_tool(there, tool) or self._on_conflict == "static"):
                if not same_tool(there, tool):
                    logger.info("The static tool %r counts, not the one that the request brought.", tool.name)
            elif there.name == tool.name and self._on_conflict == "resolved":
                logger.info("The tool %r that the request brought counts, not the static one.", tool.name)
                own[tool.name] = tool
                hidden.append(tool.name)
            else:
                raise ToolNameConflictError(
                    f"The request brought a tool named {tool.name!r}, and that is the name or key of a different "
                    f"static tool ({there.name!r}, {there.description[:60]!r}). Rename one, or choose one with "
                    "on_conflict='resolved' or 'static'."
                )
        for key, name in resolved.aliases.items():
            there = static.get(key)
            if there is not None and there.name != name:
                raise ToolNameConflictError(
                    f"The key {key!r} of the request's tool {name!r} is the static tool {there.name!r}. Rename one."
                )
        return RequestCatalogue(static, own, resolved.aliases, hidden, self)

    def search_over(self, static: ToolSearch, resolved: Sequence[Tool], hidden: Sequence[str]) -> ToolSearch:
        """Give a search over both, made of definitions alone; the one made before where nothing differs."""
        key = _key(resolved, hidden)
        with self._lock:
            kept = self._indexes.get(key)
            if kept is not None and kept[0] is static.tools:
                self._indexes.move_to_end(key)
                return kept[1]
        definitions = [replace(tool, execute=None, source=None) for tool in resolved]
        made = static.extended(definitions, without=hidden)
        with self._lock:
            self._indexes[key] = (static.tools, made)
            while len(self._indexes) > self._kept:
                self._indexes.popitem(last=False)
        return made


def _key(resolved: Sequence[Tool], hidden: Sequence[str]) -> bytes:
    digest = hashlib.sha256()
    for tool in resolved:
        try:
            record = json.dumps(to_record(tool))
        except InvalidToolError:  # a schema that JSON cannot hold is searched by what its repr shows
            record = repr((tool.name, tool.description, tool.namespace, tool.search_text, tool.input_schema))
        digest.update(record.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(json.dumps(list(hidden)).encode())
    return digest.digest()
