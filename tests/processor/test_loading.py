from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests.processor.conversation import Chat, catalogue, every_store, processor_of, tool
from toolsearch_semantic import InMemoryStore, ToolNameConflictError
from toolsearch_semantic.formats.anthropic import to_anthropic
from toolsearch_semantic.formats.openai_chat import to_openai_chat

WEATHER, REFUND = "get_weather", "refund_payment"


@every_store
def test_a_load_takes_effect_at_the_next_step(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), storage=storage))
    first = chat.step()
    assert chat.call("load_tool", tool_name=WEATHER) == {
        "success": True,
        "message": "Loaded, to be called from your next step on: get_weather.",
        "loaded": [WEATHER],
    }
    early = chat.call(WEATHER, city="Lisbon")
    assert early["success"] is False
    assert "loaded in this step. Call it in your next step" in early["message"]
    again = chat.call("load_tool", tool_name=WEATHER)
    assert again == {"success": True, "message": "Already loaded: get_weather.", "already_loaded": [WEATHER]}
    assert WEATHER not in first.tools
    assert list(chat.step().tools) == ["search_tools", "load_tool", WEATHER]
    assert chat.call(WEATHER, city="Lisbon") == [WEATHER, {"city": "Lisbon"}]


@every_store
def test_a_load_is_seen_in_the_next_step_before_the_host_has_appended_it(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), storage=storage), write=lambda *_: [])
    chat.load(WEATHER)
    assert chat.messages == []
    assert chat.loaded() == [WEATHER]


@every_store
def test_threads_do_not_see_each_others_tools(storage: str) -> None:
    processor = processor_of(catalogue(), storage=storage)
    ann, bob = Chat(processor, thread_id="ann"), Chat(processor, context={"thread_id": "bob"})
    ann.load(WEATHER)
    bob.load(REFUND)
    assert (ann.loaded(), bob.loaded()) == ([WEATHER], [REFUND])
    assert "is not loaded" in bob.call(WEATHER, city="x")["message"]


def test_requests_without_a_thread_share_the_default_in_memory() -> None:
    processor = processor_of(catalogue())
    Chat(processor).load(WEATHER)
    assert Chat(processor).loaded() == Chat(processor, thread_id="default").loaded() == [WEATHER]
    assert Chat(processor, context={"thread_id": "other"}).loaded() == []


def test_the_thread_given_goes_before_the_one_in_the_context() -> None:
    processor = processor_of(catalogue())
    Chat(processor, thread_id="given", context={"thread_id": "context"}).load(WEATHER)
    assert (Chat(processor, thread_id="given").loaded(), Chat(processor, thread_id="context").loaded()) == (
        [WEATHER],
        [],
    )


@every_store
@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        ({"tool_name": WEATHER}, [WEATHER]),
        ({"tool_name": "weather_key"}, [WEATHER]),
        ({"tool_names": [REFUND, WEATHER]}, [REFUND, WEATHER]),
        ({"tool_name": REFUND, "tool_names": [WEATHER]}, [REFUND, WEATHER]),
        ({"tool_name": WEATHER, "tool_names": [REFUND, WEATHER, REFUND, "weather_key"]}, [WEATHER, REFUND]),
        ({"tool_name": WEATHER, "tool_names": []}, [WEATHER]),
        ({"tool_name": WEATHER, "tool_names": None}, [WEATHER]),
        ({"tool_name": None, "tool_names": [WEATHER]}, [WEATHER]),
        ({"tool_name": "files_delete"}, ["files.delete"]),
    ],
)
def test_names_are_given_alone_several_or_both(storage: str, arguments: dict[str, Any], loaded: list[str]) -> None:
    first, *others = catalogue()
    processor = processor_of({"weather_key": first} | {t.name: t for t in others}, storage=storage)
    chat = Chat(processor)
    assert chat.call("load_tool", **arguments)["loaded"] == loaded
    assert chat.loaded() == loaded


@pytest.mark.parametrize("arguments", [{}, {"tool_names": []}, {"tool_name": None}, {"tool_names": None}])
def test_no_name_is_an_error_result(arguments: dict[str, Any]) -> None:
    result = Chat(processor_of(catalogue())).call("load_tool", **arguments)
    assert result["success"] is False
    assert "Give tool_name or tool_names" in result["message"]


@every_store
def test_what_is_found_loads_though_some_is_not(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), storage=storage))
    result = chat.call("load_tool", tool_names=[WEATHER, "refund_paymint", "zzz"])
    assert (result["success"], result["loaded"], result["not_found"]) == (False, [WEATHER], ["refund_paymint", "zzz"])
    assert result["suggestions"]["refund_paymint"][0] == REFUND
    assert 'No tool is named "zzz"' in result["message"]
    assert chat.loaded() == [WEATHER]


def test_all_already_loaded_is_a_success_and_nothing_new() -> None:
    chat = Chat(processor_of(catalogue()))
    chat.load(WEATHER, REFUND)
    result = chat.load(REFUND, WEATHER)
    assert (result["success"], result["already_loaded"], "loaded" in result) == (True, [REFUND, WEATHER], False)
    assert chat.loaded() == [WEATHER, REFUND]


@every_store
def test_by_key_and_by_name_is_one_tool_shown_under_its_name(storage: str) -> None:
    chat = Chat(processor_of({"weather_key": catalogue()[0]}, storage=storage))
    chat.load("weather_key")
    assert chat.load(WEATHER)["already_loaded"] == [WEATHER]
    assert chat.loaded() == [WEATHER]
    assert "by its name: get_weather" in chat.call("weather_key", city="x")["message"]


@pytest.mark.parametrize(
    ("asked", "near"), [("get_wether", WEATHER), ("issue", "createIssue"), ("mail somebody", "send_email")]
)
def test_a_suggestion_is_near_in_spelling_or_in_meaning(asked: str, near: str) -> None:
    suggestions = Chat(processor_of(catalogue())).call("load_tool", tool_name=asked)["suggestions"][asked]
    assert near in suggestions
    assert len(suggestions) <= 3


def test_a_name_far_from_all_has_no_suggestion() -> None:
    result = Chat(processor_of(catalogue())).call("load_tool", tool_name="0000")
    assert result["suggestions"] == {"0000": []}
    long = Chat(processor_of(catalogue())).call("load_tool", tool_name="x" * 1_000_000)
    assert len(long["message"]) < 500


@every_store
def test_tools_stand_in_order_and_never_move(storage: str) -> None:
    own = [tool("own_b"), tool("own_a")]
    chat = Chat(processor_of(catalogue(), storage=storage), tools=own)
    steps = [list(chat.step().tools)]
    for names in ([REFUND], [WEATHER, "book_flight"], ["createIssue"]):
        chat.load(*names)
        steps.append(list(chat.step().tools))
    assert steps[-1] == [
        "search_tools", "load_tool", "own_b", "own_a", REFUND, WEATHER, "book_flight", "createIssue",
    ]  # fmt: skip
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(steps))


@every_store
@pytest.mark.parametrize("name", ["a.b/c", "with space", "日本の天気", "x" * 200, "名"])
def test_a_name_that_a_provider_refuses_is_written_safely_and_called_by_it(storage: str, name: str) -> None:
    chat = Chat(processor_of([tool(name, "Odd"), *catalogue()], storage=storage))
    assert chat.load(name)["success"]
    step = chat.step()
    for written in (
        to_openai_chat(step.tools.values())[-1]["function"]["name"],
        to_anthropic(step.tools.values())[-1]["name"],
    ):
        assert written.isascii()
        assert len(written) <= 128
        assert chat.call(written) == name
        chat.step()
        assert chat.call("load_tool", tool_name=written)["already_loaded"] == [name]


@every_store
def test_tools_that_would_be_written_alike_are_not_loaded_together(storage: str) -> None:
    chat = Chat(processor_of([tool("get.user"), tool("get_user"), tool("other")], storage=storage))
    result = chat.load("get.user", "get_user", "other")
    assert (result["success"], result["loaded"], result["not_loaded"]) == (False, ["get.user", "other"], ["get_user"])
    assert "get_user cannot be loaded beside get.user" in result["message"]
    assert chat.load("get_user")["not_loaded"] == ["get_user"]
    assert chat.load("get.user")["already_loaded"] == ["get.user"]
    assert [each["name"] for each in to_anthropic(chat.step().tools.values())][2:] == ["get_user", "other"]
    chat.tools = [tool("get_user", "The host's own")]
    assert chat.loaded() == ["get_user", "other"]


@every_store
def test_input_tools_are_passed_on_untouched(storage: str) -> None:
    given = {"type": "function", "function": {"name": "own", "description": "Mine", "parameters": {"type": "object"}}}
    own = tool("other_own")
    chat = Chat(processor_of(catalogue(), storage=storage, filter=lambda _: False), tools=[given, own])
    step = chat.step()
    assert step.tools["own"].source is given
    assert step.tools["other_own"] is own
    assert chat.call("load_tool", tool_name="own") == {
        "success": True,
        "message": "You have these without loading them: own.",
        "available": ["own"],
    }


@every_store
def test_an_input_tool_named_like_a_meta_tool_or_another_loaded_tool_is_an_error(storage: str) -> None:
    processor = processor_of(catalogue(), storage=storage)
    with pytest.raises(ToolNameConflictError, match=r"'search_tools'.*meta-tool"):
        Chat(processor, tools=[tool("search_tools")]).step()
    chat = Chat(processor)
    chat.load(WEATHER)
    chat.tools = [tool(WEATHER, "Another weather")]
    for ask in (chat.step, chat.loaded_tools):
        with pytest.raises(ToolNameConflictError, match=r"'Another weather'.*'Forecast of temperature"):
            ask()
    # Not loaded, it is no conflict: the host's own counts.
    chat.messages, chat.state, chat.thread_id = [], {}, "fresh"
    assert chat.step().tools[WEATHER].description == "Another weather"


@every_store
@pytest.mark.parametrize("options", [{}, {"auto_load": True}, {"preselect": 1}])
def test_nothing_that_a_model_or_a_user_asks_for_makes_an_input_tool_clash(storage: str, options: Any) -> None:
    own = tool(WEATHER, "Weather forecast by the host", answer="own")
    chat = Chat(processor_of(catalogue(), storage=storage, search=options), tools=[own])
    chat.user("weather forecast")
    chat.step()
    chat.call("search_tools", query="weather forecast")
    chat.call("load_tool", tool_names=[WEATHER])
    chat.user("And tomorrow?")
    assert chat.step().tools[WEATHER] is own
    assert chat.call(WEATHER) == "own"


@every_store
def test_an_input_tool_that_is_the_loaded_tool_is_shown_once(storage: str) -> None:
    tools = catalogue()
    chat = Chat(processor_of(tools, storage=storage))
    chat.load(REFUND, WEATHER)
    chat.tools = [tools[0]]
    assert chat.loaded() == [WEATHER, REFUND]
    assert chat.call(WEATHER, city="x") == [WEATHER, {"city": "x"}]


@every_store
def test_loaded_tools_are_what_the_next_step_shows_and_asking_changes_nothing(storage: str) -> None:
    chat = Chat(
        processor_of(catalogue(), storage=storage, always_loaded=["send_email"], max_loaded=2, search={"preselect": 1})
    )
    chat.load(WEATHER, REFUND)
    chat.step()
    chat.user("play some music")
    store = chat.processor._store
    before = (dict(chat.state), store.loaded("default", touch=False), store.by_last_use("default"))
    asked = chat.loaded_tools()
    assert chat.loaded_tools() == asked
    assert (chat.state, store.loaded("default", touch=False), store.by_last_use("default")) == before
    shown = chat.step().tools
    assert list(asked) == ["send_email", REFUND, "play_music"] == list(shown)[2:]
    assert all(shown[name] is asked[name] for name in asked)


@every_store
def test_always_loaded_tools_come_first_and_obey_the_filter(storage: str) -> None:
    denied: set[str] = set()
    processor = processor_of(
        {"mail": tool("send_email")} | {t.name: t for t in catalogue()[:3]},
        storage=storage,
        always_loaded=["mail", WEATHER],
        filter=lambda args: (args.tool_name, args.phase) not in {(name, "active") for name in denied},
    )
    chat = Chat(processor)
    assert chat.loaded() == ["send_email", WEATHER]
    assert chat.call("load_tool", tool_name=WEATHER)["available"] == [WEATHER]
    chat.load(REFUND)
    assert chat.loaded() == ["send_email", WEATHER, REFUND]
    denied.add(WEATHER)
    assert chat.loaded() == ["send_email", REFUND]
    assert "There is no tool" in chat.call(WEATHER, city="x")["message"]


@every_store
def test_the_tool_unused_for_longest_makes_room(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), storage=storage, max_loaded=2))
    chat.load("createIssue", "files.delete")
    chat.step()
    chat.call("createIssue")
    result = chat.load("book_flight")
    assert (result["loaded"], result["unloaded"]) == (["book_flight"], ["files.delete"])
    assert "Unloaded, to make room: files.delete." in result["message"]
    assert chat.loaded() == ["createIssue", "book_flight"]
    chat.user("Go on.")
    assert chat.loaded() == ["createIssue", "book_flight"]
    chat.load("files.delete")
    assert chat.loaded() == ["book_flight", "files.delete"]


@every_store
def test_of_more_names_than_fit_the_first_are_loaded_and_the_rest_named(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), storage=storage, max_loaded=2))
    chat.load("createIssue")
    result = chat.load(WEATHER, REFUND, "book_flight", "createIssue")
    assert result["success"] is False
    assert (result["loaded"], result["unloaded"]) == ([WEATHER, REFUND], ["createIssue"])
    assert result["not_loaded"] == ["book_flight"]
    assert chat.loaded() == [WEATHER, REFUND]


class BrokenStore(InMemoryStore):
    broken = True

    def loaded(self, thread_id: str, *, touch: bool = True) -> tuple[str, ...]:
        if self.broken:
            raise OSError("disk gone")
        return super().loaded(thread_id, touch=touch)

    def add(self, thread_id: str, names: Sequence[str]) -> tuple[str, ...]:
        if self.broken:
            raise OSError("disk gone")
        return super().add(thread_id, names)


def test_a_store_that_fails_leaves_a_step_that_answers_and_a_load_says_so() -> None:
    store = BrokenStore()
    own = tool("own")
    chat = Chat(processor_of(catalogue(), storage=store, search={"preselect": 1}), tools=[own])
    chat.user("weather in Lisbon")
    assert list(chat.step().tools) == ["search_tools", "load_tool", "own"]
    assert chat.call("own") == "own"
    assert chat.call("search_tools", query="weather")["results"]
    result = chat.call("load_tool", tool_name=WEATHER)
    assert result["success"] is False
    assert "store failed" in result["message"]
    assert chat.loaded_tools() == {}
    store.broken = False
    assert chat.load(REFUND)["loaded"] == [REFUND]


def test_a_blocking_store_is_called_off_the_event_loop() -> None:
    class Blocking(InMemoryStore):
        blocking = True  # type: ignore[assignment]
        callers: set[str]

        def loaded(self, thread_id: str, *, touch: bool = True) -> tuple[str, ...]:
            self.callers.add(threading.current_thread().name)
            return super().loaded(thread_id, touch=touch)

    store = Blocking()
    store.callers = set()
    chat = Chat(processor_of(catalogue(), storage=store))
    chat.load(WEATHER)
    assert chat.loaded() == [WEATHER]
    assert store.callers
    assert threading.current_thread().name not in store.callers


@every_store
def test_concurrent_loads_in_one_step_all_count(storage: str) -> None:
    tools = [tool(f"t{i}") for i in range(40)]
    chat = Chat(processor_of(tools, storage=storage))

    async def scenario() -> list[Any]:
        await chat.take_step()
        return await asyncio.gather(*(chat.make_call("load_tool", tool_name=t.name) for t in tools))

    assert all(result["success"] for result in asyncio.run(scenario()))
    assert sorted(chat.loaded()) == sorted(t.name for t in tools)


def test_state_operations_reach_the_store() -> None:
    processor = processor_of(catalogue())
    for thread in ("one", "two", "three"):
        Chat(processor, thread_id=thread).load(WEATHER)
    Chat(processor, thread_id="nothing loaded").step()
    assert processor.get_state_stats().thread_count == 3
    processor.clear_state("one")
    processor.clear_state("unknown")
    assert (Chat(processor, thread_id="one").loaded(), processor.get_state_stats().thread_count) == ([], 2)
    assert processor.cleanup_now() == 0
    processor.clear_all_state()
    assert processor.get_state_stats().thread_count == 0


def test_each_step_is_a_use_and_reading_stats_is_none() -> None:
    now = [0.0]
    processor = processor_of(catalogue(), storage=InMemoryStore(ttl=10, clock=lambda: now[0]))
    used, idle = Chat(processor, thread_id="used"), Chat(processor, thread_id="idle")
    used.load(WEATHER)
    idle.load(WEATHER)
    for _ in range(3):
        now[0] += 6
        used.step()
        processor.get_state_stats()
        idle.loaded_tools()
    assert (used.loaded(), idle.loaded()) == ([WEATHER], [])
