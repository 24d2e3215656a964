"""A small catalogue with executors, and a host that keeps a conversation as an agent's loop does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from toolsearch_semantic import StepResult, Tool, ToolSearchProcessor
from toolsearch_semantic.encoders.bundled import BundledEncoder

Message = dict[str, Any]
Writer = Callable[[str, str, Mapping[str, Any], Any], list[Any]]

ENCODER = BundledEncoder("static")

every_store = pytest.mark.parametrize("storage", ["in-memory", "context"])


def tool(name: str, description: str = "", *, answer: Any = None, **properties: Any) -> Tool:
    """A tool that returns its name, or ``answer``, with what it was given."""
    said = name if answer is None else answer

    def execute(**given: Any) -> Any:
        return [said, given] if given else said

    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(name, description, schema, execute)


def catalogue() -> list[Tool]:
    """Eight tools that have little in common."""
    return [
        tool("get_weather", "Forecast of temperature and rain for a city", city={"type": "string"}),
        tool("refund_payment", "Give a customer their money back", amount={"type": "number"}),
        tool("createIssue", "Open a new bug report in the tracker"),
        tool("files.delete", "Remove a file for good"),
        tool("translate_text", "Put a text into another language"),
        tool("send_email", "Write a mail to somebody"),
        tool("play_music", "Play a song or an album on the speakers"),
        tool("book_flight", "Reserve a seat on a plane"),
    ]


def processor_of(tools: Any = (), **options: Any) -> ToolSearchProcessor:
    """A processor with the bundled model, which is loaded once for all tests."""
    return ToolSearchProcessor(tools, **{"encoder": ENCODER, **options})


def openai(call_id: str, name: str, arguments: Mapping[str, Any], result: Any) -> list[Message]:
    """A call and its result as OpenAI Chat Completions has them."""
    function = {"name": name, "arguments": json.dumps(dict(arguments))}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call_id, "content": json.dumps(result)},
    ]


class Chat:
    """A conversation, with the request's tools and context, over a processor."""

    def __init__(
        self,
        processor: ToolSearchProcessor,
        *,
        thread_id: str | None = None,
        tools: Any = None,
        context: Mapping[str, Any] | None = None,
        write: Writer = openai,
    ) -> None:
        self.processor = processor
        self.thread_id = thread_id
        self.tools = tools
        self.context = context
        self.write = write
        self.messages: list[Any] = []
        self.state: dict[str, Any] = {}
        self.now: StepResult | None = None
        self._calls = 0

    @property
    def _request(self) -> dict[str, Any]:
        return {
            "messages": list(self.messages),
            "tools": self.tools,
            "request_context": self.context,
            "thread_id": self.thread_id,
            "state": self.state,
        }

    def user(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})
        self.state = {}  # a new request

    async def take_step(self) -> StepResult:
        self.now = await self.processor.process_input_step(**self._request)
        return self.now

    async def make_call(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool of the step, and append what was called and returned."""
        assert self.now is not None
        self._calls += 1
        number = self._calls
        result = await self.now.call(name, arguments)
        self.messages += self.write(f"call-{id(self)}-{number}", name, arguments, result)
        return result

    def step(self) -> StepResult:
        return asyncio.run(self.take_step())

    def call(self, name: str, /, **arguments: Any) -> Any:
        if self.now is None:
            self.step()
        return asyncio.run(self.make_call(name, **arguments))

    def load(self, *names: str) -> Any:
        """Take a step, and load in it."""
        self.step()
        return self.call("load_tool", tool_names=list(names))

    def loaded(self) -> list[str]:
        """The names that the next step shows beside the meta-tools."""
        return [name for name in self.step().tools if name not in {"search_tools", "load_tool"}]

    def loaded_tools(self) -> dict[str, Tool]:
        return asyncio.run(self.processor.loaded_tools(**self._request))


def names(found: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> list[str]:
    """The names in a search's results."""
    results = found["results"] if isinstance(found, Mapping) else found
    return [hit["name"] for hit in results]
