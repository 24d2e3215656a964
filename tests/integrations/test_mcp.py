from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.conftest import SERVER, SSE_SERVER, free_port
from toolsearch_semantic.errors import CatalogueFileError, InvalidOptionError, MissingDependencyError
from toolsearch_semantic.integrations.mcp import McpServer, ServerTools, list_tools, list_tools_sync

NAMES = ["alpha", "beta", "gamma", "delta", "epsilon"]

Serve = Callable[..., int]


def python(*arguments: str) -> McpServer:
    return McpServer.from_config("py", {"command": sys.executable, "args": list(arguments)})


def failure_of(*servers: McpServer, timeout: float = 30.0) -> str:
    with pytest.raises(CatalogueFileError) as caught:
        list_tools_sync(servers, timeout=timeout)
    return str(caught.value)


def names(listed: ServerTools) -> list[str]:
    return [tool.name for tool in listed.tools]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_all_pages_of_a_server_are_listed_over_stdio(server_file: Path) -> None:
    [listed] = list_tools_sync([McpServer.from_command(f"'{sys.executable}' '{server_file}'")])

    assert names(listed) == NAMES
    assert listed.tools[1].description == "Does beta."
    assert listed.tools[1].input_schema == {"type": "object", "properties": {"beta": {}}}
    assert listed.tools[1].execute is None


def test_the_namespace_is_what_the_server_calls_itself(server_file: Path) -> None:
    [listed] = list_tools_sync([McpServer.from_command(f"'{sys.executable}' '{server_file}'")])

    assert listed.namespace == "paged-server"
    assert {tool.namespace for tool in listed.tools} == {"paged-server"}


def test_the_key_of_a_configuration_is_the_namespace(server_file: Path) -> None:
    [listed] = list_tools_sync([python(str(server_file))])

    assert listed.namespace == "py"
    assert {tool.namespace for tool in listed.tools} == {"py"}


def test_all_pages_are_listed_over_streamable_http(serve: Serve) -> None:
    port = serve(SERVER)

    [listed] = list_tools_sync([McpServer.from_url(f"http://127.0.0.1:{port}/mcp")])

    assert (listed.namespace, names(listed)) == ("paged-server", NAMES)


def test_headers_are_sent_and_not_told(serve: Serve) -> None:
    port = serve(SERVER, "Bearer tok-123456")
    url = f"http://127.0.0.1:{port}/mcp?key=query-secret"

    def configured(token: str) -> McpServer:
        return McpServer.from_config("web", {"url": url, "headers": {"Authorization": f"Bearer {token}"}})

    assert names(list_tools_sync([configured("tok-123456")])[0]) == NAMES
    message = failure_of(configured("wrong-secret"))
    assert message.startswith("MCP server 'web' answered with an error: ")
    assert "secret" not in message


def test_the_older_transport_sse_is_spoken_where_the_type_says_so(serve: Serve) -> None:
    port = serve(SSE_SERVER)

    [listed] = list_tools_sync([McpServer.from_config("old", {"type": "sse", "url": f"http://127.0.0.1:{port}/sse"})])

    assert (listed.namespace, names(listed)) == ("old", ["greet"])


def test_several_servers_are_listed_at_once_and_in_their_order(server_file: Path) -> None:
    slow = "import time, runpy, sys; time.sleep(0.7); runpy.run_path(sys.argv.pop(), run_name='__main__')"
    servers = [
        python("-c", slow, str(server_file)),
        *[python(str(server_file))] * 2,
        python("-c", slow, str(server_file)),
    ]

    listed = asyncio.run(list_tools(servers))

    assert [one.server for one in listed] == servers
    assert [names(one) for one in listed] == [NAMES] * 4


def test_no_servers_have_no_tools() -> None:
    assert list_tools_sync([]) == []


def test_a_command_line_keeps_its_secrets() -> None:
    line = "env API_KEY=supersecretvalue bash -c 'echo key $API_KEY, $1 >&2; exit 3' --token hunter2hunter2"
    server = McpServer.from_command(line)
    assert server.label == "MCP server 'bash …'"
    message = failure_of(server)
    assert "supersecretvalue" not in message
    assert "hunter2hunter2" not in message
    assert "key ***" in message


def test_a_command_that_is_not_there_is_named() -> None:
    assert failure_of(McpServer.from_command("no-such-server --flag")) == (
        "MCP server 'no-such-server …' cannot be started: there is no command 'no-such-server'. "
        "Run its command by hand to see more."
    )


def test_a_file_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "server").write_text("not executable")

    assert "cannot be started: Permission denied" in failure_of(McpServer.from_command(str(tmp_path / "server")))


def test_a_missing_working_directory_is_named() -> None:
    server = McpServer.from_config("x", {"command": sys.executable, "cwd": "/no/such"})

    assert failure_of(server) == "MCP server 'x' has the working directory '/no/such', which is not there."


def test_a_server_that_dies_is_quoted() -> None:
    message = failure_of(python("-c", "import sys; sys.exit('the key of the database is missing')"))

    assert message == (
        "MCP server 'py' ended before it had listed its tools; it said: the key of the database is missing. "
        "Run its command by hand to see more."
    )


def test_the_values_of_the_environment_are_not_quoted() -> None:
    code = "import os, sys; sys.exit('bad key ' + os.environ['KEY'])"
    server = McpServer.from_config("x", {"command": sys.executable, "args": ["-c", code], "env": {"KEY": "s3cr3t-key"}})

    message = failure_of(server)

    assert "it said: bad key ***." in message
    assert "s3cr3t" not in message + repr(server)


def test_the_environment_of_this_process_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVATE_TOKEN", "s3cr3t-key")

    message = failure_of(python("-c", "import os, sys; sys.exit(str('PRIVATE_TOKEN' in os.environ))"))

    assert "it said: False." in message


def test_a_server_that_does_not_answer_is_stopped_at_its_time(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(120)"
    started = time.monotonic()

    message = failure_of(python("-c", code, str(note)), timeout=1)

    assert message == (
        "MCP server 'py' did not list its tools within 1 seconds. Check that it is an MCP server, or give it more time."
    )
    assert time.monotonic() - started < 20
    assert not is_running(int(note.read_text()))


def test_a_server_that_ignores_its_end_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(120)"
    )

    failure_of(python("-c", code, str(note)), timeout=1)

    assert not is_running(int(note.read_text()))


def test_a_program_that_speaks_something_else_is_an_error() -> None:
    assert "MCP server 'py' ended before it had listed its tools" in failure_of(python("-c", "print('hello')"))


def test_a_refused_connection_is_named_without_what_authenticates() -> None:
    port = free_port()

    message = failure_of(McpServer.from_url(f"http://user:pass-word@127.0.0.1:{port}/mcp?token=abcdefgh"))

    assert message.startswith(f"MCP server 'http://127.0.0.1:{port}/mcp' cannot be reached: ")
    assert message.endswith("Check its address, and the headers that it needs.")
    assert "pass-word" not in message
    assert "abcdefgh" not in message


def test_all_servers_that_fail_are_named(server_file: Path) -> None:
    message = failure_of(
        McpServer.from_command("no-such-one"), python(str(server_file)), McpServer.from_command("no-such-two")
    )

    assert message.count("cannot be started") == 2
    assert message.index("no-such-one") < message.index("no-such-two")


def test_pages_without_end_are_an_error(tmp_path: Path, server_file: Path) -> None:
    endless = tmp_path / "endless.py"
    endless.write_text(
        server_file.read_text().replace("more = str(start + 2) if start + 2 < len(NAMES) else None", "more = '1'")
    )

    assert failure_of(python(str(endless))) == "MCP server 'py' gives pages of tools without end. Tell its authors."


def test_a_server_without_tools_lists_none(tmp_path: Path, server_file: Path) -> None:
    bare = tmp_path / "bare.py"
    bare.write_text(server_file.read_text().replace(", on_list_tools=list_tools", ""))

    [listed] = list_tools_sync([python(str(bare))])

    assert listed.tools == ()


@pytest.mark.parametrize(
    ("line", "complaint"), [("", "is empty"), ("  ", "is empty"), ("run 'it", "cannot be split: No closing quotation")]
)
def test_a_command_line_that_is_none_is_an_error(line: str, complaint: str) -> None:
    with pytest.raises(CatalogueFileError, match=complaint):
        McpServer.from_command(line)


@pytest.mark.parametrize("url", ["", "localhost:8000/mcp", "ftp://x/mcp", "http://", "http://[::1", "http://x:port/"])
def test_a_url_that_is_none_is_an_error(url: str) -> None:
    with pytest.raises(CatalogueFileError, match="no http or https URL"):
        McpServer.from_url(url)


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        (["x"], "it must be an object, not list"),
        ({}, "it must have a 'command' (for stdio) or a 'url' (for http and sse), and not both"),
        ({"command": "x", "url": "http://x/"}, "and not both"),
        ({"type": "sse", "command": "x"}, "it must have a 'command'"),
        ({"type": "carrier-pigeon", "command": "x"}, "its type must be one of 'stdio', 'http'"),
        ({"command": 5}, "'command' must be a string, not int"),
        ({"command": "x", "args": "--flag"}, "'args' must be a list of strings"),
        ({"command": "x", "args": ["--port", 80]}, "'args' must be a list of strings"),
        ({"command": "x", "env": {"TOKEN": 12345678}}, "'env' must be an object whose values are strings"),
        ({"url": "http://x/", "headers": ["a"]}, "'headers' must be an object whose values are strings"),
    ],
)
def test_a_wrong_configuration_is_named_with_its_place(config: Any, complaint: str) -> None:
    with pytest.raises(CatalogueFileError) as caught:
        McpServer.from_config("git", config, place="'mcp.json', mcpServers['git']")

    assert str(caught.value).startswith("MCP server 'git' ('mcp.json', mcpServers['git']) is not configured rightly: ")
    assert complaint in str(caught.value)
    assert "12345678" not in str(caught.value)


def test_a_configuration_is_read_whole() -> None:
    config = {"command": "git", "args": ["a", "b"], "env": {"K": "v"}, "cwd": "/", "disabled": False}

    server = McpServer.from_config("git", config)

    assert (server.command, server.env, server.cwd, server.transport) == (("git", "a", "b"), {"K": "v"}, "/", "stdio")


@pytest.mark.parametrize("name", ["http", "streamable-http", "streamableHttp", "HTTP"])
def test_the_names_of_streamable_http_are_known(name: str) -> None:
    assert McpServer.from_config("x", {"type": name, "url": "https://x/mcp"}).transport == "http"


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), True, "5"])
def test_a_timeout_that_is_none_is_an_error(timeout: Any) -> None:
    with pytest.raises(InvalidOptionError, match="timeout must be a positive number of seconds"):
        list_tools_sync([], timeout=timeout)


def test_without_the_sdk_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)

    with pytest.raises(MissingDependencyError, match=r"pip install 'toolsearch-semantic\[mcp\]'"):
        list_tools_sync([McpServer.from_command("x")])


def real_server(name: str) -> McpServer:
    command = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if command is None:
        pytest.skip(f"{name} is not installed")
    return McpServer.from_command(f"'{command}'")


def test_the_servers_for_git_and_time_are_listed() -> None:
    git, clock = list_tools_sync([real_server("mcp-server-git"), real_server("mcp-server-time")])

    assert {"git_status", "git_diff", "git_commit", "git_log"} <= set(names(git))
    assert set(names(clock)) == {"get_current_time", "convert_time"}
    assert "repo_path" in git.tools[0].input_schema["properties"]
    assert (git.namespace, clock.namespace) == (git.tools[0].namespace, clock.tools[0].namespace)
