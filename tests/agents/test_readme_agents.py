"""The README's agents run against a scripted model over HTTP, through the clients of OpenAI and Anthropic."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.agents.readme import LONGEST, agent, blocks
from tests.agents.server import Calls, Reply, Say, ScriptedModel, serving
from toolsearch_semantic import Tool

META = ["search_tools", "load_tool"]
PROVIDERS = ["openai", "anthropic"]

each_provider = pytest.mark.parametrize("provider", PROVIDERS)


def get_weather(city: str) -> dict[str, Any]:
    """Forecast of temperature and rain for a city."""
    return {"city": city, "rain": True}


async def refund_payment(order: str, amount: float) -> str:
    """Give a customer their money back."""
    return f"{amount:.2f} for {order}"


def translate_text(text: str, language: str) -> str:
    """Put a text into another language."""
    raise OSError("the dictionary is out")


def delete(path: str) -> str:
    return f"{path} is gone"


def catalogue() -> list[Any]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return [get_weather, refund_payment, translate_text, Tool("files.delete", "Remove a file for good", schema, delete)]


async def run(provider: str, defined: dict[str, Any], url: str, *questions: str, **more: Any) -> list[str]:
    options: dict[str, Any] = {"api_key": "x", "max_retries": 0, "timeout": 20}
    if provider == "openai":
        async with AsyncOpenAI(base_url=f"{url}/v1", **options) as client:
            return [await defined["run_agent"](client, question, **more) for question in questions]
    async with AsyncAnthropic(base_url=url, **options) as claude:
        return [await defined["run_agent"](claude, question, **more) for question in questions]


def talk(provider: str, *script: Reply) -> tuple[str, ScriptedModel]:
    with serving(*script) as model:
        [answer] = asyncio.run(run(provider, agent(provider, catalogue()), model.url, "Will it rain in Oslo?"))
    check(model)
    return answer, model


def check(model: ScriptedModel) -> None:
    """What holds for each conversation in which nothing is unloaded."""
    assert {model.system(turn) for turn in range(len(model.requests))} == {model.system(0)}
    assert "search_tools" in model.system(0)
    written = [json.dumps(body["tools"]).removesuffix("]") for body in model.requests]
    for before, after in pairwise(written):
        assert after.startswith(before)
    for before, after in pairwise(model.requests):
        assert after["messages"][: len(before["messages"])] == before["messages"]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = {one for one in set(threading.enumerate()) - before if not one.daemon}
    assert not left


def test_each_example_is_short() -> None:
    assert len(blocks()) == 3
    assert all(code.count("\n") <= LONGEST for code in blocks())


@each_provider
def test_a_tool_is_searched_loaded_and_called(provider: str) -> None:
    answer, model = talk(
        provider,
        Calls(("search_tools", {"query": "is it going to rain"})),
        Calls(("load_tool", {"tool_name": "get_weather"})),
        Calls(("get_weather", {"city": "Oslo"}), text="Let me look."),
        Say("It will rain in Oslo."),
    )

    assert answer == "It will rain in Oslo."
    assert [model.names(turn) for turn in range(4)] == [META, META, [*META, "get_weather"], [*META, "get_weather"]]
    weather = model.tools(2)[2]
    assert weather["description"] == "Forecast of temperature and rain for a city."
    assert weather.get("parameters", weather.get("input_schema"))["required"] == ["city"]
    assert [*model.results(3)] == ["call_0_0", "call_1_0", "call_2_0"]
    assert model.results(1)["call_0_0"]["results"][0]["name"] == "get_weather"
    assert model.results(2)["call_1_0"]["loaded"] == ["get_weather"]
    assert model.results(3)["call_2_0"] == {"city": "Oslo", "rain": True}
    assert model.errors(3) == set()


@each_provider
def test_several_tools_are_loaded_and_called_at_once(provider: str) -> None:
    _, model = talk(
        provider,
        Calls(("search_tools", {"query": "rain"}), ("search_tools", {"query": ["refund", "remove a file"]})),
        Calls(
            ("load_tool", {"tool_names": ["refund_payment", "files.delete"]}),
            ("load_tool", {"tool_name": "get_weather"}),
        ),
        Calls(
            ("get_weather", {"city": "Rome"}),
            ("files_delete", {"path": "a.txt"}),
            ("refund_payment", {"order": "A7", "amount": 9.5}),
        ),
        Say("Done."),
    )

    assert model.names(2) == model.names(3) == [*META, "refund_payment", "files_delete", "get_weather"]
    results = model.results(3)
    assert [*results] == ["call_0_0", "call_0_1", "call_1_0", "call_1_1", "call_2_0", "call_2_1", "call_2_2"]
    assert results["call_2_0"] == {"city": "Rome", "rain": True}
    assert results["call_2_1"] == "a.txt is gone"
    assert results["call_2_2"] == "9.50 for A7"


@each_provider
def test_a_model_that_calls_what_it_has_not_is_told_how_and_recovers(provider: str) -> None:
    answer, model = talk(
        provider,
        Calls(("get_wether", {"city": "Oslo"})),
        Calls(("get_weather", {"city": "Oslo"})),
        Calls(("load_tool", {"tool_name": "get_wether"})),
        Calls(("load_tool", {"tool_name": "get_weather"}), ("get_weather", {"city": "Oslo"})),
        Calls(("get_weather", {"city": "Oslo"})),
        Say("Rain."),
    )

    assert answer == "Rain."
    results = model.results(5)
    assert results["call_0_0"]["success"] is False
    assert "search_tools" in results["call_0_0"]["message"]
    assert "load_tool" in results["call_1_0"]["message"]
    assert results["call_2_0"]["suggestions"] == {"get_wether": ["get_weather"]}
    assert "next step" in results["call_3_1"]["message"]
    assert results["call_4_0"] == {"city": "Oslo", "rain": True}
    assert [len(model.names(turn)) for turn in range(6)] == [2, 2, 2, 2, 3, 3]
    if provider == "anthropic":
        assert model.errors(5) == {"call_0_0", "call_1_0", "call_3_1"}


@each_provider
def test_a_model_with_wrong_arguments_is_told_which_and_recovers(provider: str) -> None:
    broken: list[tuple[str, Any]] = [("get_weather", '{"city": ')] if provider == "openai" else []
    _, model = talk(
        provider,
        Calls(("load_tool", {"tool_names": ["get_weather", "translate_text"]})),
        Calls(
            ("get_weather", {"town": "Oslo"}),
            ("get_weather", {"city": 7}),
            ("translate_text", {"text": "rain", "language": "Norwegian"}),
            *broken,
        ),
        Calls(("get_weather", {"city": "Oslo"})),
        Say("Rain."),
    )

    results = model.results(3)
    assert "'town'" in results["call_1_0"]["message"]
    assert "city" in results["call_1_1"]["message"]
    assert "the dictionary is out" in results["call_1_2"]["message"]
    assert all("not valid JSON" in results["call_1_3"]["message"] for _ in broken)
    assert results["call_2_0"] == {"city": "Oslo", "rain": True}
    if provider == "anthropic":
        assert model.errors(3) == {"call_1_0", "call_1_1", "call_1_2"}


@each_provider
def test_agents_that_run_at_once_do_not_share_what_they_load(provider: str) -> None:
    names = ["get_weather", "refund_payment", "translate_text"]

    async def together(defined: dict[str, Any], models: list[ScriptedModel]) -> None:
        await asyncio.gather(*(run(provider, defined, model.url, "Help me.") for model in models))

    scripts = [(Calls(("load_tool", {"tool_name": name})), Say("Loaded.")) for name in names]
    with serving(*scripts[0]) as a, serving(*scripts[1]) as b, serving(*scripts[2]) as c:
        asyncio.run(together(agent(provider, catalogue()), [a, b, c]))
    assert [model.names(1) for model in (a, b, c)] == [[*META, name] for name in names]


def test_what_the_token_limiter_cuts_unloads_exactly_its_tools() -> None:
    script = [
        Calls(("load_tool", {"tool_name": "get_weather"}), text="I think. " * 400),
        Calls(("load_tool", {"tool_names": ["refund_payment", "files.delete"]})),
        Calls(("get_weather", {"city": "Oslo"})),
        Calls(("get_weather", {"city": "Oslo"}), ("files_delete", {"path": "b.txt"})),
        Say("Done."),
    ]
    defined = agent("anthropic", catalogue())
    defined["limit"] = defined["TokenLimiter"](800)
    messages: list[Any] = []
    with serving(*script) as model:
        asyncio.run(run("anthropic", defined, model.url, "Will it rain?", messages=messages))

    three = ["get_weather", "refund_payment", "files_delete"]
    # The newest call is never cut, so the third request is the first without the long message; its step was before it.
    assert [model.names(turn)[2:] for turn in range(5)] == [[], three[:1], three, three[1:], three[1:]]
    assert [*model.results(1)] == ["call_0_0"]
    assert [*model.results(2)] == ["call_1_0"]
    assert [*model.results(3)] == ["call_1_0", "call_2_0"]
    assert model.results(3)["call_2_0"] == {"city": "Oslo", "rain": True}
    assert "not loaded" in model.results(4)["call_3_0"]["message"]
    assert model.results(4)["call_3_1"] == "b.txt is gone"
    assert messages[0] == {"role": "user", "content": "Will it rain?"}


def test_a_conversation_that_goes_on_keeps_its_tools_until_their_question_is_cut() -> None:
    script = [
        Calls(("load_tool", {"tool_name": "get_weather"})),
        Say("Ready. " * 300),
        Calls(("load_tool", {"tool_name": "refund_payment"})),
        Calls(("refund_payment", {"order": "A7", "amount": 1})),
        Say("Paid."),
        Say("Bye."),
    ]
    defined = agent("anthropic", catalogue())
    messages: list[Any] = []
    with serving(*script) as model:
        url = model.url
        asyncio.run(run("anthropic", defined, url, "Weather, please.", "A refund, please.", messages=messages))
        defined["limit"] = defined["TokenLimiter"](500)
        defined["processor"] = agent("anthropic", catalogue())["processor"]  # as after a restart
        asyncio.run(run("anthropic", defined, url, "Thanks.", messages=messages))
        model.script += [Say("Bye.")]
        asyncio.run(run("anthropic", defined, url, "Thanks again.", messages=messages))

    both = ["get_weather", "refund_payment"]
    assert [model.names(turn)[2:] for turn in range(7)] == [[], both[:1], both[:1], both, both, both, both[1:]]
    assert model.requests[5]["messages"][0]["content"] == "A refund, please."


@pytest.mark.parametrize("budget", [10, 60, 120, 200, 300, 400, 1_000])
def test_no_cut_of_the_token_limiter_parts_a_call_from_its_results(budget: int) -> None:
    limit = agent("anthropic", catalogue())["TokenLimiter"](budget)

    def turn(number: int) -> list[Any]:
        use = {"type": "tool_use", "id": f"c{number}", "name": "get_weather", "input": {"city": "Oslo"}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "rain", "is_error": False}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]

    question = [{"role": "user", "content": "Rain?"}]
    said = [{"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}]
    messages = [*question, *turn(0), *turn(1), *said, *question, *turn(2), *turn(3), *turn(4)]
    kept = limit(messages)

    assert kept[0] == question[0]
    assert kept[-2:] == turn(4)
    if len(json.dumps(messages)) / 4 <= budget:
        assert kept == messages
    else:
        assert len(kept) < len(messages)
        assert len(json.dumps(kept)) / 4 <= budget or kept == [*question, *turn(4)]
    asked: list[str] = []
    for message in kept:
        content = message["content"] if isinstance(message["content"], list) else []
        assert [block["tool_use_id"] for block in content if block["type"] == "tool_result"] == asked
        asked = [block["id"] for block in content if block["type"] == "tool_use"]
