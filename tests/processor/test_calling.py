from __future__ import annotations

import asyncio
import copy
import json
import logging
from functools import partial
from typing import Any

import pytest

from tests.processor.conversation import Chat, catalogue, processor_of, tool
from toolsearch_semantic import ErrorResult, StepResult, Tool

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city"],
}


def step_with(*tools: Tool) -> StepResult:
    """A step with input tools."""
    return processor_of(catalogue()).process_input_step_sync(tools=tools)


def call(execute: Any, arguments: Any = None, schema: dict[str, Any] | None = None) -> Any:
    return step_with(Tool("own", "", schema or {"type": "object"}, execute)).call_sync("own", arguments)


def test_meta_tools_input_tools_and_loaded_tools_run_through_call() -> None:
    chat = Chat(processor_of(catalogue()), tools=[tool("own")])
    assert chat.call("search_tools", query="weather forecast")["results"][0]["name"] == "get_weather"
    assert chat.call("load_tool", tool_name="get_weather")["success"]
    chat.step()
    assert (chat.call("own"), chat.call("get_weather", city="x")) == ("own", ["get_weather", {"city": "x"}])


def test_sync_and_async_executors_run_alike() -> None:
    async def coroutine(city: str) -> str:
        await asyncio.sleep(0)
        return city.upper()

    class Callable:
        async def __call__(self, city: str) -> str:
            return city.upper()

    def sync_that_gives_an_awaitable(city: str) -> Any:
        return coroutine(city)

    for execute in (lambda city: city.upper(), coroutine, Callable(), partial(coroutine), sync_that_gives_an_awaitable):
        assert call(execute, {"city": "rome"}) == "ROME"


def test_a_plain_function_does_not_block_the_event_loop() -> None:
    async def scenario() -> Any:
        loop = asyncio.get_running_loop()
        reached = asyncio.Event()

        def execute() -> str:
            asyncio.run_coroutine_threadsafe(set_it(), loop).result(5)
            return "done"

        async def set_it() -> None:
            reached.set()

        step = await processor_of().process_input_step(tools=[Tool("own", execute=execute)])
        return await asyncio.wait_for(step.call("own"), 10)

    assert asyncio.run(scenario()) == "done"


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("bad \u202ecity"), "ValueError: bad city"),
        (StopIteration("x"), "StopIteration: x"),
        (KeyError(), "KeyError"),
        (Unprintable(), "Unprintable"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_an_executors_exception_is_an_error_result_and_logged(
    error: Exception, said: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def sync() -> None:
        raise error

    async def coroutine() -> None:
        raise error

    with caplog.at_level(logging.INFO):
        result = call(coroutine if is_async else sync)
    assert isinstance(result, ErrorResult)
    if not (is_async and isinstance(error, StopIteration)):  # Python says so itself there
        assert result["message"].endswith(said)
    assert result["message"].startswith("The tool own failed: ")
    assert [record.getMessage() for record in caplog.records if "own" in record.getMessage()]


def test_no_argument_value_is_logged_at_info(caplog: pytest.LogCaptureFixture) -> None:
    def fail(city: str) -> None:
        raise ValueError(city)

    secret = "hunter2"
    with caplog.at_level(logging.INFO):
        call(fail, {"city": secret})
        chat = Chat(processor_of(catalogue()))
        chat.call("search_tools", query=secret)
        chat.call("load_tool", tool_name=secret)
        chat.load("get_weather")
        chat.step()
        chat.call("get_weather", city=secret)
    events = [record.event for record in caplog.records if hasattr(record, "event")]
    assert events == ["tool error", "search", "denial", "load"]
    assert secret not in caplog.text.replace("Traceback", "")


def test_cancellation_passes_through() -> None:
    async def scenario() -> None:
        started = asyncio.Event()

        async def execute() -> None:
            started.set()
            await asyncio.sleep(60)

        step = await processor_of().process_input_step(tools=[Tool("own", execute=execute)])
        task = asyncio.create_task(step.call("own"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def test_a_result_comes_back_untouched() -> None:
    for result in (object(), {"success": False}, None, [1], b"bytes", "x" * 100_000, iter(())):
        assert call(lambda result=result: result) is result


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"city": 3}, ["city", "3 is not of type 'string'"]),
        ({}, ["'city' is a required property", "required city", "optional days, unit"]),
        ({"city": "x", "town": 1}, ["no argument 'town'"]),
        ({"city": "x", "unit": "K"}, ["unit", "'K' is not one of ['C', 'F']"]),
        ({"city": "x", "days": None}, ["days", "None is not of type 'integer'"]),
        ([1, 2], ["must be an object, not [1, 2]"]),
        ("7", ["must be an object, not 7"]),
        ({1: "x"}, ["must be an object"]),
        ({(1, 2): "x"}, ["must be an object, not dict"]),
        ("{'city': 'x'}", ["not valid JSON"]),
        ('{"city": "x"', ["not valid JSON"]),
        ('{"city": "x", "days": NaN}', ["not valid JSON", "NaN"]),
        ("[" * 100_000, ["not valid JSON"]),
        (b"\xff", ["not valid JSON"]),
    ],
)
def test_wrong_arguments_are_an_error_result_that_says_which_and_what(arguments: Any, parts: list[str]) -> None:
    calls: list[Any] = []
    result = call(lambda **given: calls.append(given), arguments, SCHEMA)
    assert isinstance(result, ErrorResult)
    assert result["success"] is False
    assert [part for part in parts if part not in result["message"]] == []
    assert result["message"].endswith("It takes: required city; optional days, unit.")
    assert calls == []


@pytest.mark.parametrize("arguments", [{"city": "x"}, '{"city": "x"}', b'{"city": "x"}'])
def test_arguments_come_as_an_object_or_as_json_text(arguments: Any) -> None:
    assert call(lambda city: city, arguments, SCHEMA) == "x"


@pytest.mark.parametrize("arguments", [None, {}, "", "  ", "{}", "null"])
def test_no_arguments_are_none(arguments: Any) -> None:
    assert call(lambda: "ran", arguments) == "ran"


def test_a_schema_that_cannot_be_checked_lets_the_executor_decide() -> None:
    for schema in ({"properties": {"a": {"type": "nonsense"}}}, {"$ref": "https://example.org/x"}, {"$ref": "#/no"}):
        assert call(lambda **given: given, {"a": 1}, {"type": "object", **schema}) == {"a": 1}


@pytest.mark.parametrize("name", ["no_such", "", None, 3, ["search_tools"], {"a": 1}, "\u202e"])
def test_a_tool_that_is_not_there_is_an_error_result(name: Any) -> None:
    result = step_with().call_sync(name)
    assert isinstance(result, ErrorResult)
    assert result["success"] is False


def test_a_tool_that_is_not_loaded_says_how_to_load_it() -> None:
    assert "Load it with load_tool" in step_with().call_sync("get_weather", {"city": "x"})["message"]
    step = processor_of(catalogue(), search={"auto_load": True}).process_input_step_sync()
    assert "Search for it with search_tools" in step.call_sync("get_weather", {"city": "x"})["message"]


def test_a_tool_without_an_executor_says_who_runs_it() -> None:
    assert "run by whoever provides it" in step_with(Tool("own")).call_sync("own")["message"]


def test_an_error_result_is_a_plain_json_object() -> None:
    result = step_with().call_sync("no_such \ud800")
    assert json.loads(json.dumps(result)) == result == copy.deepcopy(result)
    json.dumps(result, ensure_ascii=False).encode()


def test_the_sync_bridge_works_inside_and_outside_a_running_loop() -> None:
    processor = processor_of(catalogue())

    async def inside() -> Any:
        step = processor.process_input_step_sync(thread_id="inside")
        assert step.call_sync("load_tool", {"tool_name": "get_weather"})["success"]
        return processor.process_input_step_sync(thread_id="inside").call_sync("get_weather", {"city": "x"})

    assert asyncio.run(inside()) == ["get_weather", {"city": "x"}]
    step = processor.process_input_step_sync(thread_id="outside")
    assert step.call_sync("load_tool", {"tool_name": "get_weather"})["success"]
    assert "get_weather" in processor.process_input_step_sync(thread_id="outside").tools
    with pytest.raises(KeyboardInterrupt):
        call(interrupt)


def interrupt() -> None:
    raise KeyboardInterrupt


MONEY = {"type": "object", "properties": {"amount": {"type": "number", "multipleOf": 0.01}}}


@pytest.mark.parametrize("arguments", ['{"amount": 1e999}', '{"amount": 1' + "0" * 400 + "}", {"amount": float("inf")}])
def test_numbers_that_are_too_large_are_refused_and_do_not_raise(arguments: Any) -> None:
    result = call(lambda amount: amount, arguments, MONEY)
    assert isinstance(result, ErrorResult)
    assert "too large" in result["message"]


def test_nesting_switches_no_check_off() -> None:
    tree = {"$ref": "#/$defs/tree"}
    schema = {
        "type": "object",
        "properties": {"mode": {"enum": ["read"]}, "tree": tree},
        "$defs": {"tree": {"type": "object", "properties": {"child": tree}}},
    }
    deep: dict[str, Any] = {}
    for _ in range(400):
        deep = {"child": deep}
    for arguments in ({"mode": "delete", "tree": deep}, {"tree": deep, "mode": "delete"}):
        result = call(lambda **given: "ran", arguments, schema)
        assert isinstance(result, ErrorResult)
        assert "nested too deeply" in result["message"] or "'delete' is not one of" in result["message"]


def test_a_pattern_that_python_cannot_read_leaves_the_rest_of_the_schema_checked() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "string", "pattern": r"^\p{L}+$"}, "count": {"type": "integer"}},
        "required": ["count"],
    }
    assert call(lambda n, count: [n, count], {"n": "Zoë", "count": 2}, schema) == ["Zoë", 2]
    result = call(lambda **given: given, {"n": "Zoë", "count": "many"}, schema)
    assert "'many' is not of type 'integer'" in result["message"]
    result = call(lambda **given: given, {"n": 5, "count": 2}, schema)
    assert "5 is not of type 'string'" in result["message"]
    named = {"type": "object", "patternProperties": {r"\p{L}": {}, "^n": {"type": "integer"}}}
    assert call(lambda **given: given, {"n1": 1, "é": 2}, named) == {"n1": 1, "é": 2}
    assert "'x' is not of type 'integer'" in call(lambda **given: given, {"n1": "x"}, named)["message"]


def test_a_wrong_optional_argument_is_told_what_was_expected() -> None:
    schema = {"type": "object", "properties": {"days": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}
    message = call(lambda days: days, {"days": "tomorrow"}, schema)["message"]
    assert "days: 'tomorrow' is not of type integer or null" in message


def test_what_would_end_the_host_ends_only_the_call() -> None:
    async def waits_for_something_cancelled() -> None:
        task = asyncio.ensure_future(asyncio.sleep(60))
        task.cancel()
        await task

    async def fails_in_a_group() -> None:
        raise BaseExceptionGroup("several", [asyncio.CancelledError()])

    def exits() -> None:
        raise SystemExit(2)

    async def exits_later() -> None:
        raise SystemExit(2)

    for execute, said in (
        (waits_for_something_cancelled, "CancelledError"),
        (fails_in_a_group, "BaseExceptionGroup"),
        (exits, "SystemExit: 2"),
        (exits_later, "SystemExit: 2"),
    ):
        result = call(execute)
        assert isinstance(result, ErrorResult), execute
        assert said in result["message"]


def test_a_tool_cannot_change_the_hosts_messages() -> None:
    given = {"items": [1]}
    assert call(lambda items: items.append(2) or items, given) == [1, 2]
    assert given == {"items": [1]}


def test_synchronous_calls_leave_the_hosts_event_loop_alone_and_share_one() -> None:
    lock = asyncio.Lock()
    loops = set()

    async def execute() -> str:
        async with lock:
            loops.add(asyncio.get_running_loop())
            await asyncio.sleep(0)
        return "done"

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        step = step_with(Tool("own", execute=execute))
        assert [step.call_sync("own") for _ in range(3)] == ["done"] * 3
        assert asyncio.get_event_loop() is loop
        assert len(loops) == 1
        assert loop not in loops
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_a_name_of_its_own_never_runs_another_tool() -> None:
    first, second = tool("db.drop", "Drop a database"), tool("db_drop", "Drop a table")
    processor = processor_of([first, second])
    one, other = (processor.process_input_step_sync(thread_id="t") for _ in range(2))
    assert one.call_sync("load_tool", {"tool_name": "db.drop"})["success"]
    assert other.call_sync("load_tool", {"tool_name": "db_drop"})["success"]
    step = processor.process_input_step_sync(thread_id="t")
    assert isinstance(step.call_sync("db_drop"), ErrorResult) or step.call_sync("db_drop") == "db_drop"


def test_results_do_not_repeat_long_names_at_length() -> None:
    step = step_with(
        Tool("own", input_schema={"type": "object", "properties": {"a": {}}}, execute=lambda **given: given)
    )
    assert len(json.dumps(step.call_sync("own", {f"{i}" * 1_000_000: 1 for i in range(3)}))) < 5_000
    assert len(json.dumps(step.call_sync("load_tool", {"tool_name": "x" * 1_000_000}))) < 5_000
    many = step.call_sync("load_tool", {"tool_names": [f"unknown_{i}" for i in range(3_000)]})
    assert len(json.dumps(many)) < 20_000
    assert "2980 names" in many["message"]
