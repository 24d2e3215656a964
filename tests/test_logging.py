"""What a host can follow in the log: one event for each thing that happened, and nothing that a user said."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.conftest import BreakableEncoder
from toolsearch_semantic import FilterArgs, Tool, ToolSearch, ToolSearchProcessor

SECRET = "hunter2"
THREAD = "thread-7"


def refund(order: str) -> str:
    """Give a customer their money back."""
    raise ValueError(f"no order {order}")


def get_weather(city: str) -> str:
    """Forecast of rain for a city."""
    return f"Rain in {city}"


def events(caplog: pytest.LogCaptureFixture) -> list[tuple[Any, Any]]:
    own = [record for record in caplog.records if record.name.startswith("toolsearch_semantic")]
    return [(getattr(record, "event", None), getattr(record, "thread_id", None)) for record in own]


def play(processor: ToolSearchProcessor, *calls: tuple[str, Any]) -> None:
    async def steps() -> None:
        for name, arguments in calls:
            step = await processor.process_input_step(thread_id=THREAD)
            await step.call(name, arguments)

    asyncio.run(steps())


@pytest.fixture(autouse=True)
def level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="toolsearch_semantic")


def test_a_search_a_load_and_a_denied_load_are_one_event_each(caplog: pytest.LogCaptureFixture) -> None:
    processor = ToolSearchProcessor([refund, get_weather])
    play(processor, ("search_tools", {"query": f"rain {SECRET}"}))
    assert events(caplog) == [("search", THREAD)]
    play(processor, ("load_tool", {"tool_name": "get_weather"}))
    assert events(caplog)[1:] == [("load", THREAD)]
    play(processor, ("load_tool", {"tool_name": f"{SECRET}_tool"}))
    assert events(caplog)[2:] == [("denial", THREAD)]


def test_a_tool_that_makes_room_is_one_unload_event(caplog: pytest.LogCaptureFixture) -> None:
    play(
        ToolSearchProcessor([refund, get_weather], max_loaded=1),
        ("load_tool", {"tool_name": "refund"}),
        ("load_tool", {"tool_name": "get_weather"}),
    )
    assert sorted(events(caplog)) == [("load", THREAD), ("load", THREAD), ("unload", THREAD)]


def test_nothing_that_the_model_or_a_tool_said_is_logged_at_info(caplog: pytest.LogCaptureFixture) -> None:
    play(
        ToolSearchProcessor([refund, get_weather]),
        ("search_tools", {"query": [SECRET, f"refund {SECRET}"]}),
        ("load_tool", {"tool_names": ["refund", "get_weather", SECRET]}),
        ("refund", {"order": SECRET}),
        ("get_weather", {"city": SECRET}),
        ("get_weather", {"town": SECRET}),
        (SECRET, {"query": SECRET}),
    )
    assert ("tool error", THREAD) in events(caplog)
    assert caplog.records
    assert all(SECRET not in str(vars(record)) + record.getMessage() for record in caplog.records)


def test_a_filter_that_fails_is_one_denial_event_for_each_tool_and_phase(caplog: pytest.LogCaptureFixture) -> None:
    def failing(args: FilterArgs) -> bool:
        raise RuntimeError("down")

    processor = ToolSearchProcessor([refund, get_weather], filter=failing)
    play(processor, *[("load_tool", {"tool_name": "refund"})] * 3)
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    told = {(record.__dict__["event"], record.__dict__["tool"], record.__dict__["phase"]) for record in warned}
    assert len(warned) == len(told)
    assert ("denial", "refund", "load") in told


def test_a_filter_that_fails_is_logged_with_its_thread(caplog: pytest.LogCaptureFixture) -> None:
    play(
        ToolSearchProcessor([refund], filter=lambda args: "yes"),  # type: ignore[arg-type, return-value]
        ("load_tool", {"tool_name": "refund"}),
    )
    assert {thread for _, thread in events(caplog)} == {THREAD}


def test_a_fallback_to_keywords_is_one_event(caplog: pytest.LogCaptureFixture, encoder: BreakableEncoder) -> None:
    search = ToolSearch([Tool("get_weather", "Forecast of rain")], encoder=encoder)
    encoder.failing = RuntimeError("out of memory")
    play(ToolSearchProcessor(search), ("search_tools", {"query": "rain"}), ("search_tools", {"query": "forecast"}))
    assert [event for event, _ in events(caplog)].count("fallback") == 1
