from __future__ import annotations

import asyncio

import pytest
from haystack.components.agents.state import State
from haystack.tools import Tool, Toolset, create_tool_from_function

from toolsearch_semantic.errors import UnknownToolShapeError
from toolsearch_semantic.formats.read import as_tool, as_tools

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def increment(a: int) -> int:
    return a + 1


async def increment_async(a: int) -> int:
    return a + 1


def with_state(a: int, state: State) -> int:
    """Adds."""
    return a + len(state.data)


def test_a_tool_is_read_and_run():
    given = Tool(name="inc", description="Adds one.", parameters=SCHEMA, function=increment)
    tool = as_tool(given)
    assert (tool.name, tool.description, tool.input_schema) == ("inc", "Adds one.", SCHEMA)
    assert tool.execute(a=1) == 2
    assert tool.source is given


def test_a_tool_with_only_an_async_function_is_awaited():
    tool = as_tool(Tool(name="inc", description="", parameters=SCHEMA, function=None, async_function=increment_async))
    assert asyncio.run(tool.execute(a=1)) == 2


def test_a_tool_that_takes_the_agents_state_has_no_executor():
    mapped = Tool(
        name="inc",
        description="",
        parameters={"type": "object", "properties": {}},
        function=increment,
        inputs_from_state={"count": "a"},
    )
    assert as_tool(mapped).execute is None
    tool = as_tool(create_tool_from_function(with_state))
    assert list(tool.input_schema["properties"]) == ["a"]
    assert tool.execute is None


def test_a_toolset_is_a_collection():
    given = Tool(name="inc", description="Adds one.", parameters=SCHEMA, function=increment)
    assert [tool.name for tool in as_tools(Toolset([given]))] == ["inc"]


def test_an_equal_tool_is_the_same_tool():
    def made():
        return Tool(name="inc", description="Adds one.", parameters=SCHEMA, function=increment)

    assert [tool.name for tool in as_tools([made(), made()])] == ["inc"]


def test_a_single_tool_is_no_collection():
    with pytest.raises(UnknownToolShapeError, match="Wrap a single tool in a list"):
        as_tools(Tool(name="inc", description="", parameters=SCHEMA, function=increment))
