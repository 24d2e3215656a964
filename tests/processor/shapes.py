"""One call and its result, in the shape of each provider that a conversation may come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

from tests.processor.conversation import Writer, openai


def responses(call_id: str, name: str, arguments: Mapping[str, Any], result: Any) -> list[Any]:
    return [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": json.dumps(dict(arguments))},
        {"type": "function_call_output", "call_id": call_id, "output": json.dumps(result)},
    ]


def tool_use(call_id: str, name: str, arguments: Mapping[str, Any], content: Any, **more: Any) -> list[Any]:
    return [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": call_id, "name": name, "input": dict(arguments)}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": content, **more}]},
    ]


def anthropic(call_id: str, name: str, arguments: Mapping[str, Any], result: Any) -> list[Any]:
    return tool_use(call_id, name, arguments, json.dumps(result))


def anthropic_blocks(call_id: str, name: str, arguments: Mapping[str, Any], result: Any) -> list[Any]:
    return tool_use(call_id, name, arguments, [{"type": "text", "text": json.dumps(result)}])


def langchain(call_id: str, name: str, arguments: Mapping[str, Any], result: Any) -> list[Any]:
    return [
        AIMessage("", tool_calls=[{"name": name, "args": dict(arguments), "id": call_id}]),
        ToolMessage(json.dumps(result), tool_call_id=call_id),
    ]


def pydantic_ai(call_id: str, name: str, arguments: Mapping[str, Any], result: Any) -> list[Any]:
    return [
        ModelResponse(parts=[ToolCallPart(name, dict(arguments), tool_call_id=call_id)]),
        ModelRequest(parts=[ToolReturnPart(name, result, tool_call_id=call_id)]),
    ]


def ai_sdk_invocation(call_id: str, name: str, arguments: Mapping[str, Any], result: Any) -> list[Any]:
    invocation = {
        "state": "result", "toolCallId": call_id, "toolName": name, "args": dict(arguments), "result": result,
    }  # fmt: skip
    part = {"type": "tool-invocation", "toolInvocation": invocation}
    return [{"id": call_id, "role": "assistant", "content": "", "parts": [part]}]


def ai_sdk(call_id: str, name: str, arguments: Mapping[str, Any], result: Any) -> list[Any]:
    part = {
        "type": f"tool-{name}", "toolCallId": call_id, "state": "output-available", "input": dict(arguments),
        "output": result,
    }  # fmt: skip
    return [{"id": call_id, "role": "assistant", "parts": [part]}]


def mcp_text(call_id: str, name: str, arguments: Mapping[str, Any], result: Any) -> list[Any]:
    content = {"content": [{"type": "text", "text": json.dumps(result)}], "isError": False}
    return openai(call_id, name, arguments, content)


def mcp_structured(call_id: str, name: str, arguments: Mapping[str, Any], result: Any) -> list[Any]:
    content = {"content": [{"type": "text", "text": "see structured content"}], "structuredContent": result}
    return openai(call_id, name, arguments, content)


WRITERS: list[Writer] = [
    openai, responses, anthropic, anthropic_blocks, langchain, pydantic_ai, ai_sdk_invocation, ai_sdk, mcp_text,
    mcp_structured,
]  # fmt: skip
