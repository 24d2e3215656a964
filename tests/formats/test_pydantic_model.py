from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import BaseModel, Field, RootModel, ValidationError

from toolsearch_semantic.errors import InvalidToolError
from toolsearch_semantic.formats.read import as_tool, as_tools, read_tools


class Weather(BaseModel):
    """Tells the weather.

    For one city.
    """

    city: str = Field(description="Where.")
    days: int = 1


class Node(BaseModel):
    value: int
    children: list[Node] = []


def test_a_model_is_read_and_run():
    tool = as_tool(Weather)
    assert (tool.name, tool.description) == ("Weather", "Tells the weather.\n\nFor one city.")
    assert tool.input_schema == Weather.model_json_schema()
    assert tool.execute(city="Rome", days="3") == Weather(city="Rome", days=3)
    assert tool.source is Weather
    with pytest.raises(ValidationError):
        tool.execute(days=3)


def test_the_key_names_it():
    named = read_tools({"wx": Weather})
    assert [tool.name for tool in named.tools] == ["wx"]
    assert dict(named.aliases) == {}


def test_a_model_that_contains_itself_has_an_object_at_the_root():
    tool = as_tool(Node)
    assert tool.description == ""
    assert tool.input_schema["type"] == "object"
    assert tool.input_schema["required"] == ["value"]
    assert tool.input_schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert tool.execute(value=1, children=[{"value": 2}]).children[0].value == 2


def test_a_model_that_is_no_object_is_an_error():
    with pytest.raises(InvalidToolError, match=r"tools\[0\]: The schema of .* not type 'array'"):
        as_tools([RootModel[list[int]]])


def test_a_model_that_cannot_be_described_is_an_error():
    class Odd(BaseModel):
        call: Callable[[], int]

    with pytest.raises(InvalidToolError, match=r"tools\[0\]: The Pydantic model .*Odd has no JSON Schema"):
        as_tools([Odd])
