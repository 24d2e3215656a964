from __future__ import annotations

import asyncio

import pytest
from anthropic import beta_async_tool, beta_tool
from anthropic.types import ToolParam

from toolsearch_semantic.errors import InvalidToolError, UnknownToolShapeError
from toolsearch_semantic.formats.anthropic import to_anthropic
from toolsearch_semantic.formats.read import as_tool, as_tools
from toolsearch_semantic.tool import Tool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.mark.parametrize("more", [{}, {"type": "custom"}, {"cache_control": {"type": "ephemeral"}}])
def test_a_tool_param_is_read(more):
    given = ToolParam(name="weather", description="Tells it.", input_schema=SCHEMA, **more)
    tool = as_tool(given)
    assert (tool.name, tool.description, tool.input_schema, tool.execute) == ("weather", "Tells it.", SCHEMA, None)
    assert tool.source is given


def test_a_function_of_the_client_is_read_and_run():
    @beta_tool
    def add(a: int, b: int) -> str:
        """Add two numbers.

        Args:
            a: The first.
            b: The second.
        """
        return str(a + b)

    tool = as_tool(add)
    assert (tool.name, tool.description) == ("add", "Add two numbers.")
    assert tool.input_schema["properties"]["a"]["description"] == "The first."
    assert tool.execute(a=1, b=2) == "3"
    assert tool.source is add


def test_an_async_function_of_the_client_is_awaited():
    @beta_async_tool
    async def add(a: int, b: int) -> str:
        """Add two numbers."""
        return str(a + b)

    assert asyncio.run(as_tool(add).execute(a=1, b=2)) == "3"


@pytest.mark.parametrize("name", ["web_search", "bash"])
def test_a_tool_that_the_provider_runs_cannot_be_searched_for(name):
    with pytest.raises(UnknownToolShapeError, match=rf"tools\['x'\] .*'{name}_20250305' are run by the provider"):
        as_tools({"x": {"type": f"{name}_20250305", "name": name}})


def test_a_schema_that_is_no_object_is_an_error():
    with pytest.raises(InvalidToolError, match=r"tools\['x'\]: The schema of 'a' must be a JSON Schema object"):
        as_tools({"x": {"name": "a", "input_schema": "object"}})


def test_what_is_written_is_what_was_read():
    weather = {"name": "weather", "description": "Tells it.", "input_schema": SCHEMA}
    assert to_anthropic(as_tools([weather])) == [weather]
    assert to_anthropic([Tool("x" * 128)]) == [
        {"name": "x" * 128, "input_schema": {"type": "object", "properties": {}}}
    ]
