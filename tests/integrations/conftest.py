from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Lists five tools on pages of two. Over HTTP it asks for a header, where one is given.
SERVER = """
import asyncio, sys
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

NAMES = ["alpha", "beta", "gamma", "delta", "epsilon"]


async def list_tools(context, params):
    start = int(params.cursor) if params is not None and params.cursor else 0
    tools = [
        types.Tool(name=name, description=f"Does {name}.", input_schema={"type": "object", "properties": {name: {}}})
        for name in NAMES[start : start + 2]
    ]
    more = str(start + 2) if start + 2 < len(NAMES) else None
    return types.ListToolsResult(tools=tools, next_cursor=more)


server = Server("paged-server", on_list_tools=list_tools)


async def over_stdio():
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def over_http(port, token):
    import uvicorn

    app = server.streamable_http_app()

    async def guarded(scope, receive, send):
        if scope["type"] == "http" and token and (b"authorization", token.encode()) not in scope["headers"]:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
        else:
            await app(scope, receive, send)

    uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="error")


if len(sys.argv) > 1:
    over_http(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
else:
    asyncio.run(over_stdio())
"""

SSE_SERVER = """
import sys
from mcp.server import MCPServer

server = MCPServer("sse-server")


@server.tool()
def greet(name: str) -> str:
    "Say hello."
    return name


server.run("sse", host="127.0.0.1", port=int(sys.argv[1]))
"""


@pytest.fixture(scope="session")
def server_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("server") / "server.py"
    path.write_text(SERVER)
    return path


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Start a server's code on a free port of the loopback, and wait until it answers there."""
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str, *arguments: str) -> int:
        path = tmp_path / f"server{len(started)}.py"
        path.write_text(code)
        port = free_port()
        started.append(subprocess.Popen([sys.executable, str(path), str(port), *arguments]))
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return port
        raise AssertionError("the server did not start")

    yield start
    for process in started:
        process.terminate()
        process.wait(timeout=10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
