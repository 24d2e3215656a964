from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest

from tests.processor.conversation import ENCODER, Chat, catalogue, names, processor_of, tool
from toolsearch_semantic import SearchOptions, Tool, ToolSearch

UNRELATED = "qwerty zxcvb"


def search(tools: Any, query: Any, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = Chat(processor_of(tools, search=options)).call("search_tools", query=query)
    return found


def test_a_request_that_shares_no_word_with_the_tool_finds_it() -> None:
    assert names(search(catalogue(), "will it be sunny tomorrow"))[0] == "get_weather"


@pytest.mark.parametrize(
    ("query", "name"),
    [("the tracker", "createIssue"), ("weather", "get_weather"), ("rain", "get_weather"), ("amount", "refund_payment")],
)
def test_a_word_of_name_description_or_parameter_finds_it(query: str, name: str) -> None:
    assert names(search(catalogue(), query))[0] == name


@pytest.mark.parametrize("query", ["files.delete", "FILES_DELETE", "files delete", "Files-Delete"])
def test_the_exact_name_comes_first_with_score_1(query: str) -> None:
    first = search(catalogue(), query)["results"][0]
    assert first == {"name": "files.delete", "description": "Remove a file for good", "score": 1.0}


@pytest.mark.parametrize("query", ["get http response", "HTTP", "RESPONSE", "response 2"])
def test_an_identifier_is_found_by_its_parts_in_any_case(query: str) -> None:
    tools = [tool("getHTTPResponse2"), tool("fetch-Réponse.v3"), tool("plain")]
    assert names(search(tools, query, top_k=1)) == ["getHTTPResponse2"]
    assert names(search(tools, "reponse", top_k=1)) == ["fetch-Réponse.v3"]


def test_results_fall_in_score_order_within_bounds_and_never_exceed_top_k() -> None:
    for query in ("customer bug report about the weather", "write to somebody about a flight", "weather"):
        for top_k in (1, 3, 8):
            scores = [hit["score"] for hit in search(catalogue(), query, top_k=top_k)["results"]]
            assert scores == sorted(scores, reverse=True)
            assert len(scores) <= top_k
            assert all(0 < score <= 1 for score in scores)


def test_ties_keep_catalogue_order() -> None:
    tools = [Tool(f"t{i}", search_text="weather forecast") for i in (3, 1, 2)]
    assert names(search(tools, "weather forecast")) == ["t3", "t1", "t2"]


def test_min_score_keeps_what_reaches_it() -> None:
    exact = ToolSearch(catalogue(), encoder=ENCODER).search("customer bug report about the weather forecast")
    assert len(exact) >= 3
    found = search(catalogue(), "customer bug report about the weather forecast", min_score=exact[1].score)
    assert names(found) == [hit.tool.name for hit in exact[:2]]


def test_the_same_query_gives_the_same_results() -> None:
    chat = Chat(processor_of(catalogue()))
    results = [chat.call("search_tools", query="write to the customer") for _ in range(5)]
    assert results == [results[0]] * 5
    assert Chat(processor_of(catalogue())).call("search_tools", query="write to the customer") == results[0]


def test_nothing_found_quotes_the_query_and_advises() -> None:
    found = search(catalogue(), UNRELATED, min_score=0.9)
    assert found["results"] == []
    assert f'"{UNRELATED}"' in found["message"]
    assert "other words" in found["message"]
    many = search(catalogue(), [f"{UNRELATED} {i}" for i in range(7)], min_score=0.9)
    assert many["message"].count(UNRELATED) == 5
    assert "and 2 more" in many["message"]


def test_weak_hits_alone_are_said_to_be_weak() -> None:
    found = search(catalogue(), "prove the Riemann hypothesis")
    assert found["results"]
    assert "Probably no tool does this" in found["message"]
    assert "Probably" not in search(catalogue(), "weather forecast")["message"]


@pytest.mark.parametrize("query", ["", " \n\t", [], ["", " "], "\u200b"])
def test_a_blank_query_finds_nothing_and_is_asked_for(query: Any) -> None:
    found = search(catalogue(), query)
    assert found["results"] == []
    assert "query is empty" in found["message"]


def test_a_long_description_is_cut_and_the_stored_one_stays_whole() -> None:
    exact, longer = "weather " * 18 + "report", "weather " * 18 + "reports"
    assert (len(exact), len(longer)) == (150, 151)
    tools = [tool("exact", exact), tool("longer", longer)]
    chat = Chat(processor_of(tools))
    shown = {hit["name"]: hit["description"] for hit in chat.call("search_tools", query="weather")["results"]}
    assert shown == {"exact": exact, "longer": longer[:147] + "..."}
    chat.load("longer")
    assert chat.step().tools["longer"].description == longer


def test_of_several_queries_each_tool_comes_once_with_its_best_score() -> None:
    queries = ["weather forecast", "open a bug report"]
    best: dict[str, float] = {}
    for query in queries:
        for hit in search(catalogue(), query, top_k=8)["results"]:
            best[hit["name"]] = max(best.get(hit["name"], 0), hit["score"])
    together = search(catalogue(), queries, top_k=8)["results"]
    assert {hit["name"]: hit["score"] for hit in together} == best
    assert len(together) == len(best)


RECURSIVE = {"type": "object", "properties": {"node": {"$ref": "#"}}}


@pytest.mark.parametrize(
    "odd",
    [
        Tool("send"),
        Tool("big", "weather " * 12_500),
        Tool("rocket", "🚀🚀"),
        Tool("html", "<script>alert('x')</script>"),
        Tool("null_schema", "", {"type": "object", "properties": None}),
        Tool("recursive", "", RECURSIVE),
    ],
    ids=lambda odd: odd.name,
)
def test_an_odd_tool_does_no_harm_and_is_found_by_its_name(odd: Tool) -> None:
    found = search([*catalogue()[1:], odd], odd.name)
    assert names(found)[0] == odd.name
    assert json.loads(json.dumps(found)) == found
    assert names(search([*catalogue(), odd], "refund the customer"))[0] == "refund_payment"


HIDDEN = {"bidi": "\u202e", "bell": "\x07", "zero width": "\u200b", "arabic mark": "\u061c", "tag": "\U000e0041"}


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("auto", [False, True], ids=["load", "auto"])
def test_what_does_not_print_never_reaches_the_model_and_the_tool_can_still_be_loaded(hidden: str, auto: bool) -> None:
    odd = tool(f"get{hidden}rain", f"Forecast{hidden} of rain", answer="wet")
    for storage in ("in-memory", "context"):
        chat = Chat(processor_of([odd, *catalogue()], search={"auto_load": auto}, storage=storage))
        found = chat.call("search_tools", query="forecast of rain")
        said = [found]
        [name] = [hit["name"] for hit in found["results"] if hit["description"] == "Forecast of rain"]
        if not auto:
            said += [chat.call("load_tool", tool_name=name), chat.call("load_tool", tool_names=[f"get{hidden}rainy"])]
            assert said[1]["loaded"] == [name]
        assert odd.name in chat.step().tools
        chat.user("And now?")
        assert odd.name in chat.step().tools
        assert chat.call(name) == "wet"
        said += [chat.call(name, extra=1), chat.call(f"no{hidden}such")]
        text = json.dumps(said, ensure_ascii=False)
        assert not [c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs"}]


def test_a_query_that_breaks_the_schema_is_an_error_result() -> None:
    for query in (3, None, ["a", 1], {"q": "a"}):
        result = search(catalogue(), query)
        assert result["success"] is False
        assert "query" in result["message"]
    chat = Chat(processor_of(catalogue()))
    assert "query" in chat.call("search_tools")["message"]
    assert "'limit' was unexpected" in chat.call("search_tools", query="x", limit=3)["message"]


def test_options_of_the_search_are_the_processors() -> None:
    options = SearchOptions(top_k=1, min_score=0.2)
    assert len(Chat(processor_of(catalogue(), search=options)).call("search_tools", query="mail")["results"]) == 1
