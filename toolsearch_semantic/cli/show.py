"""What the commands print: lines, tables and records. Text that comes from tools is never interpreted."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import typer

from toolsearch_semantic.hits import SearchHit

__all__ = ["WarningLines", "escaped", "one_line", "print_table", "records", "say", "why"]

_PIPED_WIDTH, _LEAST_WIDTH, _MOST_WIDTH, _LEAST_DESCRIPTION, _GAP = 100, 40, 1_000, 16, 3


class WarningLines(logging.Handler):
    """While it is entered, this package's warnings are lines, and no other library's log is shown."""

    def __enter__(self) -> None:
        logging.getLogger().addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning of this package as a line."""
        if record.name.startswith("toolsearch_semantic") and record.levelno >= logging.WARNING:
            say("warning", record.getMessage())


def say(kind: str, text: str) -> None:
    """Print a line on standard error, such as ``error: …``."""
    typer.echo(f"{kind}: {one_line(text)}", err=True)


def records(hits: Iterable[SearchHit]) -> list[dict[str, Any]]:
    """Give hits as they are printed with ``--json``; this form is stable."""
    return [
        {
            "name": hit.tool.name,
            "namespace": hit.tool.namespace,
            "score": round(hit.score, 6),
            "source": hit.source,
            "cosine": hit.cosine,
            "lexical": hit.lexical,
            "words": list(hit.words),
            "description": hit.tool.description,
        }
        for hit in hits
    ]


def why(hit: SearchHit) -> str:
    """Say what a hit was found by."""
    meaning = [] if hit.cosine is None else [f"cosine {hit.cosine:.2f}"]
    return "its name" if hit.by_name else "; ".join([*filter(None, [", ".join(hit.words)]), *meaning])


def escaped(text: str) -> str:
    """Show what a terminal would obey or hide: control, bidirectional and invisible characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def one_line(text: str) -> str:
    """Put a text on one line, with what does not print escaped."""
    return escaped(" ".join(text.split()))


def print_table(columns: Mapping[str, list[str]], *, last: tuple[str, list[str]] | None = None) -> None:
    """Print columns beside ranks, and ``last`` cut to fit what is left; what has no room is left out."""
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    wanted = os.environ.get("COLUMNS", "")
    sensible = wanted.isdecimal() and len(wanted) <= len(str(_MOST_WIDTH))
    piped = min(max(_LEAST_WIDTH, int(wanted)), _MOST_WIDTH) if sensible else _PIPED_WIDTH
    console = Console(width=None if sys.stdout.isatty() else piped, markup=False, highlight=False, emoji=False)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    ranks = [str(rank + 1) for rank in range(max(map(len, columns.values())))]
    left, share = console.width, console.width // 4 if last else (console.width - 1) // len(columns) - _GAP
    kept: list[list[str]] = []
    for header, cells in {"#": ranks, **columns}.items():
        if left >= len(header):
            kept.append([one_line(cell) for cell in cells])
            at_most = 2 * console.width // 5 if header == "name" else share
            width = min(max(map(cell_len, [header, *kept[-1]])), at_most, left)
            left -= width + _GAP
            table.add_column(header, overflow="fold", width=width)
    if last is not None and left >= _LEAST_DESCRIPTION:
        table.add_column(last[0], overflow="ellipsis", no_wrap=True, width=left)
        kept.append([one_line(cell[: 4 * console.width]) for cell in last[1]])
    for row in zip_longest(*kept, fillvalue=""):
        table.add_row(*row)
    console.print(table)
