from __future__ import annotations

import gc
import inspect
import math
import os
import signal
import threading
import weakref
from typing import Any

import pytest

from tests.processor.conversation import Chat, catalogue, names, tool
from toolsearch_semantic import (
    InMemoryStore,
    InvalidOptionError,
    MetaTools,
    SearchOptions,
    StateStats,
    Tool,
    ToolNameConflictError,
    ToolNotFoundError,
    ToolSearch,
    ToolSearchProcessor,
)

ALIKE = [Tool(f"weather_{i}", search_text="weather forecast") for i in range(9)]


def test_the_identity_and_the_defaults_are_as_documented() -> None:
    processor = ToolSearchProcessor(ALIKE)
    assert (processor.id, processor.name) == ("tool-search", "Tool Search Processor")
    assert SearchOptions() == SearchOptions(top_k=5, min_score=0.0, auto_load=False, preselect=0)
    parameters = inspect.signature(ToolSearchProcessor).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    assert (defaults["storage"], defaults["ttl"], defaults["filter"]) == ("in-memory", 3600.0, None)
    assert defaults["include_resolved_tools"] is False
    chat = Chat(processor)
    assert list(chat.step().tools) == ["search_tools", "load_tool"]
    assert len(chat.call("search_tools", query="weather forecast")["results"]) == 5


@pytest.mark.parametrize(
    "options", [SearchOptions(top_k=2, auto_load=True), {"top_k": 2, "auto_load": True}, {"topK": 2, "autoLoad": True}]
)
def test_options_are_read_as_an_object_and_in_both_spellings(options: Any) -> None:
    chat = Chat(ToolSearchProcessor(ALIKE, search=options))
    assert list(chat.step().tools) == ["search_tools"]
    assert chat.call("search_tools", query="weather forecast")["loaded"] == ["weather_0", "weather_1"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"search": {"topk": 3}}, "Unknown search option 'topk'"),
        ({"search": {"top_k": 0}}, "top_k must be at least 1, not 0"),
        ({"search": {"topK": 2.5}}, "top_k must be an integer of at least 1, not 2.5"),
        ({"search": {"min_score": 1.01}}, "min_score must be in 0..1"),
        ({"search": {"minScore": -0.1}}, "min_score must be in 0..1"),
        ({"search": {"min_score": math.nan}}, "min_score must be in 0..1, not nan"),
        ({"ttl": -1}, "ttl must be a number of seconds"),
        ({"ttl": -1, "storage": "context"}, "ttl must be a number of seconds"),
        ({"storage": "redis"}, "storage must be 'in-memory', 'context' or a StateStore, not 'redis'"),
        ({"storage": None}, "storage must be"),
        ({"filter": True}, "filter must be a function"),
        ({"filter_timeout": 0}, "filter_timeout must be a number of seconds above 0"),
        ({"filter_concurrency": 0}, "filter_concurrency must be an integer of at least 1"),
        ({"max_loaded": 0}, "max_loaded must be an integer of at least 1"),
        ({"on_conflict": "mine"}, "on_conflict must be one of"),
        ({"always_loaded": "get_weather"}, r"give \['get_weather'\]"),
        ({"include_resolved_tools": "no"}, "include_resolved_tools must be True or False, not 'no'"),
        ({"inject_catalog": 1}, "inject_catalog must be True or False, not 1"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        ToolSearchProcessor(catalogue(), **given)


def test_an_always_loaded_tool_has_to_be_there() -> None:
    with pytest.raises(ToolNotFoundError, match="'absent' is not in the catalogue"):
        ToolSearchProcessor(catalogue(), always_loaded=["absent"])


@pytest.mark.parametrize(
    ("tools", "parties"),
    [
        ([tool("a", "One"), tool("a", "Other")], ["'a'", "One", "Other"]),
        ({"x": Tool("a"), "a": Tool("b")}, ["named 'b'", "tools['x']", "tools['a']"]),
        ([Tool("search_tools")], ["'search_tools'", "meta-tool"]),
        ([Tool("load_tool")], ["'load_tool'", "meta-tool"]),
        ({"load_tool": Tool("fetch")}, ["'fetch'", "under the key 'load_tool'", "meta-tool"]),
        ([Tool("search.tools")], ["'search.tools'", "meta-tool", "search_tools"]),
        (ToolSearch([Tool("load_tool")], mode="lexical"), ["'load_tool'", "meta-tool"]),
    ],
)
def test_names_that_clash_are_an_error_that_names_both(tools: Any, parties: list[str]) -> None:
    with pytest.raises(ToolNameConflictError) as caught:
        ToolSearchProcessor(tools)
    assert [party for party in parties if party not in str(caught.value)] == []


def test_the_same_object_twice_is_one_tool() -> None:
    weather = catalogue()[0]
    chat = Chat(ToolSearchProcessor([weather, weather]))
    assert names(chat.call("search_tools", query="get_weather")) == ["get_weather"]


def test_meta_tools_can_be_renamed_and_the_reserved_names_follow() -> None:
    meta = MetaTools(search_name="find.it", load_name="fetch it")
    processor = ToolSearchProcessor([*catalogue(), tool("search_tools", "Look for a hammer")], meta_tools=meta)
    for storage in ("in-memory", "context"):
        processor = ToolSearchProcessor(catalogue(), meta_tools=meta, storage=storage)
        chat = Chat(processor)
        assert list(chat.step().tools) == ["find.it", "fetch it"]
        assert names(chat.call("find_it", query="weather forecast"))[0] == "get_weather"
        assert chat.call("fetch_it", tool_name="get_weather")["loaded"] == ["get_weather"]
        chat.user("Thanks.")
        assert list(chat.step().tools) == ["find.it", "fetch it", "get_weather"]
    for name in ("find.it", "find_it"):
        with pytest.raises(ToolNameConflictError, match=r"find\.it"):
            ToolSearchProcessor([Tool(name)], meta_tools=meta)


@pytest.mark.parametrize("given", [{"search_name": " "}, {"load_name": "search_tools"}, {"load_name": "search.tools"}])
def test_meta_tools_have_two_names(given: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError):
        MetaTools(**given)


def test_an_empty_catalogue_finds_nothing_and_says_so() -> None:
    chat = Chat(ToolSearchProcessor())
    found = chat.call("search_tools", query="weather")
    assert found["results"] == []
    assert 'No tool was found for "weather"' in found["message"]
    assert chat.call("load_tool", tool_name="weather")["not_found"] == ["weather"]
    assert list(chat.step().tools) == ["search_tools", "load_tool"]


def test_a_search_given_as_the_catalogue_is_used_as_it_is() -> None:
    search = ToolSearch(catalogue())
    chat = Chat(ToolSearchProcessor(search))
    search.add([tool("order_pizza", "Have a pizza delivered")])
    assert names(chat.call("search_tools", query="I am hungry, get me a pizza"))[0] == "order_pizza"


def test_a_meta_tool_that_comes_into_the_catalogue_later_does_not_replace_ours() -> None:
    search = ToolSearch(catalogue())
    chat = Chat(ToolSearchProcessor(search))
    search.add([tool("load_tool", "Not ours")])
    chat.load("load_tool")
    assert chat.step().tools["load_tool"].description != "Not ours"


def test_a_processor_that_nobody_holds_is_collected_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    processor = ToolSearchProcessor(catalogue(), search={"preselect": 1})
    chat = Chat(processor)
    chat.user("weather in Lisbon")
    assert chat.loaded() == ["get_weather"]
    assert processor.get_state_stats().thread_count == 1
    gone = weakref.ref(processor)
    del processor, chat
    gc.collect()
    assert gone() is None
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
    assert set(threading.enumerate()) <= before


def test_an_injected_catalogue_is_one_constant_message_of_names_and_short_descriptions() -> None:
    tools = [tool("a\u202eb", "First\x07 one"), tool("long", "x" * 200)]
    processor = ToolSearchProcessor(tools, inject_catalog=True)
    chat = Chat(processor)
    first = chat.step().system_messages
    chat.load("long")
    assert chat.step().system_messages == first
    assert len(first) == 2
    listed = first[1].splitlines()
    assert listed[0] == "Tools that can be loaded by name:"
    assert listed[2] == f"- long: {'x' * 147}..."
    assert listed[1].endswith(": First one")
    assert "\u202e" not in first[1]
    assert processor.get_state_stats() == StateStats(1, pytest.approx(processor.get_state_stats().oldest_access_time))


def test_a_store_must_be_a_store_and_not_its_class() -> None:
    with pytest.raises(InvalidOptionError, match=r"not the class InMemoryStore: give InMemoryStore\(\)"):
        ToolSearchProcessor(ALIKE, storage=InMemoryStore)  # type: ignore[arg-type]

    class Old:
        def loaded(self, thread_id: str) -> tuple[str, ...]:
            return ()

    with pytest.raises(InvalidOptionError, match="It lacks blocking, add, remove, mark_used"):
        ToolSearchProcessor(ALIKE, storage=Old())  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_process_forked_while_the_store_is_busy_can_use_it() -> None:
    store = InMemoryStore()
    for i in range(2_000):
        store.add(str(i), ["a"])
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            store.stats()

    thread = threading.Thread(target=keep_busy)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(5)  # a child that hangs dies of it
                os._exit(0 if store.loaded("1") == ("a",) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        thread.join()
