"""The options that commands share, and how a function becomes a command with them."""

from __future__ import annotations

import inspect as signatures
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from toolsearch_semantic.cli.show import one_line, say
from toolsearch_semantic.errors import InvalidOptionError
from toolsearch_semantic.formats.read import as_tool
from toolsearch_semantic.hits import SearchHit
from toolsearch_semantic.integrations.mcp import TIMEOUT, McpServer
from toolsearch_semantic.options import Mode, SearchOptions
from toolsearch_semantic.saved import read_saved
from toolsearch_semantic.search import ToolSearch
from toolsearch_semantic.sources import STDIN, collect_tools
from toolsearch_semantic.tool import Tool

__all__ = ["Ranking", "Sources", "command"]

_MODEL_HELP = "A bundled model (mini by default), or the folder of a local one."
_TOOLS_HELP = "JSON or JSON Lines, a folder of such files, an mcpServers configuration, or -. Repeatable."


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the tools of a command come from; the fields are its options."""

    tools: Annotated[list[str] | None, typer.Option(metavar="FILE|DIR|-", help=_TOOLS_HELP)] = None
    mcp: Annotated[list[str] | None, typer.Option(metavar="COMMAND", help="An MCP server to start. Repeatable.")] = None
    mcp_url: Annotated[list[str] | None, typer.Option(metavar="URL", help="An MCP server to ask. Repeatable.")] = None
    mcp_timeout: Annotated[float, typer.Option(metavar="SECONDS", help="For each MCP server.")] = TIMEOUT
    index: Annotated[Path | None, typer.Option(metavar="DIR", help="What 'toolsearch index' saved.")] = None
    demo: Annotated[bool, typer.Option("--demo", help="The built-in demo catalogue.")] = False

    def __post_init__(self) -> None:
        if bool(self.tools or self.mcp or self.mcp_url) + (self.index is not None) + self.demo > 1:
            raise InvalidOptionError("Give --tools, --mcp and --mcp-url together, or --index, or --demo alone.")
        if (self.tools or []).count(STDIN) > 1:
            raise InvalidOptionError("Standard input can be read only once: give --tools - once.")

    def required(self, otherwise: str) -> Sources:
        """Refuse to go on without a source, with the advice given."""
        if self.tools or self.mcp or self.mcp_url or self.index or self.demo:
            return self
        raise InvalidOptionError(f"No tools were given: use --tools, --mcp or --mcp-url. {otherwise}")

    def read(self) -> list[Tool]:
        """Read them all; an index gives the definitions that it saved, and without a source the demo is read."""
        if self.index is not None:
            return [as_tool(record) for record in read_saved(self.index).records]
        if not (self.tools or self.mcp or self.mcp_url):
            from importlib import resources

            with resources.as_file(resources.files("toolsearch_semantic.demo") / "tools.jsonl") as path:
                return collect_tools([path])[0]
        servers = [*map(McpServer.from_command, self.mcp or []), *map(McpServer.from_url, self.mcp_url or [])]
        tools, notes = collect_tools(self.tools or [], servers, timeout=self.mcp_timeout)
        for note in notes:
            say("note", note)
        return tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How a command ranks; the fields are its options."""

    mode: Annotated[Mode | None, typer.Option(help="By default hybrid, or as the index was made.")] = None
    top_k: Annotated[int, typer.Option(metavar="N", help="The most hits.")] = 5
    min_score: Annotated[float, typer.Option(metavar="0..1", help="The lowest score of a hit.")] = 0.0
    model: Annotated[str | None, typer.Option(metavar="mini|static|DIR", help=_MODEL_HELP)] = None
    tuning: Annotated[Path | None, typer.Option(metavar="FILE", help="What 'toolsearch tune' wrote.")] = None

    def __post_init__(self) -> None:
        SearchOptions(top_k=self.top_k, min_score=self.min_score)
        if self.model is not None and self.mode == "lexical":
            raise InvalidOptionError("--model has no part in --mode lexical. Leave one of them out.")

    def searchable(self, sources: Sources) -> ToolSearch:
        """Build what can be searched, or load it; a model that was asked for must work."""
        encoder, fallback, tuning = self.model, self.model is None, self.tuning
        if sources.index is not None and (self.mode is None or self.mode == read_saved(sources.index).mode):
            return ToolSearch.load(sources.index, encoder=encoder, fallback=fallback, tuning=tuning)
        mode = self.mode or "hybrid"
        return ToolSearch(sources.read(), mode=mode, encoder=encoder, fallback=fallback, tuning=tuning)

    def hits(self, catalogue: ToolSearch, query: str) -> list[SearchHit]:
        """Search as the options say."""
        return catalogue.search(query, top_k=self.top_k, min_score=self.min_score)

    def nothing_found(self, query: str, count: int) -> str:
        """Say that there are no hits."""
        return f"No tool was found among {count} (lowest score: {self.min_score:g}), for: {one_line(query)}"


def command(app: typer.Typer, *left_out: str) -> Callable[[Callable[..., None]], None]:
    """Register a function as a command, with the fields of its ``Sources`` and ``Ranking`` as options."""

    def register(function: Callable[..., None]) -> None:
        hints = get_type_hints(function, include_extras=True)
        groups = {name: hint for name, hint in hints.items() if hint in (Sources, Ranking)}
        own = signatures.signature(function).parameters
        options = {name: (hints[name], one.default) for name, one in own.items() if name not in groups}
        for group in groups.values():
            types = get_type_hints(group, include_extras=True)
            options |= {f.name: (types[f.name], f.default) for f in fields(group) if f.name not in left_out}

        def run(**given: Any) -> None:
            for name, group in groups.items():
                given[name] = group(**{f.name: given.pop(f.name) for f in fields(group) if f.name in given})
            function(**given)

        parameter = partial(signatures.Parameter, kind=signatures.Parameter.KEYWORD_ONLY)
        parameters = [parameter(name, annotation=hint, default=default) for name, (hint, default) in options.items()]
        run.__signature__ = signatures.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {name: hint for name, (hint, _) in options.items()}
        app.command(function.__name__.replace("_", "-"), help=function.__doc__)(run)

    return register
