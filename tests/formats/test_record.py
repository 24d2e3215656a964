from __future__ import annotations

import json
from types import MappingProxyType

import pytest

from toolsearch_semantic.errors import InvalidToolError
from toolsearch_semantic.formats.read import as_tool, as_tools
from toolsearch_semantic.formats.record import to_record
from toolsearch_semantic.tool import Tool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_a_record_is_read_and_other_keys_are_ignored():
    given = {
        "name": "weather",
        "description": "Tells it.",
        "parameters": SCHEMA,
        "namespace": "sky",
        "search_text": "rain sun",
        "id": 7,
    }
    assert as_tool(given) == Tool("weather", "Tells it.", SCHEMA, None, "sky", "rain sun", given)


def test_a_name_is_enough():
    tool = as_tool({"name": "now"})
    assert (tool.name, tool.description, tool.input_schema) == ("now", "", {"type": "object", "properties": {}})


def test_a_key_names_a_record_without_a_name():
    assert [tool.name for tool in as_tools({"now": {"description": "Tells the time."}})] == ["now"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"name": None}, "It has no name"),
        ({"description": "x"}, "It has no name"),
        ({"name": "a", "namespace": 1}, "The namespace of 'a' must be a string, not int 1"),
        ({"name": "a", "search_text": []}, r"The search_text of 'a' must be a string, not list \[\]"),
        ({"name": "a", "parameters": True}, "The schema of 'a' must be a JSON Schema object, not bool True"),
        ({"name": "a", "parameters": {"type": {}}}, r"not type \{\}"),
    ],
)
def test_a_bad_field_is_named(record, message):
    with pytest.raises(InvalidToolError, match=rf"tools\[0\]: .*{message}"):
        as_tools([record])


@pytest.mark.parametrize(
    "tool",
    [
        Tool("now"),
        Tool("weather", "Tells it.", SCHEMA, print, "sky", "rain"),
        Tool("weather", "Tells it.", MappingProxyType({"type": "object", "properties": MappingProxyType({})})),
    ],
)
def test_a_saved_tool_is_an_equal_definition_when_read(tool):
    record = json.loads(json.dumps(to_record(tool)))
    read = as_tool(record)
    assert (read.name, read.description, read.namespace, read.search_text) == (
        tool.name,
        tool.description,
        tool.namespace,
        tool.search_text,
    )
    assert read.input_schema == tool.input_schema
    assert (read.execute, read.source) == (None, record)


def test_what_is_none_is_left_out():
    assert to_record(Tool("now")) == {
        "name": "now",
        "description": "",
        "parameters": {"type": "object", "properties": {}},
    }
