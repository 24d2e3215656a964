"""Tools of running MCP servers, listed through the official SDK (extra ``mcp``).

::

    [git] = await list_tools([McpServer.from_command("uvx mcp-server-git")])
    git.namespace, git.tools

A server that is started here gets the few environment variables that the SDK passes on (``PATH``, ``HOME``, …) and
those of its configuration; it is stopped again before the call returns.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from toolsearch_semantic.errors import CatalogueFileError, InvalidOptionError, MissingDependencyError, ToolSearchError
from toolsearch_semantic.formats.read import as_tool
from toolsearch_semantic.tool import Tool

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams

__all__ = ["TIMEOUT", "McpServer", "ServerTools", "list_tools", "list_tools_sync"]

TIMEOUT = 30.0
"""Seconds that a server has to start and to list its tools."""

_TRANSPORTS: Mapping[str, Literal["stdio", "http", "sse"]] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
_STDERR_LINES = 3
_STDERR_BYTES = 4096
_LONGEST_DETAIL = 400
_SHORTEST_SECRET = 6
_SECRET_FLAG = re.compile(r"^-.*(key|token|secret|password|auth|credential)", re.IGNORECASE)
_MOST_PAGES = 10_000


@dataclass(frozen=True, slots=True)
class McpServer:
    """How to reach one MCP server; make it with ``from_command``, ``from_url`` or ``from_config``.

    Args:
        label: Names it in messages.
        key: Its key in a configuration; the namespace of its tools, where there is one.
        transport: ``"stdio"`` starts a command; ``"http"`` (Streamable HTTP) and ``"sse"`` connect to a URL.
        command: The program and its arguments.
        env: Environment variables for the program, beside those that the SDK passes on.
        cwd: The program's working directory.
        url: Where an HTTP server answers.
        headers: HTTP headers for each request.
    """

    label: str
    key: str | None = None
    transport: Literal["stdio", "http", "sse"] = "stdio"
    # Arguments, variables, URLs and headers may hold secrets.
    command: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_command(cls, line: str) -> McpServer:
        """Read a command line, split as a shell does; ``env NAME=value command`` passes a variable on.

        Raises:
            CatalogueFileError: It is empty, or a quotation is not closed.
        """
        try:
            command = tuple(shlex.split(line, posix=os.name != "nt"))
        except ValueError as error:
            raise CatalogueFileError(
                f"The MCP server's command cannot be split: {error}. Quote it as for a shell."
            ) from error
        if not command:
            raise CatalogueFileError(f"The MCP server's command {line!r} is empty. Give a program and its arguments.")
        return cls(label=f"MCP server {_program(command)!r}", command=command)

    @classmethod
    def from_url(cls, url: str) -> McpServer:
        """Read the URL of a Streamable HTTP endpoint.

        Raises:
            CatalogueFileError: It is not an http or https URL.
        """
        return cls(label=f"MCP server {_checked_url(url, 'The MCP server')!r}", transport="http", url=url)

    @classmethod
    def from_config(cls, key: str, config: object, *, place: str | None = None) -> McpServer:
        """Read an entry of ``mcpServers``: ``command``, ``args``, ``env`` and ``cwd``, or ``url`` and ``headers``.

        Args:
            key: Its key.
            config: Its value; fields that are not known are ignored.
            place: Where it stands, for messages.

        Raises:
            CatalogueFileError: A field is missing or of a wrong type. Values are not shown.
        """
        label = f"MCP server {key!r}"
        entry = _Entry(label if place is None else f"{label} ({place})", config)
        url, command = entry.text("url") or entry.text("serverUrl"), entry.text("command")
        declared = (entry.text("type") or entry.text("transport") or ("stdio" if command else "http")).lower()
        transport = _TRANSPORTS.get(declared)
        if transport is None:
            raise entry.error(f"its type must be one of {', '.join(map(repr, _TRANSPORTS))}, not {declared!r}")
        if (transport == "stdio" and not command) or (transport != "stdio" and not url) or (url and command):
            raise entry.error("it must have a 'command' (for stdio) or a 'url' (for http and sse), and not both")
        if transport != "stdio":
            address = url or ""
            _checked_url(address, entry.place)
            return cls(label, key, transport, url=address, headers=entry.texts_by_key("headers"))
        arguments = (command or "", *entry.texts("args"))
        return cls(label, key, transport, arguments, entry.texts_by_key("env"), entry.text("cwd"))


@dataclass(frozen=True, slots=True)
class ServerTools:
    """What a server listed: its tools, in its order, with ``namespace`` as theirs."""

    server: McpServer
    namespace: str
    tools: tuple[Tool, ...]


async def list_tools(servers: Sequence[McpServer], *, timeout: float = TIMEOUT) -> list[ServerTools]:
    """List the tools of several servers, all at once; the answers are in the order of the servers.

    The namespace is the server's key, else the name that it declares of itself. The tools have no executor.

    Args:
        servers: The servers; each is started or connected to, and left again.
        timeout: Seconds for each server.

    Raises:
        CatalogueFileError: Servers cannot be started or reached, end, answer with an error or not in time; all of
            them are named. What their environment and headers hold is not shown.
        MissingDependencyError: The extra is not installed.
        InvalidOptionError: The timeout is not a positive number.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise InvalidOptionError(f"timeout must be a positive number of seconds, not {timeout!r}.")
    try:
        import anyio
        import mcp  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("mcp", "mcp", "Listing the tools of an MCP server") from error
    answers: dict[int, ServerTools] = {}
    failures: dict[int, CatalogueFileError] = {}

    async def ask(number: int, server: McpServer) -> None:
        try:
            answers[number] = await _ask(server, timeout)
        except CatalogueFileError as error:
            failures[number] = error

    async with anyio.create_task_group() as group:
        for number, server in enumerate(servers):
            group.start_soon(ask, number, server)
    if failures:
        told = [failures[number] for number in sorted(failures)]
        raise CatalogueFileError(" ".join(map(str, told))) from told[0]
    return [answers[number] for number in sorted(answers)]


def list_tools_sync(servers: Sequence[McpServer], *, timeout: float = TIMEOUT) -> list[ServerTools]:
    """List the tools of several servers where no event loop runs; see ``list_tools``."""
    import asyncio

    return asyncio.run(list_tools(servers, timeout=timeout))


async def _ask(server: McpServer, timeout: float) -> ServerTools:
    import anyio

    with tempfile.TemporaryFile("w+", encoding="utf-8") as stderr:
        try:
            with anyio.fail_after(timeout):
                return await _listed(server, stderr)
        except TimeoutError as error:
            raise CatalogueFileError(
                f"{server.label} did not list its tools within {timeout:g} seconds"
                f"{_said(stderr, server)}. Check that it is an MCP server, or give it more time."
            ) from error
        except Exception as error:
            cause = _cause(error)
            if isinstance(cause, CatalogueFileError):
                raise cause from error
            raise CatalogueFileError(
                f"{server.label} {_explained(cause, server)}{_said(stderr, server)}. {_advice(server)}"
            ) from cause


async def _listed(server: McpServer, stderr: IO[str]) -> ServerTools:
    from mcp import Client

    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(_transport(server, stderr)))
        declared = client.server_info.name.strip() if client.server_info is not None else ""
        namespace = server.key or declared or server.label
        tools: list[Tool] = []
        async for listed in _pages(client, server):
            try:
                tools.append(replace(as_tool(listed), namespace=namespace))
            except ToolSearchError as error:
                raise CatalogueFileError(f"{server.label}, tool {len(tools)}: {error}") from error
        return ServerTools(server, namespace, tuple(tools))


async def _pages(client: Client, server: McpServer) -> AsyncIterator[Any]:
    if client.server_capabilities.tools is None:
        return  # it has resources or prompts only
    seen: set[str] = set()
    cursor: str | None = None
    while len(seen) < _MOST_PAGES:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            yield tool
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in seen:
            break
        seen.add(cursor)
    raise CatalogueFileError(f"{server.label} gives pages of tools without end. Tell its authors.")


@asynccontextmanager
async def _transport(server: McpServer, stderr: IO[str]) -> AsyncIterator[TransportStreams]:
    if server.transport == "stdio":
        from mcp.client.stdio import StdioServerParameters, stdio_client

        if server.cwd is not None and not os.path.isdir(server.cwd):
            raise CatalogueFileError(f"{server.label} has the working directory {server.cwd!r}, which is not there.")
        program, *arguments = server.command
        parameters = StdioServerParameters(command=program, args=arguments, env=dict(server.env), cwd=server.cwd)
        async with stdio_client(parameters, errlog=stderr) as streams:  # type: ignore[arg-type]
            yield streams
    elif server.transport == "sse":
        from mcp.client.sse import sse_client

        async with sse_client(server.url, headers=dict(server.headers)) as streams:
            yield streams
    else:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        # The time is bounded as a whole, not for each read.
        async with (
            httpx2.AsyncClient(headers=dict(server.headers), timeout=None) as http,
            streamable_http_client(server.url, http_client=http) as streams,
        ):
            yield streams


def _cause(error: BaseException) -> BaseException:
    """Give the first error of what the SDK's task groups wrapped."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _explained(error: BaseException, server: McpServer) -> str:
    import httpx2
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED
    from pydantic import ValidationError

    if isinstance(error, OSError) and server.transport == "stdio":
        missing = f"there is no command {server.command[0]!r}" if isinstance(error, FileNotFoundError) else None
        return f"cannot be started: {missing or error.strerror or error}"
    if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
        return "ended before it had listed its tools"
    if isinstance(error, ValidationError):
        return "answered with something that is not a list of MCP tools"
    refused = isinstance(error, httpx2.ConnectError)
    what = "answered with an error" if isinstance(error, MCPError | httpx2.HTTPError) else "failed"
    return f"{'cannot be reached' if refused else what}: {_told(error, server)}"


def _advice(server: McpServer) -> str:
    if server.transport == "stdio":
        return "Run its command by hand to see more."
    return "Check its address, and the headers that it needs."


def _told(error: BaseException, server: McpServer) -> str:
    return _redacted(f"{error}".strip().rstrip(".") or type(error).__name__, server)


def _said(stderr: IO[str], server: McpServer) -> str:
    """Quote the end of what a server wrote to its standard error."""
    if server.transport != "stdio":
        return ""
    size = stderr.seek(0, os.SEEK_END)
    stderr.buffer.seek(max(0, size - _STDERR_BYTES))  # type: ignore[attr-defined]
    tail: bytes = stderr.buffer.read()  # type: ignore[attr-defined]
    lines = [line.strip() for line in tail.decode("utf-8", "replace").splitlines() if line.strip()]
    said = _redacted(" / ".join(lines[-_STDERR_LINES:]).rstrip("."), server)
    return f"; it said: {said}" if said else ""


def _redacted(text: str, server: McpServer) -> str:
    """Cut a text short and take out of it what a server's configuration may keep secret."""
    address = urlsplit(server.url)
    secrets = [*server.env.values(), *server.headers.values(), address.query, address.password or ""]
    secrets += [word for value in server.headers.values() for word in value.split()]
    secrets += _secret_arguments(server.command)
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return _cut(" ".join(text.split()), _LONGEST_DETAIL)


def _program(command: Sequence[str]) -> str:
    """Name a command by its program and first plain argument: the others may be secrets."""
    words = [word for word in command if "=" not in word]
    words = words[1:] if words[:1] == ["env"] and len(words) > 1 else words
    shown = [word for word in words[:2] if not word.startswith("-")]
    return _cut(" ".join(shown) + (" …" if len(shown) < len(command) else ""), 80)


def _secret_arguments(command: Sequence[str]) -> list[str]:
    """Find what a command line may keep secret: values of NAME=value, and what follows a flag like ``--token``."""
    values = [word.partition("=")[2] for word in command if "=" in word]
    return values + [after for flag, after in pairwise(command) if _SECRET_FLAG.search(flag)]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _checked_url(url: str, place: str) -> str:
    """Give a URL as it may be shown: without what authenticates.

    Raises:
        CatalogueFileError: It is not an http or https URL.
    """
    try:
        address = urlsplit(url)
        shown = address._replace(netloc=address.netloc.rpartition("@")[2], query="", fragment="").geturl()
        valid = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise CatalogueFileError(f"{place} has no http or https URL. Give one such as 'http://127.0.0.1:8000/mcp'.")
    return shown


class _Entry:
    """The fields of one entry of a configuration, checked, whose values are not shown."""

    def __init__(self, place: str, config: object) -> None:
        self.place = place
        if not isinstance(config, Mapping):
            raise self.error(f"it must be an object, not {type(config).__name__}")
        self._config = config

    def error(self, problem: str) -> CatalogueFileError:
        return CatalogueFileError(f"{self.place} is not configured rightly: {problem}.")

    def text(self, name: str) -> str | None:
        value = self._config.get(name)
        if value is not None and not isinstance(value, str):
            raise self.error(f"{name!r} must be a string, not {type(value).__name__}")
        return value or None

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._config.get(name) or []
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.error(f"{name!r} must be a list of strings")
        return tuple(value)

    def texts_by_key(self, name: str) -> dict[str, str]:
        value = self._config.get(name) or {}
        if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
            raise self.error(f"{name!r} must be an object whose values are strings")
        return dict(value)
