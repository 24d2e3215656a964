from __future__ import annotations

import pytest
from openai.types.responses import FunctionTool, WebSearchTool

from toolsearch_semantic.errors import InvalidToolError, UnknownToolShapeError
from toolsearch_semantic.formats.openai_responses import to_openai_responses
from toolsearch_semantic.formats.read import as_tool, as_tools
from toolsearch_semantic.tool import Tool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "name": "weather", "description": "Tells it.", "parameters": SCHEMA, "strict": False}


@pytest.mark.parametrize("given", [WEATHER, FunctionTool.model_validate(WEATHER)], ids=["dict", "object"])
def test_a_flat_function_is_read(given):
    tool = as_tool(given)
    assert (tool.name, tool.description, tool.input_schema, tool.execute) == ("weather", "Tells it.", SCHEMA, None)
    assert tool.source is given


def test_a_dict_and_an_object_of_one_definition_are_one_tool():
    assert as_tools([WEATHER, FunctionTool.model_validate(WEATHER)]) == [as_tool(WEATHER)]


def test_a_function_without_a_name_is_an_error():
    with pytest.raises(InvalidToolError, match=r"tools\[0\]: It has no name: \{'type': 'function'\}"):
        as_tools([{"type": "function"}])


@pytest.mark.parametrize("given", [{"type": "web_search"}, WebSearchTool(type="web_search")], ids=["dict", "object"])
def test_a_tool_that_the_provider_runs_cannot_be_searched_for(given):
    with pytest.raises(UnknownToolShapeError, match=r"tools\[0\] .*'web_search' are run by the provider"):
        as_tools([given])


def test_a_free_text_tool_and_a_namespace_say_why_they_are_refused():
    with pytest.raises(UnknownToolShapeError, match="takes free text"):
        as_tools([{"type": "custom", "name": "code"}])
    with pytest.raises(UnknownToolShapeError, match="give the tools in it"):
        as_tools([{"type": "namespace", "name": "crm", "tools": []}])


def test_what_is_written_is_what_was_read_and_never_strict():
    assert to_openai_responses(as_tools([WEATHER])) == [WEATHER]
    assert to_openai_responses([Tool("x" * 64), Tool("a/b")]) == [
        {"type": "function", "name": "x" * 64, "parameters": {"type": "object", "properties": {}}, "strict": False},
        {"type": "function", "name": "a_b", "parameters": {"type": "object", "properties": {}}, "strict": False},
    ]
