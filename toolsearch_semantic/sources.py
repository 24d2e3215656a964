"""Tools from files: JSON or JSON Lines of any known shape, folders of them, and MCP configurations.

A document is a list of tools, a mapping of key → tool, one tool, or what an MCP server answers to ``tools/list``:
``{"tools": [...]}``, also inside a JSON-RPC response. In JSON Lines, each line is a tool or such an answer. A
configuration with ``mcpServers`` names servers, which ``collect_tools`` lists together with the files.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from toolsearch_semantic.errors import (
    CatalogueFileError,
    InvalidToolError,
    UnknownToolShapeError,
)
from toolsearch_semantic.formats.read import as_tool
from toolsearch_semantic.integrations.mcp import TIMEOUT, McpServer, list_tools_sync
from toolsearch_semantic.merging import SourcedTool, merge_tools
from toolsearch_semantic.tool import Tool

__all__ = [
    "STDIN",
    "ServerEntry",
    "SourceContents",
    "collect_tools",
    "read_file",
    "read_folder",
    "read_source",
]

STDIN = "-"
"""Names standard input in place of a file."""

_LINES_SUFFIXES = (".jsonl", ".ndjson")
_SUFFIXES = (".json", *_LINES_SUFFIXES)
_EXPECTED = (
    "Expected is JSON or JSON Lines in UTF-8: a list of tools, a mapping of key to tool, {'tools': [...]}, "
    "or an MCP configuration with 'mcpServers'."
)


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """An entry of ``mcpServers``: its key, its configuration as it was read, and where it stands."""

    key: str
    config: Any = field(repr=False)  # its environment may hold secrets
    place: str


@dataclass(frozen=True, slots=True)
class SourceContents:
    """What a file or a folder holds.

    Args:
        tools: In the order of the files, then in the order within each.
        servers: MCP servers that have tools, to be listed by whoever wants them.
        notes: What was left out: files of a folder that hold no tool, pages that are not in the file.
    """

    tools: tuple[SourcedTool, ...] = ()
    servers: tuple[ServerEntry, ...] = ()
    notes: tuple[str, ...] = ()


class _NoToolsError(CatalogueFileError):
    """The file can be read, and nothing in it is a tool."""


def read_source(source: str | Path) -> SourceContents:
    """Read a file, a folder, or standard input (``"-"``).

    Raises:
        CatalogueFileError: It gives no tools, or something in it cannot be read.
    """
    if not str(source).strip():
        raise CatalogueFileError(f"{source!r} is no path. Give a file, a folder, or {STDIN!r} for standard input.")
    return read_folder(source) if _is_folder(source) else read_file(source)


def read_folder(folder: str | Path) -> SourceContents:
    """Read every ``.json``, ``.jsonl`` and ``.ndjson`` file below a folder, in sorted order.

    A file that holds no tool at all is passed over; hidden files and folders are not looked at.

    Raises:
        CatalogueFileError: There is no tool in any file, or a file cannot be read, or not all of one.
    """
    contents: list[SourceContents] = []
    passed_over: list[Path] = []
    for path in _files_below(Path(folder)):
        try:
            contents.append(read_file(path))
        except _NoToolsError:
            passed_over.append(path)
    if not contents:
        patterns = ", ".join(f"*{suffix}" for suffix in _SUFFIXES)
        holds = f"none of its {len(passed_over)} such files holds one" if passed_over else "there is no such file"
        raise _NoToolsError(f"The folder {str(folder)!r} has no tools: looked for {patterns}, and {holds}. {_EXPECTED}")
    notes = [note for one in contents for note in one.notes]
    if passed_over:
        notes.append(f"passed over in {str(folder)!r}, without tools: {_some(str(path) for path in passed_over)}")
    return SourceContents(
        tools=tuple(tool for one in contents for tool in one.tools),
        servers=tuple(server for one in contents for server in one.servers),
        notes=tuple(notes),
    )


def read_file(path: str | Path) -> SourceContents:
    """Read one file, or standard input (``"-"``).

    Keys name the tools that declare no name, and are not kept otherwise.

    Raises:
        CatalogueFileError: It is missing, empty, cut short, not UTF-8 or not JSON; there is no tool in it; or one of
            its tools is of an unknown shape or has a bad field. The message says where.
    """
    named = "standard input" if path == STDIN else repr(str(path))
    text = _read_text(path, named)
    if not text.strip():
        raise _NoToolsError(f"{named} is empty. {_EXPECTED}")
    reader = _Reader(origin="stdin" if path == STDIN else Path(path).stem)
    for place, document in _documents(text, named, by_lines=str(path).lower().endswith(_LINES_SUFFIXES)):
        reader.read(document, place)
    return reader.contents(named)


def collect_tools(
    sources: Iterable[str | Path], servers: Iterable[McpServer] = (), *, timeout: float = TIMEOUT
) -> tuple[list[Tool], list[str]]:
    """Put the tools of files, folders and running MCP servers into one catalogue.

    Servers that a configuration names are started only where its file was named itself: looking through a folder
    must not run what lies in it.

    Args:
        sources: Files, folders, or ``"-"``.
        servers: More servers to be listed.
        timeout: Seconds for each server.

    Returns:
        The tools, named as by ``merge_tools``; and notes on what was left out.

    Raises:
        CatalogueFileError: A file or a server cannot be read, or there is no tool at all.
        ToolNameConflictError: Two different tools would have one name.
        MissingDependencyError: There is a server, and the extra ``mcp`` is not installed.
    """
    found: list[SourcedTool] = []
    notes: list[str] = []
    to_list: list[McpServer] = []
    for source in sources:
        contents = read_source(source)
        found += contents.tools
        notes += contents.notes
        if contents.servers and _is_folder(source):
            places = _some(server.place for server in contents.servers)
            notes.append(f"servers are started only from a file that is named itself, not from {places}")
        else:
            to_list += [McpServer.from_config(one.key, one.config, place=one.place) for one in contents.servers]
    to_list += servers
    for listed in list_tools_sync(to_list, timeout=timeout) if to_list else ():
        found += [SourcedTool(tool, listed.server.label, listed.namespace) for tool in listed.tools]
        if not listed.tools:
            notes.append(f"{listed.server.label} has no tools")
    if not found:
        raise CatalogueFileError("There are no tools in what was given. Give a file or an MCP server that has some.")
    tools = merge_tools(found)
    names = {tool.name for tool in tools}
    renamed = [one.tool.name for one in found if one.tool.name not in names]
    if renamed:
        notes.append(
            f"{len(renamed)} tools share their names with others, such as {renamed[0]!r}: each is called by its 'id', "
            "or by '<origin>__<name>'"
        )
    return tools, notes


def _is_folder(source: str | Path) -> bool:
    return source != STDIN and Path(source).is_dir()


def _some(texts: Iterable[str]) -> str:
    first, *others = texts
    return f"{first} and {len(others)} more" if others else first


class _Reader:
    """Collects what the documents of one file hold."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._tools: list[SourcedTool] = []
        self._servers: list[ServerEntry] = []
        self._notes: list[str] = []
        self._unknown: CatalogueFileError | None = None

    def read(self, document: object, place: str) -> None:
        """Read a document; the first thing of unknown shape is kept in mind, since others may be tools."""
        for where, key, obj in self._entries(document, place, ""):
            try:
                self._tools.append(SourcedTool(as_tool(obj, key=key), where, self._origin))
            except InvalidToolError as error:
                raise CatalogueFileError(f"{where}: {_continued(error)}") from error
            except UnknownToolShapeError as error:
                if _is_run_by_its_provider(obj):
                    self._notes.append(f"passed over: {where}, which its provider runs and nobody has to find")
                elif self._unknown is None:
                    self._unknown = _NoToolsError(f"{where}: {_continued(error)}")

    def contents(self, named: str) -> SourceContents:
        """Give what was read.

        Raises:
            CatalogueFileError: There is nothing, or something that is not a tool.
        """
        if not self._tools and not self._servers:
            raise self._unknown or _NoToolsError(f"{named} holds no tools. {_EXPECTED}")
        if self._unknown is not None:
            raise CatalogueFileError(str(self._unknown))  # no _NoToolsError: the others are tools
        return SourceContents(tuple(self._tools), tuple(self._servers), tuple(self._notes))

    def _entries(self, document: object, place: str, path: str) -> Iterator[tuple[str, str | None, object]]:
        """Give what should be tools, with its place and key; ``path`` leads from the place to the document."""
        if isinstance(document, list):
            yield from ((_at(place, f"{path}[{i}]"), None, one) for i, one in enumerate(document))
            return
        if not isinstance(document, Mapping):
            yield _at(place, path), None, document
            return
        inner, result, servers = (document.get(field) for field in ("tools", "result", "mcpServers"))
        if isinstance(servers, Mapping):
            self._servers.extend(
                ServerEntry(key, config, _at(place, f"mcpServers[{key!r}]")) for key, config in servers.items()
            )
        if isinstance(inner, list) or (isinstance(inner, Mapping) and not _is_one_tool(inner)):
            if document.get("nextCursor"):
                self._notes.append(f"{place} is one page of several (it has a 'nextCursor'); the next is not in it")
            yield from self._entries(inner, place, f"{path}tools")
        elif isinstance(result, Mapping) and "tools" in result:
            yield from self._entries(result, place, f"{path}result.")
        elif _is_one_tool(document):
            yield _at(place, path), None, document
        elif not isinstance(servers, Mapping):
            yield from ((_at(place, f"{path}[{key!r}]"), key, one) for key, one in document.items())


def _is_one_tool(document: Mapping[str, Any]) -> bool:
    # Strings and numbers are no tools, so such a mapping has the fields of one tool and not the keys of many.
    fields = any(isinstance(document.get(field), str) for field in ("name", "type", "description"))
    return fields or (bool(document) and not any(isinstance(value, Mapping) for value in document.values()))


def _is_run_by_its_provider(obj: object) -> bool:
    kind = obj.get("type") if isinstance(obj, Mapping) else None
    return isinstance(kind, str) and kind not in {"function", "object"} and "parameters" not in obj  # type: ignore[operator]


def _at(place: str, path: str) -> str:
    return f"{place}, {path}" if path else place


def _continued(error: Exception) -> str:
    message = str(error)
    return message[:1].lower() + message[1:]


def _files_below(folder: Path) -> list[Path]:
    def refuse(error: OSError) -> NoReturn:
        raise CatalogueFileError(
            f"The folder {str(error.filename or folder)!r} cannot be read: {error.strerror}. Check its permissions."
        ) from error

    files: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files.extend(
            Path(parent, name) for name in names if not name.startswith(".") and name.lower().endswith(_SUFFIXES)
        )
    return sorted(path for path in files if path.is_file())  # reading a pipe would wait for ever


def _read_text(path: str | Path, named: str) -> str:
    try:
        if path == STDIN and sys.stdin is None:
            raise CatalogueFileError("Standard input is closed. Give a file, or send the tools in.")
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except FileNotFoundError as error:
        raise CatalogueFileError(
            f"{named} is not there. Give the path of a file or a folder, or {STDIN!r} for standard input."
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CatalogueFileError(f"{named} cannot be read: {reason}. Give a file that can.") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        raise CatalogueFileError(
            f"{named}, line {line}: byte {error.start} (0x{data[error.start]:02x}) is not UTF-8"
            f"{'; it looks like UTF-16' if utf16 else ''}. Save the file as UTF-8."
        ) from error


def _documents(text: str, named: str, *, by_lines: bool) -> Iterator[tuple[str, object]]:
    """Parse a file that is one JSON document, or has one on each line."""
    try:
        whole = _parsed(text)
    except json.JSONDecodeError as error:
        # After a complete document, more follows: these are lines, whatever the file is called.
        if by_lines or error.msg == "Extra data":
            yield from _lines(text, named)
            return
        place = f"{named}, line {error.lineno}, column {error.colno}"
        raise CatalogueFileError(_syntax_message(place, error)) from error
    except (ValueError, RecursionError) as error:
        raise CatalogueFileError(f"{named} cannot be read: {_reason(error)}. {_EXPECTED}") from error
    yield named, whole


def _lines(text: str, named: str) -> Iterator[tuple[str, object]]:
    # Not splitlines(): a JSON string may hold other separators, such as U+2028, as they are.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{named}, line {number}"
        try:
            yield place, _parsed(line)
        except json.JSONDecodeError as error:
            raise CatalogueFileError(_syntax_message(f"{place}, column {error.pos + 1}", error)) from error
        except (ValueError, RecursionError) as error:
            raise CatalogueFileError(f"{place} cannot be read: {_reason(error)}. {_EXPECTED}") from error


def _parsed(text: str) -> object:
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _syntax_message(place: str, error: json.JSONDecodeError) -> str:
    cut_short = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")
    advice = "It ends there, so it was cut short: write or copy it again." if cut_short else _EXPECTED
    return f"{place}: this is not JSON: {error.msg}. {advice}"
