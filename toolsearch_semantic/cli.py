"""The ``toolsearch`` command: search, compare, index and inspect the tools of files and MCP servers.

Errors are one line on standard error, with exit status 2. Text that comes from tools is never interpreted: markup
stays as it is, and what does not print is shown escaped.
"""

from __future__ import annotations

import inspect as signatures
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from toolsearch_semantic.encoders.cache import MemoryVectorCache
from toolsearch_semantic.errors import InvalidOptionError, ToolNotFoundError, ToolSearchError
from toolsearch_semantic.formats.read import as_tool
from toolsearch_semantic.formats.record import to_record
from toolsearch_semantic.indexes.lexical import term_weights
from toolsearch_semantic.integrations.mcp import TIMEOUT, McpServer
from toolsearch_semantic.options import SearchOptions
from toolsearch_semantic.saved import Mode, read_saved
from toolsearch_semantic.search import SearchHit, ToolSearch
from toolsearch_semantic.sources import STDIN, collect_tools
from toolsearch_semantic.text import TEXT_VERSION, searchable_text, text_fields
from toolsearch_semantic.tool import Tool

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["app", "main"]

_USAGE_ERROR, _INTERRUPTED, _BROKEN_PIPE = 2, 130, 1
_PIPED_WIDTH, _LEAST_WIDTH, _LEAST_DESCRIPTION, _GAP = 100, 40, 16, 3
_DECIMALS = 6  # of the numbers in JSON


class _Commands(TyperGroup):
    """Commands whose errors are one line, whoever raised them."""

    def main(self, *args: Any, **options: Any) -> Any:
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        options["standalone_mode"] = False
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # a terminal may know few characters
        try:
            with _warnings_as_lines():
                status = super().main(*args, **options)
            sys.stdout.flush()
        except (KeyboardInterrupt, typer.Abort):
            sys.exit(_INTERRUPTED)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(_BROKEN_PIPE)
        except (ToolSearchError, OSError, RecursionError) as error:
            _say("error", str(error))
            sys.exit(_USAGE_ERROR)
        except Exception as error:
            if not hasattr(error, "format_message"):  # the errors of usage have no public class of their own
                raise
            context = getattr(error, "ctx", None)
            command = "toolsearch" if context is None else context.command_path
            _say("error", f"{error.format_message()} See: {command} --help")
            sys.exit(_USAGE_ERROR)
        sys.exit(status if isinstance(status, int) else 0)


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks show values, and these may be secrets
    context_settings={"help_option_names": ["-h", "--help"]},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """Where the tools of a command come from; the fields are its options."""

    tools: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|DIR|-",
            help="JSON or JSON Lines of any known shape, a folder of such files, an mcpServers configuration, "
            "or - for standard input. Repeatable.",
        ),
    ] = None
    mcp: Annotated[
        list[str] | None,
        typer.Option(metavar="COMMAND", help="Start an MCP server, and list its tools. Repeatable."),
    ] = None
    mcp_url: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="List the tools of an MCP server over HTTP. Repeatable.")
    ] = None
    mcp_timeout: Annotated[float, typer.Option(metavar="SECONDS", help="For each MCP server.")] = TIMEOUT
    index: Annotated[Path | None, typer.Option(metavar="DIR", help="What 'toolsearch index' saved.")] = None
    demo: Annotated[bool, typer.Option("--demo", help="The built-in demo catalogue.")] = False

    def __post_init__(self) -> None:
        if bool(self.tools or self.mcp or self.mcp_url) + (self.index is not None) + self.demo > 1:
            raise InvalidOptionError("Give --tools, --mcp and --mcp-url together, or --index, or --demo alone.")
        if (self.tools or []).count(STDIN) > 1:
            raise InvalidOptionError("Standard input can be read only once: give --tools - once.")

    @property
    def given(self) -> bool:
        return bool(self.tools or self.mcp or self.mcp_url or self.index or self.demo)

    def required(self, otherwise: str) -> _Sources:
        """Refuse to have no source at all."""
        if not self.given:
            raise InvalidOptionError(f"No tools were given: use --tools, --mcp or --mcp-url. {otherwise}")
        return self

    def read(self) -> list[Tool]:
        """Read them all; an index gives the definitions that it saved."""
        if self.index is not None:
            return [as_tool(record) for record in read_saved(self.index).records]
        if self.demo:
            from importlib import resources

            with resources.as_file(resources.files("toolsearch_semantic.demo") / "tools.jsonl") as path:
                return collect_tools([path])[0]
        servers = [*map(McpServer.from_command, self.mcp or []), *map(McpServer.from_url, self.mcp_url or [])]
        tools, notes = collect_tools(self.tools or [], servers, timeout=self.mcp_timeout)
        for note in notes:
            _say("note", note)
        return tools


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranking:
    """How a command ranks; the fields are its options."""

    mode: Annotated[Mode | None, typer.Option(help="By default hybrid, or as the index was made.")] = None
    top_k: Annotated[int, typer.Option(metavar="N", help="The most hits.")] = 5
    min_score: Annotated[float, typer.Option(metavar="0..1", help="The lowest score of a hit.")] = 0.0
    model: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A local sentence-transformers model, not the bundled one.")
    ] = None

    def __post_init__(self) -> None:
        SearchOptions(top_k=self.top_k, min_score=self.min_score)
        if self.model is not None and self.mode == "lexical":
            raise InvalidOptionError("--model has no part in --mode lexical. Leave one of them out.")

    def searchable(self, sources: _Sources) -> ToolSearch:
        """Build what can be searched, or load it; a model that was asked for by its path must work."""
        encoder = {"encoder": self.model, "fallback": self.model is None}
        if sources.index is not None and (self.mode is None or self.mode == read_saved(sources.index).mode):
            return ToolSearch.load(sources.index, encoder=self.model, fallback=self.model is None)
        del encoder
        return ToolSearch(sources.read(), mode=self.mode or "hybrid", encoder=self.model, fallback=self.model is None)

    def hits(self, catalogue: ToolSearch, query: str) -> list[SearchHit]:
        return catalogue.search(query, top_k=self.top_k, min_score=self.min_score)

    def nothing(self, catalogue: ToolSearch, query: str) -> str:
        floor = f" with a score of {self.min_score:g} or more" if self.min_score else ""
        return f"No tool was found{floor} among {len(catalogue)}, for: {_line(query)}"


def _command(*left_out: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command; each dataclass among its parameters is the options that are its fields."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        groups = {name: hint for name, hint in hints.items() if hint in (_Sources, _Ranking)}
        flat: dict[str, signatures.Parameter] = {}
        for name, parameter in signatures.signature(function).parameters.items():
            if name not in groups:
                flat[name] = parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY)
                continue
            for field in fields(groups[name]):
                if field.name not in left_out:
                    annotation = get_type_hints(groups[name], include_extras=True)[field.name]
                    flat[field.name] = parameter.replace(
                        name=field.name, annotation=annotation, default=field.default, kind=parameter.KEYWORD_ONLY
                    )

        def run(**options: Any) -> None:
            grouped = {
                name: group(**{f.name: options.pop(f.name) for f in fields(group) if f.name in options})
                for name, group in groups.items()
            }
            function(**grouped, **options)

        run.__doc__ = function.__doc__
        run.__signature__ = signatures.Signature(list(flat.values()))  # type: ignore[attr-defined]
        run.__annotations__ = {name: parameter.annotation for name, parameter in flat.items()}
        return app.command(name=function.__name__)(run)

    return register
