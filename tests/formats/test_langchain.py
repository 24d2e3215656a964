from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Annotated

import pytest
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, tool
from langchain_core.tools import Tool as OneStringTool
from pydantic import BaseModel, Field

from toolsearch_semantic.errors import InvalidToolError, ToolNameConflictError
from toolsearch_semantic.formats.read import as_tool, as_tools, read_tools


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


def test_a_decorated_function_is_read_and_run():
    read = as_tool(multiply)
    assert (read.name, read.description) == ("multiply", "Multiply two numbers.")
    assert {name: part["type"] for name, part in read.input_schema["properties"].items()} == {
        "a": "integer",
        "b": "integer",
    }
    assert read.input_schema["required"] == ["a", "b"]
    assert inspect.iscoroutinefunction(read.execute.__call__)
    assert asyncio.run(read.execute(a="6", b=7)) == 42
    assert read.source is multiply


def test_a_structured_tool_with_an_async_function_is_run():
    class Place(BaseModel):
        city: str = Field(description="Where.")

    async def weather(city: str) -> str:
        return f"sun in {city}"

    read = as_tool(
        StructuredTool.from_function(coroutine=weather, name="wx", description="Tells it.", args_schema=Place)
    )
    assert (read.name, read.description) == ("wx", "Tells it.")
    assert read.input_schema["properties"]["city"]["description"] == "Where."
    assert asyncio.run(read.execute(city="Rome")) == "sun in Rome"


def test_a_schema_given_as_json_is_kept():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    read = as_tool(StructuredTool(name="s", description="", args_schema=schema, func=lambda a: a + 1))
    assert read.input_schema == schema
    assert asyncio.run(read.execute(a=1)) == 2


def test_a_tool_of_one_string_is_read_and_run():
    read = as_tool(OneStringTool(name="shout", description="Shouts.", func=str.upper))
    assert read.input_schema == {
        "type": "object",
        "properties": {"tool_input": {"type": "string"}},
        "required": ["tool_input"],
    }
    assert asyncio.run(read.execute(tool_input="a")) == "A"


def test_a_subclass_is_read_and_run():
    class Double(BaseTool):
        name: str = "double"
        description: str = "Doubles."

        def _run(self, number: int) -> int:
            return number * 2

    read = as_tool(Double())
    assert read.input_schema["required"] == ["number"]
    assert asyncio.run(read.execute(number=4)) == 8


def test_an_injected_argument_is_left_out_and_the_tool_is_left_to_langchain():
    @tool
    def mail(text: str, user: Annotated[str, InjectedToolArg]) -> str:
        """Mail it."""
        return text + user

    read = as_tool(mail)
    assert list(read.input_schema["properties"]) == ["text"]
    assert read.execute is None


def test_an_injected_argument_with_a_default_leaves_the_tool_runnable():
    @tool
    def mail(text: str, user: Annotated[str, InjectedToolArg] = "me") -> str:
        """Mail it."""
        return text + user

    read = as_tool(mail)
    assert list(read.input_schema["properties"]) == ["text"]
    assert asyncio.run(read.execute(text="to ")) == "to me"


def test_arguments_that_cannot_be_described_are_an_error():
    class Odd(BaseModel):
        call: Callable[[], int]

    with pytest.raises(InvalidToolError, match=r"tools\[0\]: The arguments of the LangChain tool 'odd' have no JSON"):
        as_tools([StructuredTool(name="odd", description="d", args_schema=Odd, func=print)])


def test_the_declared_name_goes_before_the_key():
    named = read_tools({"times": multiply, "multiply": multiply})
    assert [read.name for read in named.tools] == ["multiply"]
    assert dict(named.aliases) == {"times": "multiply"}


def test_two_tools_of_one_definition_and_different_code_are_a_conflict():
    def made(function):
        return StructuredTool.from_function(function, name="calc", description="Calculates.")

    def one(a: int) -> int:
        return a

    def other(a: int) -> int:
        return -a

    with pytest.raises(ToolNameConflictError, match=r"named 'calc': tools\[0\] .* and tools\[1\]"):
        as_tools([made(one), made(other)])
