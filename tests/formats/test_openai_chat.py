from __future__ import annotations

import json

import pytest
from openai import pydantic_function_tool
from openai.types.chat import ChatCompletionFunctionTool
from pydantic import BaseModel

from toolsearch_semantic.errors import InvalidToolError, ToolNameConflictError
from toolsearch_semantic.formats.openai_chat import to_openai_chat
from toolsearch_semantic.formats.read import as_tool, as_tools
from toolsearch_semantic.tool import Tool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": SCHEMA}}


def test_a_dict_is_read_and_kept_as_the_source():
    tool = as_tool(WEATHER)
    assert (tool.name, tool.description, tool.input_schema, tool.execute) == ("weather", "Tells it.", SCHEMA, None)
    assert tool.source is WEATHER


def test_missing_description_and_parameters_are_empty():
    tool = as_tool({"type": "function", "function": {"name": "now", "description": None, "parameters": None}})
    assert tool.description == ""
    assert tool.input_schema == {"type": "object", "properties": {}}


def test_an_object_of_the_client_is_read():
    given = ChatCompletionFunctionTool.model_validate(WEATHER)
    tool = as_tool(given)
    assert (tool.name, tool.description, tool.input_schema) == ("weather", "Tells it.", SCHEMA)
    assert tool.source is given


def test_what_pydantic_function_tool_makes_is_read():
    class Weather(BaseModel):
        """Tells the weather."""

        city: str

    tool = as_tool(pydantic_function_tool(Weather))
    assert (tool.name, tool.description) == ("Weather", "Tells the weather.")
    assert tool.input_schema["required"] == ["city"]


def test_a_key_names_a_function_without_a_name():
    assert as_tools({"weather": {"type": "function", "function": {"parameters": SCHEMA}}})[0].name == "weather"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("weather", r"tools\[0\]: Its 'function' must be an object .* not str 'weather'"),
        ({}, r"tools\[0\]: It has no name"),
        ({"name": 5}, r"tools\[0\]: The name must be a string, not int 5"),
        ({"name": " "}, r"tools\[0\]: Its name is blank: ' '"),
        ({"name": "a", "description": 5}, r"tools\[0\]: The description of 'a' must be a string, not int 5"),
        ({"name": "a", "parameters": []}, r"tools\[0\]: The schema of 'a' must be a JSON Schema object, not list \[\]"),
        ({"name": "a", "parameters": {"type": "array"}}, r"tools\[0\]: The schema of 'a' .* not type 'array'"),
    ],
)
def test_a_bad_field_is_named_with_its_position(function, message):
    with pytest.raises(InvalidToolError, match=message):
        as_tools([{"type": "function", "function": function}])


def test_what_is_written_is_what_was_read():
    now = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
    written = to_openai_chat(as_tools([WEATHER, now]))
    assert written == [WEATHER, now]
    assert json.loads(json.dumps(written)) == written
    assert written[0]["function"]["parameters"] is not SCHEMA


def test_a_name_that_is_not_allowed_is_written_safely():
    assert to_openai_chat([Tool("github.create")])[0]["function"]["name"] == "github_create"
    with pytest.raises(ToolNameConflictError, match=r"'a\.b' and 'a b'"):
        to_openai_chat([Tool("a.b"), Tool("a b")])


def test_a_schema_without_type_and_properties_is_completed():
    assert to_openai_chat([Tool("a", input_schema={"required": []})])[0]["function"]["parameters"] == {
        "required": [],
        "type": "object",
        "properties": {},
    }


@pytest.mark.parametrize("value", [{1}, float("nan"), object()])
def test_a_schema_that_is_not_json_is_named(value):
    tool = Tool("a", input_schema={"type": "object", "properties": {"x": {"default": value}}})
    with pytest.raises(InvalidToolError, match="The input_schema of tool 'a' cannot be written as JSON"):
        to_openai_chat([tool])
