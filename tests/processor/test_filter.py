from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from typing import Any

import pytest

from tests.processor.conversation import Chat, catalogue, every_store, names, openai, processor_of, tool
from toolsearch_semantic import FilterArgs, Tool

WEATHER = "get_weather"
ALIKE = [Tool(f"weather_{i}", search_text="weather forecast") for i in range(9)]


def test_a_filter_gets_the_callable_name_the_tool_the_context_and_the_phase() -> None:
    seen: list[FilterArgs] = []
    context = {"user": "ann"}

    def filter(args: FilterArgs) -> bool:
        seen.append(args)
        return True

    [weather, *_] = tools = catalogue()
    chat = Chat(processor_of({"key": weather, "mail": tools[5]}, filter=filter), context=context)
    chat.call("search_tools", query="weather forecast")
    chat.call("load_tool", tool_name="key")
    chat.step()
    of_weather = [args for args in seen if args.tool is weather]
    assert [args.phase for args in of_weather] == ["search", "load", "active"]
    assert {args.tool_name for args in of_weather} == {WEATHER}
    assert all(args.request_context is context for args in seen)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_denied_tool_takes_no_place_and_lower_ranked_ones_fill_it(is_async: bool) -> None:
    denied = {"weather_0", "weather_1", "weather_3"}

    async def slow(args: FilterArgs) -> bool:
        await asyncio.sleep(0)
        return args.tool_name not in denied

    processor = processor_of(
        ALIKE, search={"top_k": 3}, filter=slow if is_async else lambda args: args.tool_name not in denied
    )
    found = Chat(processor).call("search_tools", query="weather forecast")
    assert names(found) == ["weather_2", "weather_4", "weather_5"]


def test_what_the_search_phase_denies_is_not_suggested() -> None:
    def filter(args: FilterArgs) -> bool:
        return not (args.phase == "search" and args.tool_name == WEATHER)

    result = Chat(processor_of(catalogue(), filter=filter)).call("load_tool", tool_name="get_weathr")
    assert WEATHER not in str(result)


@every_store
def test_a_denied_and_an_unknown_name_cannot_be_told_apart(storage: str) -> None:
    def filter(args: FilterArgs) -> bool:
        return not (args.tool_name == "send_fax" and args.phase == "load")

    with_it = Chat(processor_of([*catalogue(), tool("send_fax", "Fax")], storage=storage, filter=filter))
    without = Chat(processor_of(catalogue(), storage=storage, filter=filter))
    answers = [chat.call("load_tool", tool_name="send_fax") for chat in (with_it, without)]
    assert answers[0] == answers[1]
    assert answers[0]["not_found"] == ["send_fax"]
    assert with_it.call("send_fax") == without.call("send_fax")
    assert with_it.loaded() == without.loaded() == []


@pytest.mark.parametrize("near_in", ["spelling", "meaning"])
def test_a_denied_tool_does_not_take_the_place_of_a_suggestion(near_in: str) -> None:
    # Thirty are looked at; the last of them alone may be loaded.
    if near_in == "spelling":
        others = [Tool("send_fax" + "x" * length, search_text="zzz") for length in range(1, 31)]
    else:
        others = [Tool(f"{i:02}", search_text="send fax") for i in range(30)]
    last = others[-1].name
    asked = {"tool_name": "send_fax"}
    answers = []
    for denied in ([Tool("send_fax", search_text="send fax")], []):
        chat = Chat(processor_of([*others, *denied], mode="lexical", filter=lambda args: args.tool_name == last))
        answers.append(chat.call("load_tool", **asked))
    assert answers[0] == answers[1]
    assert answers[0]["suggestions"] == {"send_fax": [last]}


def test_recovered_tools_pass_the_load_phase_again() -> None:
    denied: set[tuple[str, str]] = set()
    processor = processor_of(
        catalogue(), storage="context", filter=lambda args: (args.tool_name, args.phase) not in denied
    )
    chat = Chat(processor)
    chat.load(WEATHER, "createIssue")
    for phase in ("load", "active"):
        denied.add((WEATHER, phase))
        assert chat.loaded() == ["createIssue"]
        denied.clear()
        assert chat.loaded() == [WEATHER, "createIssue"]


@every_store
def test_active_hides_a_loaded_tool_and_keeps_it(storage: str) -> None:
    processor = processor_of(
        catalogue(),
        storage=storage,
        filter=lambda args: not (args.phase == "active" and args.request_context.get("hide") == args.tool_name),
    )
    chat = Chat(processor)
    chat.load(WEATHER, "createIssue")
    chat.context = {"hide": WEATHER}
    assert chat.loaded() == list(chat.loaded_tools()) == ["createIssue"]
    assert "There is no tool" in chat.call(WEATHER, city="x")["message"]
    chat.context = {}
    assert chat.loaded() == [WEATHER, "createIssue"]


@every_store
@pytest.mark.parametrize("auto", [False, True], ids=["load", "auto"])
def test_a_hidden_tool_that_makes_room_is_not_named(storage: str, auto: bool) -> None:
    processor = processor_of(
        catalogue(),
        storage=storage,
        max_loaded=1,
        search={"auto_load": auto, "top_k": 1},
        filter=lambda args: args.tool_name != WEATHER or args.request_context["user"] == "ann",
    )
    chat = Chat(processor, context={"user": "ann"})
    for user, name in [("ann", WEATHER), ("bob", "createIssue")]:
        chat.context = {"user": user}
        chat.user("Do it.")
        chat.step()
        result = chat.call("search_tools", query=name) if auto else chat.call("load_tool", tool_name=name)
        assert result["loaded"] == [name]
    assert WEATHER not in str(result)
    for user in ("bob", "ann"):
        chat.context = {"user": user}
        assert chat.loaded() == ["createIssue"]


class Unprintable(Exception):
    def __repr__(self) -> str:
        raise ValueError

    __str__ = __repr__


def raising(args: FilterArgs) -> bool:
    raise RuntimeError("no database")


def unprintable(args: FilterArgs) -> bool:
    raise Unprintable


async def rejecting(args: FilterArgs) -> bool:
    await asyncio.sleep(0)
    raise RuntimeError("no database")


async def cancelled(args: FilterArgs) -> bool:
    task = asyncio.create_task(asyncio.sleep(60))
    task.cancel()
    await task
    return True


async def slow(args: FilterArgs) -> bool:
    await asyncio.sleep(60)
    return True


async def stubborn(args: FilterArgs) -> bool:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return True
    return True


async def timed_out_itself(args: FilterArgs) -> bool:
    raise TimeoutError("database")


@every_store
@pytest.mark.parametrize(
    ("filter", "said"),
    [
        (raising, "raised RuntimeError: no database"),
        (unprintable, "raised Unprintable"),
        (rejecting, "raised RuntimeError: no database"),
        (cancelled, "raised CancelledError"),
        (slow, "took longer than 0.05 s"),
        (stubborn, "took longer than 0.05 s"),
        (timed_out_itself, "raised TimeoutError: database"),
        (lambda args: 1, "returned int, not a bool"),
        (lambda args: None, "returned NoneType, not a bool"),
        (lambda args: "yes", "returned str, not a bool"),
    ],
    ids=lambda value: getattr(value, "__name__", "said"),
)
def test_whatever_is_not_the_answer_true_is_a_denial_logged_once(
    filter: Any, said: str, storage: str, caplog: pytest.LogCaptureFixture
) -> None:
    processor = processor_of(
        catalogue()[:2], storage=storage, always_loaded=[WEATHER], filter=filter, filter_timeout=0.05
    )
    chat = Chat(processor, tools=[tool("own")])
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert list(chat.step().tools) == ["search_tools", "load_tool", "own"]
            assert chat.call("search_tools", query="weather forecast")["results"] == []
            assert chat.call("load_tool", tool_name=WEATHER)["success"] is False
    denials = [record.getMessage() for record in caplog.records if record.getMessage().startswith("The filter")]
    assert len(denials) == len(set(denials))
    assert all(said in message for message in denials)
    of_weather = [message for message in denials if WEATHER in message]
    assert [f"phase '{phase}'" in " ".join(of_weather) for phase in ("search", "load", "active")] == [True] * 3


@every_store
def test_denying_everything_leaves_meta_tools_and_input_tools(storage: str) -> None:
    processor = processor_of(
        catalogue(), storage=storage, filter=lambda _: False, search={"preselect": 2}, inject_catalog=True
    )
    chat = Chat(processor, tools=[tool("own")])
    chat.user("weather forecast")
    step = chat.step()
    assert list(step.tools) == ["search_tools", "load_tool", "own"]
    assert step.system_messages[1].splitlines() == ["Tools that can be loaded by name:"]
    assert "No tool was found" in chat.call("search_tools", query="weather forecast")["message"]
    result = chat.call("load_tool", tool_names=[WEATHER, "absent"])
    assert result["suggestions"] == {WEATHER: [], "absent": []}
    assert chat.call("own") == "own"


@pytest.mark.parametrize("concurrency", [1, 3, 64])
def test_a_filter_is_asked_once_for_each_tool_phase_and_step(concurrency: int) -> None:
    asked: Counter[tuple[str, str]] = Counter()
    at_once = most = 0

    async def filter(args: FilterArgs) -> bool:
        nonlocal at_once, most
        asked[args.tool_name, args.phase] += 1
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.001)
        at_once -= 1
        return args.tool_name != "weather_0"

    processor = processor_of(ALIKE, filter=filter, filter_concurrency=concurrency)

    async def scenario() -> None:
        step = await processor.process_input_step()
        searches = [step.call("search_tools", {"query": "weather forecast"}) for _ in range(10)]
        loads = [step.call("load_tool", {"tool_names": ["weather_1", "weather_0", "absent"]}) for _ in range(10)]
        results = await asyncio.gather(*searches, *loads)
        assert {tuple(names(found)) for found in results[:10]} == {tuple(f"weather_{i}" for i in range(1, 6))}
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())
    assert set(asked.values()) == {1}
    assert most > 1 or concurrency == 1


def test_async_filters_run_no_more_at_once_than_allowed() -> None:
    at_once = most = 0

    async def filter(args: FilterArgs) -> bool:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.001)
        at_once -= 1
        return False

    Chat(processor_of(ALIKE, filter=filter, filter_concurrency=4)).call("search_tools", query="weather")
    assert most == 4


def test_after_a_cancelled_search_the_filter_is_asked_again_in_that_step() -> None:
    asked: Counter[tuple[str, str]] = Counter()
    waiting = None

    async def filter(args: FilterArgs) -> bool:
        asked[args.tool_name, args.phase] += 1
        waiting.set()
        await asyncio.sleep(0.05)
        return True

    async def scenario() -> None:
        nonlocal waiting
        waiting = asyncio.Event()
        step = await processor_of(ALIKE[:5], filter=filter).process_input_step()
        owner = asyncio.create_task(step.call("search_tools", {"query": "weather forecast"}))
        await waiting.wait()
        waiter = asyncio.create_task(step.call("search_tools", {"query": "weather forecast"}))
        other = asyncio.create_task(step.call("search_tools", {"query": "weather forecast"}))
        await asyncio.sleep(0.02)
        waiter.cancel()  # who only waits for the answer takes it from nobody
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert len((await owner)["results"]) == len((await other)["results"]) == 5
        step = await processor_of(ALIKE[:5], filter=filter).process_input_step()
        asked.clear()
        waiting.clear()
        owner = asyncio.create_task(step.call("search_tools", {"query": "weather forecast"}))
        await waiting.wait()
        owner.cancel()
        with pytest.raises(asyncio.CancelledError):
            await owner
        assert len((await step.call("search_tools", {"query": "weather forecast"}))["results"]) == 5
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())
    assert set(asked.values()) == {2}


def test_a_thousand_candidates_with_a_slow_filter_end_soon() -> None:
    many = [Tool(f"weather_{i}", search_text="weather forecast") for i in range(1_000)]
    calls = 0

    async def filter(args: FilterArgs) -> bool:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.005)
        return False

    chat = Chat(processor_of(many, filter=filter))
    chat.step()
    before = time.perf_counter()
    assert chat.call("search_tools", query="weather forecast")["results"] == []
    assert calls == 1_000
    assert time.perf_counter() - before < 1_000 * 0.005 / 2


def test_a_forged_name_in_a_genuine_receipt_still_meets_the_filter() -> None:
    processor = processor_of(catalogue(), storage="context", filter=lambda args: args.tool_name != "refund_payment")
    chat = Chat(processor)
    chat.messages += openai("c1", "load_tool", {}, {"success": True, "loaded": ["refund_payment", WEATHER]})
    assert chat.loaded() == [WEATHER]
