from __future__ import annotations

import asyncio
from datetime import date

import pytest
from pydantic import BaseModel, ValidationError
from pydantic_ai import RunContext, Tool
from pydantic_ai.tools import ToolDefinition

from toolsearch_semantic.errors import ToolNameConflictError
from toolsearch_semantic.formats.read import as_tool, as_tools


class Point(BaseModel):
    x: int
    y: int


def days(start: date, end: date) -> int:
    """Count days.

    Args:
        start: The first day.
        end: The last day.
    """
    return (end - start).days


def test_a_tool_is_read_and_run_with_converted_arguments():
    given = Tool(days)
    tool = as_tool(given)
    assert (tool.name, tool.description) == ("days", "Count days.")
    assert tool.input_schema["properties"]["start"]["description"] == "The first day."
    assert asyncio.run(tool.execute(start="2024-01-01", end="2024-01-31")) == 30
    with pytest.raises(ValidationError):
        asyncio.run(tool.execute(start="x", end="2024-01-31"))
    assert tool.source is given


def test_a_function_of_one_model_takes_the_models_fields():
    async def total(point: Point) -> int:
        """Add the coordinates."""
        return point.x + point.y

    tool = as_tool(Tool(total, name="sum"))
    assert tool.name == "sum"
    assert list(tool.input_schema["properties"]) == ["x", "y"]
    assert asyncio.run(tool.execute(x=1, y="2")) == 3


def test_a_tool_from_a_schema_is_run():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tool = as_tool(Tool.from_schema(lambda a: a + 1, "inc", None, schema))
    assert (tool.name, tool.description, tool.input_schema) == ("inc", "", schema)
    assert asyncio.run(tool.execute(a=1)) == 2


def needs_context(ctx: RunContext[str], text: str) -> str:
    return ctx.deps + text


@pytest.mark.parametrize(
    "given",
    [
        Tool(needs_context),
        Tool(days, requires_approval=True),
        Tool(days, args_validator=lambda ctx, start, end: None),
    ],
    ids=["run context", "approval", "validator"],
)
def test_a_tool_that_needs_an_agents_run_has_no_executor(given):
    assert as_tool(given).execute is None


def test_the_run_context_is_no_argument():
    assert list(as_tool(Tool(needs_context)).input_schema["properties"]) == ["text"]


def test_a_definition_is_read():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    given = ToolDefinition(name="inc", description="Adds one.", parameters_json_schema=schema)
    tool = as_tool(given)
    assert (tool.name, tool.description, tool.input_schema, tool.execute) == ("inc", "Adds one.", schema, None)
    assert tool.source is given


def test_two_tools_that_only_their_agents_can_run_are_not_one():
    with pytest.raises(ToolNameConflictError, match="named 'needs_context'"):
        as_tools([Tool(needs_context), Tool(needs_context)])
