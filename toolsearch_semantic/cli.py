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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from toolsearch_semantic.encoders.cache import MemoryVectorCache
from toolsearch_semantic.errors import InvalidOptionError, ToolNotFoundError, ToolSearchError
from toolsearch_semantic.formats.read import as_tool
from toolsearch_semantic.formats.record import to_record
from toolsearch_semantic.indexes.base import DECIMALS
from toolsearch_semantic.indexes.lexical import term_weights
from toolsearch_semantic.integrations.mcp import TIMEOUT, McpServer
from toolsearch_semantic.options import SearchOptions
from toolsearch_semantic.saved import Mode, read_saved
from toolsearch_semantic.search import SearchHit, ToolSearch
from toolsearch_semantic.sources import STDIN, collect_tools
from toolsearch_semantic.text import TEXT_VERSION, searchable_text, text_fields
from toolsearch_semantic.tool import Tool

__all__ = ["app", "main"]

_USAGE_ERROR, _INTERRUPTED, _BROKEN_PIPE = 2, 130, 1
_PIPED_WIDTH, _LEAST_WIDTH, _LEAST_DESCRIPTION, _GAP = 100, 40, 16, 3
_TOOLS_HELP = "JSON or JSON Lines, a folder of such files, an mcpServers configuration, or -. Repeatable."


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
            with _WarningLines():
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

    def required(self, otherwise: str) -> _Sources:
        if not (self.tools or self.mcp or self.mcp_url or self.index or self.demo):
            raise InvalidOptionError(f"No tools were given: use --tools, --mcp or --mcp-url. {otherwise}")
        return self

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
            _say("note", note)
        return tools


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranking:
    """How a command ranks; the fields are its options."""

    mode: Annotated[Mode | None, typer.Option(help="By default hybrid, or as the index was made.")] = None
    top_k: Annotated[int, typer.Option(metavar="N", help="The most hits.")] = 5
    min_score: Annotated[float, typer.Option(metavar="0..1", help="The lowest score of a hit.")] = 0.0
    model: Annotated[Path | None, typer.Option(metavar="DIR", help="A local model, not the bundled one.")] = None

    def __post_init__(self) -> None:
        SearchOptions(top_k=self.top_k, min_score=self.min_score)
        if self.model is not None and self.mode == "lexical":
            raise InvalidOptionError("--model has no part in --mode lexical. Leave one of them out.")

    def searchable(self, sources: _Sources) -> ToolSearch:
        """Build what can be searched, or load it; a model that was asked for by its path must work."""
        if sources.index is not None and (self.mode is None or self.mode == read_saved(sources.index).mode):
            return ToolSearch.load(sources.index, encoder=self.model, fallback=self.model is None)
        return ToolSearch(sources.read(), mode=self.mode or "hybrid", encoder=self.model, fallback=self.model is None)

    def hits(self, catalogue: ToolSearch, query: str) -> list[SearchHit]:
        return catalogue.search(query, top_k=self.top_k, min_score=self.min_score)

    def nothing_found(self, query: str, count: int) -> str:
        floor = f" with a score of {self.min_score:g} or more" if self.min_score else ""
        return f"No tool was found{floor} among {count}, for: {_line(query)}"


def _command(*left_out: str) -> Callable[[Callable[..., None]], None]:
    """Register a function as a command, with the fields of its ``_Sources`` and ``_Ranking`` as options."""

    def register(function: Callable[..., None]) -> None:
        hints = get_type_hints(function, include_extras=True)
        groups = {name: hint for name, hint in hints.items() if hint in (_Sources, _Ranking)}
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
        app.command(function.__name__, help=function.__doc__)(run)

    return register


_Query = Annotated[list[str], typer.Argument(metavar="QUERY", help="What is needed, in words.")]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")]
_Out = Annotated[Path, typer.Option(metavar="DIR", help="A new or empty folder, or an index to replace.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON alone.")]


@app.callback(invoke_without_command=True)
def _toolsearch(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    """Find the right tool of many, by what a request means. Offline.

    To see it work, without any file:  toolsearch demo "tell the team the build broke"
    """
    if version:
        from importlib import metadata

        try:
            typer.echo(f"toolsearch {metadata.version('toolsearch-semantic')}")
        except metadata.PackageNotFoundError:
            typer.echo("toolsearch (not installed)")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@_command("demo")
def search(query: _Query, sources: _Sources, ranking: _Ranking, as_json: _Json = False) -> None:
    """Find tools in files, in MCP servers, or in a saved index.

    toolsearch search publish a package release --tools tools.jsonl

    toolsearch search "what time is it in Tokyo" --mcp "uvx mcp-server-time" --top-k 3
    """
    _search(query, sources.required('To try it without any: toolsearch demo "book a table for two"'), ranking, as_json)


@_command()
def demo(query: _Query, ranking: _Ranking, as_json: _Json = False) -> None:
    """Find tools in the built-in demo catalogue, the services of a made-up company.

    toolsearch demo "tell the team the build broke"
    """
    _search(query, _Sources(demo=True), ranking, as_json)


def _search(words: list[str], sources: _Sources, ranking: _Ranking, as_json: bool) -> None:
    query = " ".join(words)
    catalogue = ranking.searchable(sources)
    hits = ranking.hits(catalogue, query)
    if as_json:
        modes = {"mode": catalogue.mode, "active_mode": hits[0].source if hits else catalogue.active_mode}
        typer.echo(json.dumps({"query": query, **modes, "hits": _records(hits)}, indent=2))
    elif hits:
        columns = {"score": [f"{hit.score:.2f}" for hit in hits], "name": [hit.tool.name for hit in hits]}
        if any(hit.tool.namespace for hit in hits):
            columns["namespace"] = [hit.tool.namespace or "" for hit in hits]
        columns["why"] = [_why(hit) for hit in hits]
        _print_table(columns, last=("description", [hit.tool.description for hit in hits]))
        typer.echo(f"{len(hits)} of {len(catalogue)} tools, by {hits[0].source} search.")
    else:
        typer.echo(ranking.nothing_found(query, len(catalogue)))


@_command("mode")
def compare(query: _Query, sources: _Sources, ranking: _Ranking, as_json: _Json = False) -> None:
    """Put semantic, lexical and hybrid ranking side by side.

    toolsearch compare "tell the team the build broke" --demo
    """
    text, cache = " ".join(query), MemoryVectorCache()
    tools = sources.required("To try it without any, give --demo.").read()
    # Where the encoder cannot be loaded, hybrid falls back and says so, and semantic would do the same.
    hybrid = semantic = ToolSearch(tools, encoder=ranking.model, fallback=ranking.model is None, cache=cache)
    if hybrid.encoder is not None:
        semantic = ToolSearch(tools, mode="semantic", encoder=hybrid.encoder, cache=cache)
    catalogues = {"semantic": semantic, "lexical": ToolSearch(tools, mode="lexical"), "hybrid": hybrid}
    rankings = {mode: ranking.hits(catalogue, text) for mode, catalogue in catalogues.items()}
    if as_json:
        typer.echo(json.dumps({"query": text, **{mode: _records(hits) for mode, hits in rankings.items()}}, indent=2))
    elif any(rankings.values()):
        headers = [mode if mode == one.active_mode else f"{mode} (fell back)" for mode, one in catalogues.items()]
        cells = ([f"{hit.score:.2f} {hit.tool.name}" for hit in hits] for hits in rankings.values())
        _print_table(dict(zip(headers, cells, strict=True)))
    else:
        typer.echo(ranking.nothing_found(text, len(tools)))


@_command("index", "demo", "top_k", "min_score")
def index(out: _Out, sources: _Sources, ranking: _Ranking) -> None:
    """Build an index once, and save it for 'toolsearch search --index DIR'.

    toolsearch index --tools tools.jsonl --out my-index
    """
    from rich.console import Console
    from rich.progress import Progress

    started = time.perf_counter()
    tools = sources.required("An index is made of what they give.").read()
    built = ToolSearch(mode=ranking.mode or "hybrid", encoder=ranking.model, fallback=False)
    batch = max(256, len(tools) // 20)  # each addition puts the lexical index together anew
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("Indexing", total=len(tools))
        for start in range(0, len(tools), batch):
            built.add(tools[start : start + batch])
            progress.update(task, completed=len(built))
    built.save(out)
    kilobytes = sum(file.stat().st_size for file in out.iterdir()) / 1000
    seconds = time.perf_counter() - started
    typer.echo(f"{len(built)} tools, {built.mode} index, {kilobytes:,.0f} kB, {seconds:.1f} s: {_line(str(out))}")


@_command()
def inspect(name: _Name, sources: _Sources, as_json: _Json = False) -> None:
    """Show what is indexed of one tool; without a source, of the demo catalogue.

    toolsearch inspect git_diff --mcp "uvx mcp-server-git"
    """
    tools = {tool.name: tool for tool in sources.read()}
    if name not in tools:
        near = ", ".join(map(repr, _near(name, tools)))
        advice = f"Near it are {near}." if near else "Search for it by what it does."
        raise ToolNotFoundError(f"There is no tool {name!r} among the {len(tools)}. {advice}")
    parts, definition = text_fields(tools[name]), to_record(tools[name])
    shown = {**asdict(parts), "cut": list(parts.cut), "embedded": searchable_text(parts)}
    shown |= {"terms": list(term_weights(parts)), "text_version": TEXT_VERSION}
    if as_json:
        typer.echo(json.dumps({**shown, "definition": definition}, indent=2))
        return
    for field, value in shown.items():
        text = " ".join(value) if isinstance(value, list) else str(value)
        typer.echo(f"{field.replace('_', ' ') + ':':24}{_line(text) or '-'}")
    pretty = json.dumps(definition, indent=2, ensure_ascii=False)
    typer.echo("definition:\n" + "\n".join(map(_escaped, pretty.split("\n"))))


def _near(name: str, names: Iterable[str]) -> list[str]:
    """Give up to five names that hold a name or are spelt nearly so."""
    import difflib

    folded = {other.casefold(): other for other in names}
    holding = [key for key in folded if name.casefold() in key]
    close = difflib.get_close_matches(name.casefold(), folded, n=5, cutoff=0.5)
    return [folded[key] for key in dict.fromkeys([*holding, *close])][:5]


class _WarningLines(logging.Handler):
    """While it is entered, this package's warnings are lines, and no other library's log is shown."""

    def __enter__(self) -> None:
        logging.getLogger().addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("toolsearch_semantic") and record.levelno >= logging.WARNING:
            _say("warning", record.getMessage())


def _say(kind: str, text: str) -> None:
    typer.echo(f"{kind}: {_line(text)}", err=True)


def _records(hits: Iterable[SearchHit]) -> list[dict[str, Any]]:
    return [
        {
            "name": hit.tool.name,
            "namespace": hit.tool.namespace,
            "score": round(hit.score, DECIMALS),
            "source": hit.source,
            "cosine": hit.cosine,
            "lexical": hit.lexical,
            "words": list(hit.words),
            "description": hit.tool.description,
        }
        for hit in hits
    ]


def _why(hit: SearchHit) -> str:
    meaning = [] if hit.cosine is None else [f"cosine {hit.cosine:.2f}"]
    return "its name" if hit.score == 1.0 else "; ".join([*filter(None, [", ".join(hit.words)]), *meaning])


def _escaped(text: str) -> str:
    """Show what a terminal would obey or hide: control, bidirectional and invisible characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _line(text: str) -> str:
    return _escaped(" ".join(text.split()))


def _print_table(columns: Mapping[str, list[str]], *, last: tuple[str, list[str]] | None = None) -> None:
    """Print ranks beside columns; ``last`` gets what is left of the width, cut to fit, and no place in a narrow one."""
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    wanted = os.environ.get("COLUMNS", "")
    piped = max(_LEAST_WIDTH, int(wanted)) if wanted.isdecimal() else _PIPED_WIDTH
    console = Console(width=None if sys.stdout.isatty() else piped, markup=False, highlight=False, emoji=False)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    ranks = [str(rank + 1) for rank in range(max(map(len, columns.values())))]
    shown = {header: [_line(cell) for cell in cells] for header, cells in {"#": ranks, **columns}.items()}
    left = console.width
    for header, cells in shown.items():
        widest = max(map(cell_len, [header, *cells]))
        at_most = min(widest, 2 * console.width // 5 if header == "name" else console.width // 4)
        left -= at_most + _GAP
        table.add_column(header, overflow="fold", width=at_most)
    if last is not None and left >= _LEAST_DESCRIPTION:
        table.add_column(last[0], overflow="ellipsis", no_wrap=True, width=left)
        shown[last[0]] = [_line(cell[: 4 * console.width]) for cell in last[1]]
    for row in zip_longest(*shown.values(), fillvalue=""):
        table.add_row(*row)
    console.print(table)


def main() -> None:
    """Run the command with the process's arguments, and exit."""
    app(prog_name="toolsearch")


if __name__ == "__main__":
    main()
