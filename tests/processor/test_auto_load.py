from __future__ import annotations

from typing import Any

from tests.processor.conversation import Chat, catalogue, every_store, names, processor_of
from toolsearch_semantic import FilterArgs

AUTO: dict[str, Any] = {"auto_load": True, "top_k": 2}


@every_store
def test_there_is_no_load_tool_and_every_result_is_loaded_in_result_order(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), search=AUTO, storage=storage))
    assert list(chat.step().tools) == ["search_tools"]
    found = chat.call("search_tools", query=["weather forecast", "open a bug report"])
    assert len(found["results"]) == 2
    assert found["loaded"] == names(found)
    assert set(found["loaded"]) == {"get_weather", "createIssue"}
    assert "Loaded, to be called from your next step on" in found["message"]
    assert "loaded in this step" in chat.call("createIssue")["message"]
    assert list(chat.step().tools) == ["search_tools", *found["loaded"]]
    assert chat.call("createIssue") == "createIssue"


@every_store
def test_a_repeat_names_those_already_loaded(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), search=AUTO, storage=storage))
    first = chat.call("search_tools", query="weather forecast")
    chat.step()
    again = chat.call("search_tools", query="weather forecast")
    assert again["already_loaded"] == first["loaded"]
    assert "loaded" not in again
    assert "Already loaded: get_weather" in again["message"]
    assert chat.loaded() == first["loaded"]


@every_store
def test_no_hit_loads_nothing(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), search=AUTO | {"min_score": 0.95}, storage=storage))
    found = chat.call("search_tools", query="qwerty zxcvb")
    assert (found["results"], "loaded" in found) == ([], False)
    assert chat.loaded() == []


@every_store
def test_what_the_load_phase_denies_is_neither_loaded_nor_returned(storage: str) -> None:
    def filter(args: FilterArgs) -> bool:
        return not (args.phase == "load" and args.tool_name == "get_weather")

    chat = Chat(processor_of(catalogue(), search=AUTO, storage=storage, filter=filter))
    found = chat.call("search_tools", query="weather forecast of rain, or a bug report")
    assert len(found["results"]) == 2  # another takes its place
    assert "get_weather" not in str(found)
    assert chat.loaded() == found["loaded"] == names(found)


@every_store
def test_all_denied_is_an_empty_result_with_a_message(storage: str) -> None:
    processor = processor_of(catalogue(), search=AUTO, storage=storage, filter=lambda args: args.phase != "load")
    chat = Chat(processor)
    found = chat.call("search_tools", query="weather forecast")
    assert found["results"] == []
    assert "No tool was found" in found["message"]
    assert chat.loaded() == []


@every_store
def test_with_a_cap_no_more_is_returned_than_can_be_loaded(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), search={"auto_load": True}, storage=storage, max_loaded=1))
    found = chat.call("search_tools", query=["weather forecast", "write a mail", "open a bug report"])
    assert len(found["results"]) == 1
    assert names(found) == found["loaded"]
    chat.step()
    assert chat.call("search_tools", query="get_weather")["results"][0]["name"] == "get_weather"
    chat.step()
    found = chat.call("search_tools", query="open a bug report")
    assert (found["loaded"], found["unloaded"]) == (["createIssue"], ["get_weather"])
    assert chat.loaded() == ["createIssue"]
    chat.user("Go on.")
    assert chat.loaded() == ["createIssue"]
