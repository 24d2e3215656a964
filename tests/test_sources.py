from __future__ import annotations

import io
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolsearch_semantic.errors import CatalogueFileError, ToolNameConflictError
from toolsearch_semantic.merging import merge_tools
from toolsearch_semantic.sources import SourceContents, collect_tools, read_file, read_folder, read_source

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
RECORD = {"name": "weather", "description": "Tells the weather.", "parameters": SCHEMA}
CHAT = {"type": "function", "function": {"name": "refund", "description": "Pays back.", "parameters": SCHEMA}}
RESPONSES = {"type": "function", "name": "invoice", "description": "Writes a bill.", "parameters": SCHEMA}
ANTHROPIC = {"name": "book", "description": "Books a table.", "input_schema": SCHEMA}
MCP = {"name": "ping", "description": "Pings.", "inputSchema": SCHEMA}

Write = Callable[[str, object], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writer(name: str, content: object) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return writer


def lines(*documents: object) -> str:
    return "".join(json.dumps(document) + "\n" for document in documents)


def names(contents: SourceContents) -> list[str]:
    return [one.tool.name for one in contents.tools]


def error_of(path: object) -> str:
    with pytest.raises(CatalogueFileError) as caught:
        read_source(str(path))
    return str(caught.value)


@pytest.mark.parametrize(
    "document",
    [
        [RECORD, CHAT, RESPONSES, ANTHROPIC, MCP],
        {"tools": [RECORD, CHAT, RESPONSES, ANTHROPIC, MCP]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [RECORD, CHAT, RESPONSES, ANTHROPIC, MCP]}},
        {"a": RECORD, "b": CHAT, "c": RESPONSES, "d": ANTHROPIC, "e": MCP},
        {"tools": {"a": RECORD, "b": CHAT, "c": RESPONSES, "d": ANTHROPIC, "e": MCP}},
    ],
    ids=["list", "tools", "json-rpc", "mapping", "tools as mapping"],
)
def test_tools_of_every_shape_are_read_from_every_document(write: Write, document: object) -> None:
    contents = read_file(write("all.json", document))

    assert names(contents) == ["weather", "refund", "invoice", "book", "ping"]
    assert [one.tool.description for one in contents.tools][:2] == ["Tells the weather.", "Pays back."]
    assert all(one.tool.input_schema == SCHEMA for one in contents.tools)
    assert {one.origin for one in contents.tools} == {"all"}


def test_a_key_names_a_tool_that_declares_no_name(write: Write) -> None:
    assert names(read_file(write("x.json", {"forecast": {"description": "Tomorrow.", "parameters": SCHEMA}}))) == [
        "forecast"
    ]


def test_one_tool_alone_is_a_document(write: Write) -> None:
    assert names(read_file(write("x.json", CHAT))) == ["refund"]


def test_a_tool_may_be_called_tools_in_a_mapping(write: Write) -> None:
    contents = read_file(write("x.json", {"tools": {"description": "Lists tools."}, "other": {"description": "Else."}}))

    assert names(contents) == ["tools", "other"]


@pytest.mark.parametrize("name", ["tools.jsonl", "tools.ndjson", "tools.json", "tools"])
def test_lines_are_read_whatever_the_file_is_called(write: Write, name: str) -> None:
    contents = read_file(write(name, lines(RECORD) + "\n" + lines({"tools": [CHAT, MCP]})))

    assert names(contents) == ["weather", "refund", "ping"]
    assert [one.place.rpartition("', ")[2] for one in contents.tools] == [
        "line 1",
        "line 3, tools[0]",
        "line 3, tools[1]",
    ]


def test_a_line_may_hold_a_line_separator_of_unicode(write: Write) -> None:
    text = '{"name": "a", "description": "one\u2028two\u0085"}\n{"name": "b"}\n'

    assert [one.tool.description for one in read_file(write("x.jsonl", text)).tools] == ["one\u2028two\u0085", ""]


def test_a_byte_order_mark_is_passed_over(write: Write) -> None:
    assert names(read_file(write("x.json", b"\xef\xbb\xbf" + json.dumps([RECORD]).encode()))) == ["weather"]


def test_windows_line_ends_are_line_ends(write: Write) -> None:
    assert names(read_file(write("x.jsonl", lines(RECORD, MCP).replace("\n", "\r\n").encode()))) == ["weather", "ping"]


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines(RECORD).encode())))

    [one] = read_source("-").tools

    assert (one.tool.name, one.place, one.origin) == ("weather", "standard input", "stdin")


def test_servers_of_a_configuration_are_given_with_their_places(write: Write) -> None:
    path = write("mcp.json", {"mcpServers": {"git": {"command": "git-server"}, "web": {"url": "http://x/mcp"}}})

    contents = read_file(path)

    assert contents.tools == ()
    assert [(one.key, one.config) for one in contents.servers] == [
        ("git", {"command": "git-server"}),
        ("web", {"url": "http://x/mcp"}),
    ]
    assert contents.servers[0].place == f"'{path}', mcpServers['git']"


def test_what_a_configuration_holds_is_not_in_its_repr(write: Write) -> None:
    config = {"mcpServers": {"git": {"command": "x", "env": {"TOKEN": "s3cr3t-value"}}}}

    assert "s3cr3t" not in repr(read_file(write("mcp.json", config)))


def test_a_page_that_announces_another_is_noted(write: Write) -> None:
    path = write("page.json", {"tools": [MCP], "nextCursor": "2"})

    assert read_file(path).notes == (f"'{path}' is one page of several (it has a 'nextCursor'); the next is not in it",)


def test_a_missing_file_says_what_may_be_given() -> None:
    assert error_of("no/such.json") == (
        "'no/such.json' is not there. Give the path of a file or a folder, or '-' for standard input."
    )


@pytest.mark.parametrize("content", ["", " \n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error(write: Write, content: object) -> None:
    path = write("x.json", content)

    assert error_of(path).startswith(f"'{path}' is empty. Expected is JSON or JSON Lines in UTF-8")


@pytest.mark.parametrize("document", [[], {}, {"tools": []}, {"mcpServers": {}}])
def test_a_file_without_any_tool_is_an_error(write: Write, document: object) -> None:
    path = write("x.json", document)

    assert error_of(path).startswith(f"'{path}' holds no tools. Expected is")


def test_a_json_file_cut_in_half_says_line_and_column(write: Write) -> None:
    whole = json.dumps([RECORD, MCP], indent=1)
    path = write("x.json", whole[: whole.index('"ping"') - 2])

    message = error_of(path)

    assert message.startswith(f"'{path}', line 15, column 9: this is not JSON: Expecting ':' delimiter. It ends there")
    assert message.endswith("so it was cut short: write or copy it again.")


def test_a_string_cut_in_half_is_known_as_cut_short(write: Write) -> None:
    message = error_of(write("x.json", '[{"name": "wea'))

    assert "line 1, column 11: this is not JSON: Unterminated string starting at. It ends there" in message


def test_a_last_line_that_was_half_written_is_named(write: Write) -> None:
    path = write("x.jsonl", lines(RECORD, MCP) + '{"name": "boo')

    assert error_of(path).startswith(f"'{path}', line 3, column 10: this is not JSON: Unterminated string")
    assert "It ends there, so it was cut short" in error_of(path)


def test_a_file_that_is_no_json_says_what_is_expected(write: Write) -> None:
    path = write("x.yaml", "tools:\n  - name: weather\n")

    assert error_of(path).startswith(f"'{path}', line 1, column 1: this is not JSON: Expecting value. Expected is JSON")


def test_bytes_that_are_not_utf8_are_located(write: Write) -> None:
    path = write("x.json", b'[{"name":\n "caf\xe9"}]')

    assert error_of(path) == f"'{path}', line 2: byte 15 (0xe9) is not UTF-8. Save the file as UTF-8."


def test_utf16_is_recognised(write: Write) -> None:
    assert "it looks like UTF-16" in error_of(write("x.json", json.dumps([RECORD]).encode("utf-16")))


@pytest.mark.parametrize(
    ("text", "reason"), [("[NaN]", "NaN is not a JSON value"), ("[" * 100_000, "nested too deeply")]
)
def test_what_json_does_not_allow_is_refused(write: Write, text: str, reason: str) -> None:
    assert reason in error_of(write("x.json", text))


def test_a_tool_of_unknown_shape_is_named_by_position(write: Write) -> None:
    path = write("x.json", [RECORD, CHAT, MCP, {"query": "weather"}, {"query": "again"}])

    assert error_of(path).startswith(f"'{path}', [3]: the tool cannot be read as a tool: dict {{'query': 'weather'}}.")


def test_a_tool_of_unknown_shape_is_named_by_line(write: Write) -> None:
    path = write("x.jsonl", lines(RECORD, CHAT, MCP, {"query": "weather"}))

    assert error_of(path).startswith(f"'{path}', line 4: the tool cannot be read as a tool: dict")


def test_a_tool_with_a_bad_field_is_named_by_key(write: Write) -> None:
    path = write("x.json", {"tools": {"good": RECORD, "bad": {"name": "bad", "description": 5}}})

    assert error_of(path).startswith(f"'{path}', tools['bad']: the tool under key 'bad':")


def test_a_folder_gives_the_tools_of_its_files_in_sorted_order(write: Write, tmp_path: Path) -> None:
    write("b.json", [MCP])
    write("a/z.jsonl", lines(CHAT))
    write("a/b/c.JSON", [RECORD])
    write("notes.txt", "no tools")
    write(".hidden/x.json", [ANTHROPIC])
    write("a/.x.json", [ANTHROPIC])

    assert names(read_source(tmp_path)) == ["weather", "refund", "ping"]


def test_files_without_tools_are_passed_over_and_noted(write: Write, tmp_path: Path) -> None:
    write("tools.json", [MCP])
    write("queries.jsonl", lines({"query": "ping it", "relevant": ["ping"]}))
    write("empty.json", "")
    write("manifest.json", {"tools": 12, "files": {}})

    contents = read_folder(tmp_path)

    assert names(contents) == ["ping"]
    assert contents.notes == (f"passed over in '{tmp_path}', without tools: {tmp_path}/empty.json and 2 more",)


def test_a_broken_file_in_a_folder_is_an_error(write: Write, tmp_path: Path) -> None:
    write("tools.json", [MCP])
    broken = write("broken.json", '[{"name": ')

    assert error_of(tmp_path).startswith(f"'{broken}', line 1, column 11: this is not JSON")


def test_a_file_of_which_a_part_are_tools_is_not_passed_over(write: Write, tmp_path: Path) -> None:
    write("a.json", [MCP])
    mixed = write("b.json", [RECORD, {"query": "x"}])

    assert error_of(tmp_path).startswith(f"'{mixed}', [1]: the tool cannot be read as a tool")


def test_a_folder_without_tools_is_an_error(write: Write, tmp_path: Path) -> None:
    assert "looked for *.json, *.jsonl, *.ndjson, and there is no such file" in error_of(tmp_path)

    write("queries.jsonl", lines({"query": "ping it"}))

    assert "none of its 1 such files holds one" in error_of(tmp_path)


def catalogue(write: Write, **files: list[dict[str, Any]]) -> list[Path]:
    return [write(f"{stem}.json", records) for stem, records in files.items()]


def test_names_that_are_unique_stay_as_they_are(write: Write) -> None:
    tools, notes = collect_tools(catalogue(write, a=[RECORD], b=[MCP]))

    assert ([tool.name for tool in tools], notes) == (["weather", "ping"], [])


def test_a_repeated_name_becomes_the_id_of_its_record(write: Write) -> None:
    one, two = {**RECORD, "id": "one/weather"}, {**RECORD, "id": "two/weather"}

    [*tools] = collect_tools(catalogue(write, a=[one, MCP, two]))[0]

    assert [tool.name for tool in tools] == ["one/weather", "ping", "two/weather"]
    assert tools[0].source == one


def test_a_repeated_name_without_id_is_qualified_by_namespace_or_file(write: Write) -> None:
    other, third = {"name": "weather", "description": "Else."}, {"name": "weather", "namespace": "met"}
    paths = catalogue(write, a=[RECORD], b=[other, third], c=[MCP])

    by_order = [
        {tool.name: tool.description for tool in collect_tools(order)[0]} for order in itertools.permutations(paths)
    ]

    assert by_order[0] == {
        "a__weather": "Tells the weather.",
        "b__weather": "Else.",
        "met__weather": "",
        "ping": "Pings.",
    }
    assert all(names == by_order[0] for names in by_order)


def test_the_same_definition_twice_is_one_tool_under_its_own_name(write: Write) -> None:
    as_mcp = {"name": "weather", "description": "Tells the weather.", "inputSchema": SCHEMA}

    assert [tool.name for tool in collect_tools(catalogue(write, a=[RECORD, RECORD], b=[as_mcp]))[0]] == ["weather"]


def test_names_that_clash_all_the_same_are_an_error_that_names_both_places(write: Write) -> None:
    [path] = catalogue(write, a=[RECORD, {"name": "weather", "description": "Else."}])

    with pytest.raises(ToolNameConflictError) as caught:
        collect_tools([path])

    assert str(caught.value).startswith(
        f"Two different tools would be named 'a__weather': 'weather' at '{path}', [1], and 'weather' at '{path}', [0]."
    )


def test_a_qualified_name_that_is_another_tools_name_is_an_error(write: Write) -> None:
    paths = catalogue(write, a=[RECORD], b=[{"name": "weather"}], c=[{"name": "a__weather"}])

    for order in itertools.permutations(paths):
        with pytest.raises(ToolNameConflictError, match="would be named 'a__weather'"):
            collect_tools(order)


def test_merging_nothing_gives_nothing() -> None:
    assert merge_tools([]) == []


def test_nothing_to_collect_is_an_error() -> None:
    with pytest.raises(CatalogueFileError, match="There are no tools in what was given"):
        collect_tools([])


def test_servers_that_lie_in_a_folder_are_not_started(write: Write, tmp_path: Path) -> None:
    write("tools.json", [MCP])
    config = write("mcp.json", {"mcpServers": {"evil": {"command": "touch", "args": [str(tmp_path / "was-run")]}}})

    tools, notes = collect_tools([tmp_path])

    assert [tool.name for tool in tools] == ["ping"]
    assert notes == [
        f"servers are started only from a file that is named itself, not from '{config}', mcpServers['evil']"
    ]
    assert not (tmp_path / "was-run").exists()


def test_a_tool_that_its_provider_runs_is_passed_over_and_said(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([{"type": "bash_20250124", "name": "bash"}, {"name": "a", "input_schema": {}}]))
    contents = read_file(path)
    assert [one.tool.name for one in contents.tools] == ["a"]
    assert len(contents.notes) == 1
    assert "which its provider runs" in contents.notes[0]


def test_no_path_is_not_the_current_folder() -> None:
    with pytest.raises(CatalogueFileError, match="'' is no path"):
        collect_tools([""])


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"name": "a", "description": "A"}]')
    os.mkfifo(tmp_path / "b.json")
    assert [one.tool.name for one in read_folder(tmp_path).tools] == ["a"]


def test_tools_that_were_renamed_are_said(tmp_path: Path) -> None:
    for stem in ("one", "two"):
        (tmp_path / f"{stem}.json").write_text(json.dumps([{"name": "search", "description": stem}]))
    tools, notes = collect_tools([tmp_path])
    assert [tool.name for tool in tools] == ["one__search", "two__search"]
    assert any("2 tools share their names with others, such as 'search'" in note for note in notes)
