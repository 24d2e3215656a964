from __future__ import annotations

from typing import Any

from tests.conftest import BreakableEncoder
from tests.processor.conversation import Chat, catalogue, every_store, processor_of, tool
from toolsearch_semantic import FilterArgs, ToolSearch, ToolSearchProcessor

ONE: dict[str, Any] = {"preselect": 1}
WEATHER, ISSUE = "get_weather", "createIssue"


@every_store
def test_it_is_off_by_default(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), storage=storage))
    chat.user("weather forecast")
    assert chat.loaded() == []


@every_store
def test_a_new_user_message_loads_up_to_k_tools_before_its_first_step(storage: str) -> None:
    for k in (1, 2):
        chat = Chat(processor_of(catalogue(), storage=storage, search={"preselect": k}))
        chat.user("weather forecast for the flight")
        assert len(chat.loaded()) == k
    chat = Chat(processor_of(catalogue(), storage=storage, search=ONE))
    chat.user("weather forecast")
    assert chat.loaded() == [WEATHER]
    assert chat.call(WEATHER, city="x") == [WEATHER, {"city": "x"}]


@every_store
def test_following_steps_tool_results_and_assistant_messages_load_nothing(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), storage=storage, search=ONE), tools=[tool("own", answer="bug report")])
    chat.user("weather forecast")
    assert chat.loaded() == ["own", WEATHER]
    chat.call("own")
    chat.messages.append({"role": "assistant", "content": "I shall open a bug report."})
    assert chat.loaded() == ["own", WEATHER]
    chat.user("open a bug report")
    assert chat.loaded() == ["own", WEATHER, ISSUE]
    assert chat.loaded() == ["own", WEATHER, ISSUE]


def test_in_memory_a_message_that_was_answered_is_not_searched_for_again() -> None:
    processor = processor_of(catalogue(), search=ONE)
    chat = Chat(processor)
    chat.user("weather forecast")
    chat.step()
    processor.clear_all_state()
    chat.messages.append({"role": "assistant", "content": "It will rain."})
    assert chat.loaded() == []


@every_store
def test_nothing_under_min_score_is_loaded(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), storage=storage, search=ONE | {"min_score": 0.95}))
    chat.user("hello, how are you?")
    assert chat.loaded() == []


@every_store
def test_what_is_loaded_already_stays_where_it_is(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), storage=storage, search=ONE))
    chat.load(WEATHER, "send_email")
    chat.user("weather forecast")
    assert chat.loaded() == [WEATHER, "send_email"]


@every_store
def test_denied_tools_are_neither_loaded_nor_named(storage: str) -> None:
    for phase in ("search", "load"):

        def filter(args: FilterArgs, phase: str = phase) -> bool:
            return not (args.tool_name == WEATHER and args.phase == phase)

        chat = Chat(processor_of(catalogue(), storage=storage, search=ONE, filter=filter))
        chat.user("weather forecast, rain, or a bug report in the tracker")
        assert chat.loaded() == [ISSUE]
        assert WEATHER not in str(chat.state)
    chat = Chat(processor_of(catalogue(), storage=storage, search=ONE, filter=lambda _: False))
    chat.user("weather forecast")
    assert chat.loaded() == []


@every_store
def test_no_user_text_loads_nothing(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), storage=storage, search=ONE))
    assert chat.loaded() == []
    chat.messages = [
        {"role": "system", "content": "weather forecast"},
        {"role": "assistant", "content": "weather forecast"},
        {"role": "user", "content": " "},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:weather"}}]},
    ]
    assert chat.loaded() == []


def test_in_the_context_store_it_is_found_again_after_a_restart_while_its_message_is_there() -> None:
    def fresh() -> ToolSearchProcessor:
        return processor_of(catalogue(), storage="context", search=ONE)

    chat = Chat(fresh())
    chat.user("weather forecast")
    chat.step()
    chat.messages.append({"role": "assistant", "content": "It will rain."})
    chat.user("open a bug report")
    assert chat.loaded() == [WEATHER, ISSUE]
    chat.processor = fresh()
    assert chat.loaded() == [WEATHER, ISSUE]
    del chat.messages[0]
    chat.state = {}
    assert chat.loaded() == [ISSUE]


def test_in_the_context_store_each_message_is_searched_for_once(encoder: BreakableEncoder) -> None:
    asked: list[str] = []
    encode = encoder.encode_queries

    def counting(texts: Any, /) -> Any:
        asked.extend(texts)
        return encode(texts)

    encoder.encode_queries = counting  # type: ignore[method-assign]
    search = ToolSearch(catalogue(), encoder=encoder)
    processor = processor_of(search, storage="context", search=ONE)
    chat = Chat(processor)
    unreadable = (
        "查询明天的天气预报 weather"  # the encoder makes nothing of it, and keywords answer: that is no failure
    )
    assert not encode([unreadable]).any()
    for text in ("weather forecast", "open a bug report", unreadable, "weather forecast"):
        chat.user(text)
        assert chat.loaded()
        chat.messages.append({"role": "assistant", "content": "Done."})
    assert asked == ["weather forecast", "open a bug report", unreadable]
    assert chat.loaded() == [WEATHER, ISSUE]
    # A change of the catalogue is seen.
    search.add([tool("storm_warning", "Severe weather forecast")])
    search.remove([WEATHER])
    chat.state = {}
    assert chat.loaded()[:1] == ["storm_warning"]


def test_a_ranking_from_a_failing_encoder_is_not_remembered(encoder: BreakableEncoder) -> None:
    processor = processor_of(ToolSearch(catalogue(), encoder=encoder), storage="context", search=ONE)
    chat = Chat(processor)
    chat.user("will it be sunny tomorrow")
    encoder.failing = RuntimeError("out of memory")
    assert chat.loaded() == []
    encoder.failing = None
    assert chat.loaded() == [WEATHER]


@every_store
def test_a_search_that_fails_leaves_a_step_without_preselection(storage: str, encoder: BreakableEncoder) -> None:
    search = ToolSearch(catalogue(), encoder=encoder, fallback=False)
    chat = Chat(processor_of(search, storage=storage, search=ONE))
    chat.user("weather forecast")
    encoder.failing = RuntimeError("out of memory")
    assert chat.loaded() == []
    assert "out of memory" in chat.call("search_tools", query="weather")["message"]
    assert chat.call("load_tool", tool_names=[ISSUE, "absent"])["loaded"] == [ISSUE]


def test_a_remembered_ranking_gives_each_caller_their_own_tool() -> None:
    processor = processor_of(storage="context", search=ONE, include_resolved_tools=True)
    for user in ("ann", "bob"):
        chat = Chat(processor, tools=[tool("get_weather", "Forecast for a city", answer=user)])
        chat.user("weather forecast")
        assert chat.loaded() == ["get_weather"]
        assert chat.call("get_weather") == user
