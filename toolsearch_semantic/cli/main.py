"""The commands: search, compare, index and inspect the tools of files and MCP servers.

Errors are one line on standard error, with exit status 2. Text that comes from tools is never interpreted: markup
stays as it is, and what does not print is shown escaped.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from toolsearch_semantic.cli.app import app
from toolsearch_semantic.cli.chat import chat
from toolsearch_semantic.cli.options import Ranking, Sources, command
from toolsearch_semantic.cli.show import escaped, one_line, print_table, records, why
from toolsearch_semantic.encoders.cache import MemoryVectorCache
from toolsearch_semantic.errors import ToolNotFoundError
from toolsearch_semantic.formats.record import to_record
from toolsearch_semantic.indexes.lexical import term_weights
from toolsearch_semantic.near import near_names
from toolsearch_semantic.saved import check_target
from toolsearch_semantic.search import ToolSearch
from toolsearch_semantic.text import TEXT_VERSION, searchable_text, text_fields
from toolsearch_semantic.tuning import read_labelled
from toolsearch_semantic.tuning import tune as fit_tuning

__all__ = ["app", "chat", "main"]

_Query = Annotated[list[str], typer.Argument(metavar="QUERY", help="What is needed, in words.")]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")]
_Out = Annotated[Path, typer.Option(metavar="DIR", help="A new or empty folder, or an index to replace.")]
_TuningOut = Annotated[Path, typer.Option(metavar="FILE", help="Where the tuning is written.")]
_Queries = Annotated[Path, typer.Option(metavar="FILE", help="Labelled requests, a JSON object a line.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON alone.")]
_FIGURES = {"ndcg": "nDCG@10", "recall": "recall@5", "calibration_error": "calibration error"}


@app.callback(invoke_without_command=True)
def _toolsearch(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    """Find the right tool of many, by what a request means. Offline.

    To see it work, without any file:  toolsearch demo "give the customer their money back"
    """
    if version:
        from importlib import metadata

        try:
            typer.echo(f"toolsearch {metadata.version('toolsearch-semantic')}")
        except metadata.PackageNotFoundError:
            typer.echo("toolsearch (not installed)")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@command(app, "demo")
def search(query: _Query, sources: Sources, ranking: Ranking, as_json: _Json = False) -> None:
    """Find tools in files, in MCP servers, or in a saved index.

    toolsearch search publish a package release --tools tools.jsonl

    toolsearch search "what time is it in Tokyo" --mcp "uvx mcp-server-time" --top-k 3
    """
    _search(query, sources.required('To try it without any: toolsearch demo "book a table for two"'), ranking, as_json)


@command(app)
def demo(query: _Query, ranking: Ranking, as_json: _Json = False) -> None:
    """Find tools in the built-in demo catalogue, the services of a made-up company.

    toolsearch demo "give the customer their money back"
    """
    _search(query, Sources(demo=True), ranking, as_json)


def _search(words: list[str], sources: Sources, ranking: Ranking, as_json: bool) -> None:
    query, catalogue = " ".join(words), ranking.searchable(sources)
    hits = ranking.hits(catalogue, query)
    if as_json:
        modes = {"mode": catalogue.mode, "active_mode": hits[0].source if hits else catalogue.active_mode}
        typer.echo(json.dumps({"query": query, **modes, "hits": records(hits)}, indent=2))
    elif hits:
        columns = {"score": [f"{hit.score:.2f}" for hit in hits], "name": [hit.tool.name for hit in hits]}
        if any(hit.tool.namespace for hit in hits):
            columns["namespace"] = [hit.tool.namespace or "" for hit in hits]
        columns["why"] = [why(hit) for hit in hits]
        print_table(columns, last=("description", [hit.tool.description for hit in hits]))
        typer.echo(f"{len(hits)} of {len(catalogue)} tools, by {hits[0].source} search.")
    else:
        typer.echo(ranking.nothing_found(query, len(catalogue)))


@command(app, "mode")
def compare(query: _Query, sources: Sources, ranking: Ranking, as_json: _Json = False) -> None:
    """Put semantic, lexical and hybrid ranking side by side.

    toolsearch compare "give the customer their money back" --demo
    """
    text, cache = " ".join(query), MemoryVectorCache()
    tools = sources.required("To try it without any, give --demo.").read()
    # Where the encoder cannot be loaded, hybrid falls back and says so, and semantic would do the same.
    fallback, tuning = ranking.model is None, ranking.tuning
    hybrid = semantic = ToolSearch(tools, encoder=ranking.model, fallback=fallback, cache=cache, tuning=tuning)
    if hybrid.encoder is not None:
        semantic = ToolSearch(tools, mode="semantic", encoder=hybrid.encoder, cache=cache, tuning=tuning)
    lexical = ToolSearch(tools, mode="lexical", tuning=tuning)
    catalogues = {"semantic": semantic, "lexical": lexical, "hybrid": hybrid}
    rankings = {mode: ranking.hits(catalogue, text) for mode, catalogue in catalogues.items()}
    if as_json:
        typer.echo(json.dumps({"query": text, **{mode: records(hits) for mode, hits in rankings.items()}}, indent=2))
    elif any(rankings.values()):
        headers = [mode if mode == one.active_mode else f"{mode} (fell back)" for mode, one in catalogues.items()]
        cells = ([f"{hit.score:.2f} {hit.tool.name}" for hit in hits] for hits in rankings.values())
        print_table(dict(zip(headers, cells, strict=True)))
    else:
        typer.echo(ranking.nothing_found(text, len(tools)))


@command(app, "index", "demo", "top_k", "min_score", "tuning")
def index(out: _Out, sources: Sources, ranking: Ranking) -> None:
    """Build an index once, and save it for 'toolsearch search --index DIR'.

    toolsearch index --tools tools.jsonl --out my-index
    """
    from rich.console import Console
    from rich.progress import Progress

    started = time.perf_counter()
    check_target(out)
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
    typer.echo(f"{len(built)} tools, {built.mode} index, {kilobytes:,.0f} kB, {seconds:.1f} s: {one_line(str(out))}")


@command(app, "mode", "top_k", "min_score", "tuning")
def tune(out: _TuningOut, queries: _Queries, sources: Sources, ranking: Ranking, as_json: _Json = False) -> None:
    """Fit scores to labelled requests, and report by cross-validation what that is worth.

    Each line of the requests is {"query": "what is asked", "relevant": ["name of a right tool"]}; at least 20.

    toolsearch tune --tools tools.jsonl --queries requests.jsonl --out tuning.json
    """
    tools = sources.required("Requests are tuned to the catalogue that they are asked of.").read()
    requests = read_labelled(queries)
    report = fit_tuning(tools, requests, encoder=ranking.model)
    report.tuning.save(out)
    if as_json:
        typer.echo(json.dumps(asdict(report), indent=2))
        return
    rows = report.modes.values()
    columns = {"mode": list(report.modes)}
    for figure in ("ndcg", "recall", "calibration_error"):
        pairs = [(getattr(row.before, figure), getattr(row.after, figure)) for row in rows]
        columns[_FIGURES[figure]] = [f"{before:.3f} > {after:.3f}" for before, after in pairs]
    columns["taken"] = ["yes" if row.taken else "no, it is no better" for row in rows]
    print_table(columns)
    used = report.tuning.requests
    left = f" {len(requests) - used} without text or a right tool took no part." if used < len(requests) else ""
    typer.echo(f"By five-fold cross-validation over {used} requests.{left} Wrote {one_line(str(out))}")


@command(app)
def inspect(name: _Name, sources: Sources, as_json: _Json = False) -> None:
    """Show what is indexed of one tool; without a source, of the demo catalogue.

    toolsearch inspect git_diff --mcp "uvx mcp-server-git"
    """
    tools = {tool.name: tool for tool in sources.read()}
    if name not in tools:
        near = ", ".join(map(repr, near_names(name, tools, limit=5)))
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
        typer.echo(f"{field.replace('_', ' ') + ':':24}{one_line(text) or '-'}")
    lines = json.dumps(definition, indent=2, ensure_ascii=False).split("\n")
    typer.echo("\n".join(["definition:", *map(escaped, lines)]))


def main() -> None:
    """Run the command with the process's arguments, and exit."""
    app(prog_name="toolsearch")
