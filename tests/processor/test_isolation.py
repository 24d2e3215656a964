from __future__ import annotations

import asyncio
import threading
from typing import Any

from tests.processor.conversation import Chat, catalogue, every_store, names, processor_of
from toolsearch_semantic import Tool

USERS, REQUESTS, TOOLS = 20, 200, 50
SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


def brought_by(user: str) -> list[Tool]:
    """The tools of one user: names and texts are everybody's, executors their own, sync and async by turns."""

    def make(i: int) -> Tool:
        async def coroutine(number: int) -> tuple[str, int, int]:
            await asyncio.sleep(0)
            return user, i, number

        def plain(number: int) -> tuple[str, int, int]:
            return user, i, number

        return Tool(f"tool_{i}", f"Looks into drawer number {i} of the user", SCHEMA, coroutine if i % 2 else plain)

    return [make(i) for i in range(TOOLS)]


@every_store
def test_under_load_nobody_ever_runs_anothers_tool(storage: str) -> None:
    processor = processor_of(catalogue(), include_resolved_tools=True, storage=storage)
    wrong: list[Any] = []
    done: list[str] = []

    async def one_request(number: int) -> None:
        user = f"user-{number % USERS}"
        mine = brought_by(user)
        chat = Chat(processor, thread_id=user, tools=mine, context={"user": user})
        wanted = [(number * 7 + step) % TOOLS for step in range(3)]
        step = await chat.take_step()
        found = await step.call("search_tools", {"query": f"drawer number {wanted[0]}"})
        if not names(found):
            wrong.append(found)
        loads = [chat.make_call("load_tool", tool_name=f"tool_{i}") for i in wanted]
        for loaded in await asyncio.gather(*loads):
            if not loaded["success"]:
                wrong.append(loaded)
        step = await chat.take_step()
        calls = [(i, step.call(f"tool_{i}", {"number": number})) for i in wanted]
        for (i, _), result in zip(calls, await asyncio.gather(*(call for _, call in calls)), strict=True):
            if result != (user, i, number):
                wrong.append((user, i, number, result))
        for name, tool in step.tools.items():
            if name.startswith("tool_") and tool is not mine[int(name.removeprefix("tool_"))]:
                wrong.append((user, name))
        done.append(user)

    async def scenario() -> None:
        await asyncio.gather(*(one_request(number) for number in range(REQUESTS)))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())
    assert wrong == []
    assert len(done) == REQUESTS
    assert set(done) == {f"user-{i}" for i in range(USERS)}
    count = processor.get_state_stats().thread_count
    assert count == (USERS if storage == "in-memory" else 0)


@every_store
def test_threads_that_each_run_their_own_event_loop_do_not_mix(storage: str) -> None:
    processor = processor_of(catalogue(), include_resolved_tools=True, storage=storage)
    wrong: list[Any] = []

    def work(user: str) -> None:
        chat = Chat(processor, thread_id=user, tools=brought_by(user)[:5])
        for number in range(5):
            chat.load(f"tool_{number}")
            chat.step()
            result = chat.call(f"tool_{number}", number=number)
            if result != (user, number, number):
                wrong.append((user, result))

    workers = [threading.Thread(target=work, args=(f"user-{i}",)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
