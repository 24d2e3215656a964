from __future__ import annotations

import json
import time
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch_semantic.text import (
    DESCRIPTION_LIMIT,
    PARAMETERS_LIMIT,
    SCHEMA_DEPTH,
    clean,
    query_words,
    searchable_text,
    split_identifier,
    text_fields,
    tokenize,
)
from toolsearch_semantic.tool import Tool


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("getHTTPResponse2", ["get", "HTTP", "Response", "2"]),
        ("create_issue", ["create", "issue"]),
        ("list-open.pull requests", ["list", "open", "pull", "requests"]),
        ("XMLParser", ["XML", "Parser"]),
        ("s3", ["s", "3"]),
        ("__", []),
        ("天气_查询", ["天气", "查询"]),
    ],
)
def test_identifiers_are_split_into_words(identifier: str, words: list[str]) -> None:
    assert split_identifier(identifier) == words


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Issues ISSUE issue", ["issu", "issu", "issu"]),
        ("GitHub", ["github", "git", "hub"]),
        ("s3", ["s3"]),
        ("ipv6", ["ipv6", "ipv"]),
        ("Café naïve", ["cafe", "naiv"]),
        ("ｆｕｌｌ", ["full"]),
        ("天气预报", ["天气", "气预", "预报"]),
        ("天", ["天"]),
        ("が", ["が"]),
        ("날씨를", ["날씨", "씨를"]),
        ("ПОГОДА", ["погода"]),
        ("الطَّقْس", ["الطقس"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("weather天气", ["weather", "天气"]),
        ("a\u200bb", ["ab"]),
        ("🚀", []),
        ("", []),
    ],
)
def test_text_becomes_terms(text: str, terms: list[str]) -> None:
    assert tokenize(text) == terms


def test_function_words_of_a_query_are_left_out_unless_there_is_nothing_else() -> None:
    assert query_words("What is the weather in Paris?") == {"weather": ("weather",), "Paris": ("pari",)}
    assert list(query_words("who am I")) == ["who", "am", "I"]


def test_a_tool_is_read_into_fields() -> None:
    tool = Tool(
        "createIssue",
        "Open a new issue.\n\n<b>Labels</b> are optional.",
        {
            "type": "object",
            "properties": {
                "repo": {"type": "string", "description": "Owner and name"},
                "state": {"enum": ["open", "closed"]},
                "assignee": {
                    "type": "object",
                    "properties": {"userId": {"type": "string", "description": "Who does it"}},
                },
                "labels": {"type": "array", "items": {"type": "object", "properties": {"colour": {"const": "red"}}}},
            },
        },
        namespace="code_host",
    )
    fields = text_fields(tool)
    assert fields.name == "createIssue"
    assert fields.namespace == "code host"
    assert fields.description == "Open a new issue. <b>Labels</b> are optional."
    assert fields.parameter_names == "repo, state, assignee, userId, labels, colour"
    assert fields.parameter_descriptions == "Owner and name; open | closed; Who does it; red"
    assert fields.cut == ()
    assert searchable_text(fields) == (
        "code host create Issue. Open a new issue. <b>Labels</b> are optional. "
        "repo state assignee user Id labels colour"
    )


def test_search_text_replaces_everything() -> None:
    fields = text_fields(Tool("x", "unused", search_text="open the garage door"))
    assert searchable_text(fields) == "open the garage door"
    assert (fields.name, fields.parameter_names) == ("", "")


def test_references_are_followed_and_a_schema_that_refers_to_itself_is_read_once() -> None:
    node = {
        "type": "object",
        "description": "A folder",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}, "title": {"type": "string"}},
    }
    schema = {"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    fields = text_fields(Tool("tree", "", schema))
    assert fields.parameter_names == "root, children, title"
    assert fields.parameter_descriptions == "A folder"


def test_a_python_object_that_contains_itself_does_no_harm() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["again"] = schema
    assert text_fields(Tool("loop", "", schema)).parameter_names == "again"


@pytest.mark.parametrize(
    "reference", ["#/$defs/absent", "#/properties/a/0/b", "https://example.com/x.json", "#", "", 3]
)
def test_a_reference_that_leads_nowhere_is_passed_over(reference: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": reference}, "b": {}}}
    assert text_fields(Tool("t", "", schema)).parameter_names == "a, b"


def test_escaped_references_are_followed() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x~1y~0z"}},
        "$defs": {"x/y~z": {"description": "found"}},
    }
    assert text_fields(Tool("t", "", schema)).parameter_descriptions == "found"


def test_long_enums_and_values_that_are_not_text_are_left_out() -> None:
    schema = {
        "type": "object",
        "properties": {"many": {"enum": [str(i) for i in range(17)]}, "odd": {"enum": [1, None, "yes", "x" * 41]}},
    }
    assert text_fields(Tool("t", "", schema)).parameter_descriptions == "yes"


@pytest.mark.parametrize("properties", [None, [], "x", {"a": None}, {"a": True}, {"a": {"description": 7}}])
def test_a_malformed_schema_does_no_harm(properties: Any) -> None:
    fields = text_fields(Tool("t", "", {"type": "object", "properties": properties}))
    assert fields.parameter_descriptions == ""


def test_a_schema_is_read_to_its_depth_limit() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"deepest": {}}}
    for level in reversed(range(2 * SCHEMA_DEPTH)):
        schema = {"type": "object", "properties": {f"level{level}": schema}}
    names = text_fields(Tool("t", "", schema)).parameter_names.split(", ")
    assert names == [f"level{level}" for level in range(SCHEMA_DEPTH)]


def test_what_is_too_long_is_cut_and_said() -> None:
    fields = text_fields(Tool("big", "word " * 200_000, {"type": "object", "properties": {"p" * 90_000: {}}}))
    assert len(fields.description) == DESCRIPTION_LIMIT
    assert len(fields.parameter_names) <= PARAMETERS_LIMIT
    assert fields.cut == ("description", "parameter names")
    many = {f"parameter_number_{i}": {"description": "text " * 10} for i in range(1_000)}
    assert text_fields(Tool("big", "", {"type": "object", "properties": many})).cut == (
        "parameter names",
        "parameter descriptions",
    )


def test_whatever_bound_a_schema_meets_is_said() -> None:
    def cut(properties: dict[str, Any]) -> tuple[str, ...]:
        return text_fields(Tool("t", "", {"type": "object", "properties": properties})).cut

    deep: dict[str, Any] = {"type": "string"}
    for _ in range(2 * SCHEMA_DEPTH):
        deep = {"type": "object", "properties": {"p": deep}}
    assert cut({"deep": deep}) == ("schema depth",)
    assert cut({"long": {"description": "text " * 2_000}}) == ("parameter descriptions",)
    assert cut({"enum": {"enum": [str(i) for i in range(17)]}}) == ("enum values",)
    assert "schema size" in cut({f"p{i}": {"anyOf": [{"type": "string"}, {"type": "null"}]} for i in range(4_000)})
    assert cut({"plain": {"type": "string", "enum": ["a", "b"]}}) == ()


def test_an_object_that_stands_in_two_places_is_read_in_both_as_after_writing_it() -> None:
    day = {"type": "string", "description": "A day, as 2026-12-01"}
    where = {"type": "object", "properties": {"city": {"description": "Name of a city"}}}
    schema = {"type": "object", "properties": {"start": day, "end": day, "from": where, "to": where}}
    fields = text_fields(Tool("book", "", schema))
    assert fields.parameter_names == "start, end, from, city, to, city"
    assert fields == text_fields(Tool("book", "", json.loads(json.dumps(schema))))


def test_a_megabyte_of_text_is_read_in_an_instant() -> None:
    tool = Tool("big", "weather " * 131_072)
    start = time.perf_counter()
    tokenize(searchable_text(text_fields(tool)))
    assert time.perf_counter() - start < 0.25


def test_what_is_not_text_is_dropped() -> None:
    assert clean("a\x00b\u202ec \ud800 d\n\te") == "abc d e"
    assert clean("a\u061cb\U000e0041c") == "abc"


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters()))
def test_any_text_gives_terms_that_do_not_depend_on_how_letters_are_composed(text: str) -> None:
    terms = tokenize(text)
    assert all(term and not term.isspace() for term in terms)
    assert tokenize(unicodedata.normalize("NFD", text)) == terms
    clean(text).encode()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["properties", "items", "anyOf", "$ref", "enum", "const", "description", "$defs", "x"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(["properties", "items", "oneOf", "$ref", "$defs"]), json_values))
def test_any_schema_can_be_read(schema: dict[str, Any]) -> None:
    fields = text_fields(Tool("t", "d", {**schema, "type": "object"}))
    assert fields.description == "d"
