"""Time the steps of the processor on this machine, against writing the same tools as JSON, which any agent does.

    python benchmarks/steps.py

The tools are those of the demo catalogue, varied. Times are wall-clock medians on whatever else the machine does; the
ratio to ``json.dumps`` carries over from machine to machine better than they do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np

from toolsearch_semantic import Tool, ToolSearchProcessor, as_tools
from toolsearch_semantic.formats.openai_chat import to_openai_chat

WARM_UP = 20
QUERY = "give the customer their money back"
STATIC_TARGET, RESOLVED_TARGET, CONTEXT_TARGET = 1.0, 5.0, 20.0  # milliseconds, medians


def varied(count: int) -> list[Tool]:
    """Give ``count`` tools of distinct names and texts, with executors."""
    text = files("toolsearch_semantic.demo").joinpath("tools.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    made = [
        {**record, "name": f"{record['name']}_{number}", "description": f"{record['description']} ({number})"}
        for number in range(-(-count // len(records)))
        for record in records
    ]
    return [replace(tool, execute=lambda **given: given) for tool in as_tools(made[:count])]


def conversation(tools: list[Tool], count: int) -> list[dict[str, Any]]:
    """Write ``count`` messages: a question, a call of load_tool, its result, and an answer, again and again."""
    messages: list[dict[str, Any]] = []
    for number in range(count // 4):
        name = tools[number % 20].name
        arguments = json.dumps({"tool_name": name})
        function = {"name": "load_tool", "arguments": arguments}
        call = {"id": f"c{number}", "type": "function", "function": function}
        result = json.dumps({"success": True, "message": f"Loaded: {name}.", "loaded": [name]})
        messages += [
            {"role": "user", "content": f"Please do number {number} of the list."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": result},
            {"role": "assistant", "content": "It is done."},
        ]
    return messages


async def milliseconds(work: Callable[[], Awaitable[object]], repeats: int) -> tuple[float, float]:
    """Time calls one after the other: median and 95th percentile."""
    taken = []
    for _ in range(WARM_UP + repeats):
        start = time.perf_counter()
        await work()
        taken.append((time.perf_counter() - start) * 1_000)
    return float(np.median(taken[WARM_UP:])), float(np.percentile(taken[WARM_UP:], 95))


def commit() -> str:
    """Name the commit that is checked out, if this is a checkout."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


async def measure(count: int, repeats: int) -> list[tuple[str, tuple[float, float], float | None]]:
    """Give what was timed, the times, and the target, if any."""
    tools = varied(count)
    dicts = to_openai_chat(tools)
    messages = conversation(tools, 1_000)
    static = ToolSearchProcessor(tools)
    context = ToolSearchProcessor(tools, storage="context")
    resolving = ToolSearchProcessor(include_resolved_tools=True)
    step = await static.process_input_step()

    async def dumps() -> object:
        return json.dumps(dicts)

    def fresh_tools() -> list[Tool]:
        # A request brings instances of its own, as a host that binds executors to a user makes them.
        return [replace(tool, execute=lambda **given: given) for tool in tools]

    def fresh_dicts() -> list[dict[str, Any]]:
        return [{**one, "function": {**one["function"]}} for one in dicts]

    async def timed_with(make: Callable[[], Any]) -> tuple[float, float]:
        given = [make() for _ in range(10)]  # made beforehand: that is the host's time
        turn = iter(range(10**9))
        return await milliseconds(lambda: resolving.process_input_step(tools=given[next(turn) % 10]), repeats)

    async def timed_same(given: Any) -> tuple[float, float]:
        return await milliseconds(lambda: resolving.process_input_step(tools=given), repeats)

    return [
        ("json.dumps of the tools", await milliseconds(dumps, repeats), None),
        ("static, nothing loaded", await milliseconds(static.process_input_step, repeats), STATIC_TARGET),
        ("resolved, the same Tools", await timed_same(tools), RESOLVED_TARGET),
        ("resolved, new equal Tools", await timed_with(fresh_tools), RESOLVED_TARGET),
        ("resolved, the same OpenAI dicts", await timed_same(dicts), None),
        ("resolved, new equal OpenAI dicts", await timed_with(fresh_dicts), None),
        (
            "context store, 1,000 messages",
            await milliseconds(lambda: context.process_input_step(messages=messages), repeats),
            CONTEXT_TARGET,
        ),
        ("search call", await milliseconds(lambda: step.call("search_tools", {"query": QUERY}), repeats), None),
    ]


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description="Time the processor's steps on this machine.")
    parser.add_argument("--count", type=int, default=1_000, help="how many tools (default 1000)")
    parser.add_argument("--repeats", type=int, default=200, help="timed calls of each (default 200)")
    arguments = parser.parse_args()
    rows = asyncio.run(measure(arguments.count, arguments.repeats))
    floor = rows[0][1][0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; commit {commit()}")
    print(f"{arguments.count:,} tools of the demo catalogue, varied; medians of {arguments.repeats}\n")
    print("| a step | ms | p95 | to json.dumps | target |")
    print("|---|--:|--:|--:|---|")
    for label, (middle, high), target in rows:
        kept = "" if target is None else f"{target:g} ms, {'met' if middle <= target else 'MISSED'}"
        print(f"| {label} | {middle:.3f} | {high:.3f} | {middle / floor:.2f} | {kept} |")


if __name__ == "__main__":
    main()
