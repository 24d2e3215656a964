from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, replace
from typing import ClassVar
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch_semantic.errors import (
    InvalidToolError,
    ToolNameConflictError,
    ToolSearchError,
    UnknownToolShapeError,
)
from toolsearch_semantic.formats.read import NamedTools, as_tool, as_tools, read_tools, same_tool
from toolsearch_semantic.tool import Tool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT = {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": SCHEMA}}
ANTHROPIC = {"name": "weather", "description": "Tells it.", "input_schema": SCHEMA}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["name", "type", "function", "description", "parameters", "input_schema", "inputSchema", "namespace", "search_text"]
)
TYPES = st.sampled_from(["function", "custom", "object", "web_search"])
NEAR_TOOLS = st.recursive(JSON | TYPES, lambda inner: st.dictionaries(KEYS, inner, max_size=6), max_leaves=12)


def weather(city: str) -> str:
    """Tell the weather."""
    return f"sun in {city}"


def clock() -> str:
    """Tell the time."""
    return "noon"


def names(tools):
    return [tool.name for tool in as_tools(tools)]


class TestCollections:
    def test_a_tool_is_returned_as_it_is(self):
        tool = Tool("now")
        assert as_tool(tool) is tool
        assert as_tools([tool])[0] is tool

    def test_shapes_may_be_mixed_and_the_order_is_kept(self):
        assert names([clock, ANTHROPIC, Tool("now"), {"name": "a"}]) == ["clock", "weather", "now", "a"]

    def test_a_generator_a_set_and_a_mapping_are_collections(self):
        assert names(tool for tool in (clock, weather)) == ["clock", "weather"]
        assert names({clock}) == ["clock"]
        assert names({"clock": clock}.values()) == ["clock"]
        assert names([]) == names({}) == []

    def test_a_key_names_what_declares_no_name_and_is_an_alias_of_the_rest(self):
        named = read_tools({"time": clock, "wx": CHAT, "now": Tool("now"), "declared": Tool("other")})
        assert [tool.name for tool in named.tools] == ["time", "weather", "now", "other"]
        assert dict(named.aliases) == {"wx": "weather", "declared": "other"}

    def test_the_result_is_frozen_and_its_aliases_are_read_only(self):
        named = read_tools({"wx": CHAT})
        assert named == NamedTools(tuple(as_tools([CHAT])), {"wx": "weather"})
        with pytest.raises(FrozenInstanceError):
            named.tools = ()
        with pytest.raises(TypeError):
            named.aliases["a"] = "b"

    @pytest.mark.parametrize(
        "tools", ["weather", b"weather", None, 5, clock, CHAT, ANTHROPIC, Tool("a"), {"name": "a"}, {"type": "x"}]
    )
    def test_what_is_no_collection_says_to_wrap_it(self, tools):
        with pytest.raises(UnknownToolShapeError, match=r"mapping of key → tool or an iterable.* in a list: \[tool\]"):
            as_tools(tools)

    def test_what_must_be_awaited_says_so(self):
        async def later():
            return []

        async def each():
            yield clock

        coroutine = later()
        with pytest.raises(UnknownToolShapeError, match="Await it first"):
            as_tools(coroutine)
        coroutine.close()
        with pytest.raises(UnknownToolShapeError, match="Await it first"):
            as_tools(each())

    @pytest.mark.parametrize("key", [1, None, "", " "])
    def test_a_key_must_be_a_name(self, key):
        with pytest.raises(InvalidToolError, match=r"tools\[.*\]: a key must be a non-blank string"):
            as_tools({key: Tool("a")})

    def test_a_key_may_be_called_like_a_field(self):
        assert names({"name": clock, "type": weather}) == ["name", "type"]

    def test_a_failing_generator_fails_with_its_own_error(self):
        def broken():
            yield clock
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            as_tools(broken())


class TestUnknownShapes:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (5, r"tools\['x'\] cannot be read as a tool: int 5"),
            (None, r"tools\['x'\] cannot be read as a tool: NoneType None"),
            ("weather", r"str 'weather'\. A name alone"),
            ([CHAT], "list "),
            ({}, r"dict \{\}"),
            ({"type": "object", "properties": {}}, "It is a JSON Schema alone"),
            ({"type": "tool", "name": "a", "parameters": {}}, "Its type 'tool' is not known"),
            ({"type": 5, "name": "a"}, "dict "),
            (dict, "A class is no tool"),
        ],
    )
    def test_the_error_says_where_what_and_what_is_accepted(self, given, message):
        with pytest.raises(UnknownToolShapeError, match=message) as caught:
            as_tools({"x": given})
        assert "Accepted are: a Tool; a function" in str(caught.value)

    def test_a_position_is_named_in_a_list(self):
        with pytest.raises(UnknownToolShapeError, match=r"tools\[2\] cannot"):
            as_tools([clock, weather, 3])

    def test_one_tool_alone_needs_no_position(self):
        with pytest.raises(UnknownToolShapeError, match=r"^The tool cannot be read as a tool: int 5"):
            as_tool(5)
        with pytest.raises(InvalidToolError, match=r"^The tool under key 'k': The name must"):
            as_tool({"name": 5}, key="k")

    def test_a_long_repr_is_cut(self):
        with pytest.raises(UnknownToolShapeError) as caught:
            as_tool(["x" * 5000] * 5000)
        assert len(str(caught.value)) < 800

    def test_a_repr_that_fails_does_not_hide_the_error(self):
        class Odd:
            def __repr__(self):
                raise ValueError

            @property
            def name(self):
                raise ValueError

        with pytest.raises(UnknownToolShapeError, match="Odd"):
            as_tools([Odd()])

    def test_a_mock_of_anything_is_refused(self):
        with pytest.raises(ToolSearchError):
            as_tools([MagicMock()])

    def test_a_description_with_an_odd_repr_is_still_a_clear_error(self):
        class Odd:
            def __repr__(self):
                raise ValueError

        with pytest.raises(InvalidToolError, match="The description of 'a' must be a string, not Odd"):
            as_tool({"name": "a", "description": Odd()})


class TestSameAndConflicting:
    def test_the_same_object_twice_is_one_tool(self):
        assert names([clock, clock]) == ["clock"]
        assert dict(read_tools({"a": CHAT, "b": CHAT}).aliases) == {"a": "weather", "b": "weather"}

    def test_an_equal_definition_is_one_tool_and_the_first_is_kept(self):
        first, second = dict(CHAT), dict(CHAT)
        tools = as_tools([first, second, ANTHROPIC])
        assert len(tools) == 1
        assert tools[0].source is first

    def test_a_tool_and_what_it_was_made_from_are_one(self):
        assert names([clock, as_tool(clock), Tool("a", execute=clock), Tool("a", execute=clock)]) == ["clock", "a"]

    def test_one_function_under_two_keys_is_two_tools(self):
        assert names({"a": clock, "b": clock}) == ["a", "b"]

    @pytest.mark.parametrize(
        "other",
        [
            Tool("weather", "Another."),
            Tool("weather", "Tells it.", {"type": "object"}),
            Tool("weather", "Tells it.", SCHEMA, search_text="x"),
            Tool("weather", "Tells it.", SCHEMA, execute=weather),
        ],
    )
    def test_two_different_tools_of_one_name_are_both_named(self, other):
        with pytest.raises(ToolNameConflictError, match=r"named 'weather': tools\['a'\] .* and tools\['b'\]"):
            as_tools({"a": CHAT, "b": other})

    def test_namespaces_are_named(self):
        one, other = (Tool("search", namespace=space) for space in ("github", "jira"))
        with pytest.raises(
            ToolNameConflictError, match=r"tools\[0\] of namespace 'github' .* and tools\[1\] of namespace 'jira'"
        ):
            as_tools([one, other])

    def test_two_callers_executors_of_one_source_are_not_one_tool(self):
        mine = Tool("weather", "Tells it.", SCHEMA, execute=lambda city: "mine", source=CHAT)
        theirs = replace(mine, execute=lambda city: "theirs")
        with pytest.raises(ToolNameConflictError):
            as_tools([mine, theirs])

    @pytest.mark.parametrize("turned", [False, True])
    def test_a_key_that_is_another_tools_name_names_both(self, turned):
        tools = {"weather": Tool("forecast"), "x": CHAT}
        given = dict(reversed(tools.items())) if turned else tools
        with pytest.raises(
            ToolNameConflictError,
            match=r"The key of tools\['weather'\] .* named 'forecast', is the name of another tool, tools\['x'\]",
        ):
            as_tools(given)

    def test_sources_that_cannot_be_compared_do_not_fail(self):
        class Raises:
            def __eq__(self, other):
                raise ValueError

            __hash__ = None

        arrays = [Tool("a", source=np.arange(3)) for _ in range(2)]
        raising = [Tool("a", source=Raises()) for _ in range(2)]
        for tools in (arrays, raising):
            with pytest.raises(ToolNameConflictError):
                as_tools(tools)
            assert names([tools[0], tools[0]]) == ["a"]


class Clock:
    def now(self) -> str:
        return "noon"


class TestSameTool:
    def test_a_function_read_twice_is_one_tool_and_equal(self):
        assert same_tool(as_tool(clock), as_tool(clock))
        assert as_tool(clock) == as_tool(clock)
        assert len({as_tool(clock), as_tool(clock)}) == 1

    def test_methods_of_two_objects_are_two_tools(self):
        one, other = Clock(), Clock()
        assert same_tool(as_tool(one.now), as_tool(one.now))
        assert not same_tool(as_tool(one.now), as_tool(other.now))

    def test_data_of_one_definition_is_one_tool_whatever_its_shape(self):
        assert same_tool(as_tool({"name": "a"}), as_tool({"name": "a", "inputSchema": None}))
        assert same_tool(as_tool({"name": "a"}), Tool("a"))

    @pytest.mark.parametrize(
        "other",
        [Tool("b"), Tool("a", "x"), Tool("a", "", {}), Tool("a", namespace="n"), Tool("a", execute=clock)],
    )
    def test_any_difference_makes_two_tools(self, other):
        assert not same_tool(Tool("a"), other)
        assert not same_tool(other, Tool("a"))

    def test_sources_that_this_package_cannot_run_are_told_apart(self):
        assert not same_tool(Tool("a", source=object()), Tool("a", source=object()))


class TestAnyJson:
    @given(JSON | NEAR_TOOLS)
    def test_as_tool_reads_it_or_raises_an_error_of_this_package(self, obj):
        try:
            tool = as_tool(obj)
        except ToolSearchError:
            return
        assert isinstance(tool.input_schema, Mapping)
        assert tool.source is obj

    @given(JSON | NEAR_TOOLS | st.lists(NEAR_TOOLS, max_size=4) | st.dictionaries(st.text(max_size=3), NEAR_TOOLS))
    def test_as_tools_reads_it_or_raises_an_error_of_this_package(self, obj):
        try:
            tools = as_tools(obj)
        except ToolSearchError:
            return
        assert len({tool.name for tool in tools}) == len(tools)


class TestImports:
    FRAMEWORKS: ClassVar = ["mcp", "langchain_core", "pydantic_ai", "haystack", "openai", "anthropic"]

    def modules_after(self, code):
        done = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}\nprint(*sys.modules)"],
            capture_output=True,
            text=True,
            check=True,
        )
        return set(done.stdout.split())

    def test_reading_dicts_imports_no_framework_and_no_pydantic(self):
        loaded = self.modules_after(
            "from toolsearch_semantic.formats.read import as_tools\n"
            f"print(as_tools([{CHAT!r}, {ANTHROPIC!r}, {{'name': 'a'}}, {{'name': 'b', 'inputSchema': {{}}}}]))"
        )
        assert loaded.isdisjoint([*self.FRAMEWORKS, "pydantic", "docstring_parser"])

    def test_reading_a_function_imports_no_framework(self):
        loaded = self.modules_after(
            "from toolsearch_semantic.formats.read import as_tools\ndef f(a: int):\n    'Do.'\nas_tools([f])"
        )
        assert loaded.isdisjoint(self.FRAMEWORKS)
        assert "pydantic" in loaded
