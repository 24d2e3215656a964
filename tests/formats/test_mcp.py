from __future__ import annotations

from types import SimpleNamespace

import pytest
from mcp import types

from toolsearch_semantic.errors import InvalidToolError, UnknownToolShapeError
from toolsearch_semantic.formats.mcp import to_mcp
from toolsearch_semantic.formats.read import as_tool, as_tools
from toolsearch_semantic.tool import Tool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def sdk_tool():
    return types.Tool.model_validate({"name": "weather", "description": "Tells it.", "inputSchema": SCHEMA})


@pytest.mark.parametrize(
    "given",
    [
        sdk_tool(),
        SimpleNamespace(name="weather", description="Tells it.", inputSchema=SCHEMA),
        {"name": "weather", "description": "Tells it.", "inputSchema": SCHEMA},
        {"name": "weather", "description": "Tells it.", "input_schema": SCHEMA},
        sdk_tool().model_dump(),
        sdk_tool().model_dump(by_alias=True),
    ],
    ids=["installed SDK", "SDK 1", "JSON", "snake case", "dump", "dump by alias"],
)
def test_an_mcp_tool_is_read(given):
    tool = as_tool(given)
    assert (tool.name, tool.description, tool.input_schema, tool.execute) == ("weather", "Tells it.", SCHEMA, None)
    assert tool.source is given


def test_a_tool_listed_twice_is_one():
    assert [tool.name for tool in as_tools([sdk_tool(), sdk_tool()])] == ["weather"]


def test_a_result_of_tools_list_says_to_give_its_tools():
    with pytest.raises(UnknownToolShapeError, match="Give its 'tools' instead"):
        as_tools(types.ListToolsResult(tools=[sdk_tool()]))


def test_a_single_tool_says_to_wrap_it_though_it_can_be_iterated():
    with pytest.raises(UnknownToolShapeError, match="Wrap a single tool in a list"):
        as_tools(sdk_tool())


def test_a_description_that_is_no_string_is_an_error():
    with pytest.raises(InvalidToolError, match=r"tools\[0\]: The description of 'a' must be a string, not list"):
        as_tools([{"name": "a", "description": ["x"], "inputSchema": {}}])


def test_what_is_written_is_what_the_sdk_reads():
    written = to_mcp(as_tools([sdk_tool(), Tool("github.create issue")]))
    assert written == [
        {"name": "weather", "description": "Tells it.", "inputSchema": SCHEMA},
        {"name": "github.create_issue", "inputSchema": {"type": "object", "properties": {}}},
    ]
    assert types.Tool.model_validate(written[0]) == sdk_tool()
