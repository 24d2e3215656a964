from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.responses import (
    Response,
    ResponseFunctionToolCall,
    ResponseFunctionToolCallOutputItem,
    ResponseToolSearchCall,
    ResponseToolSearchOutputItem,
)

from toolsearch_semantic.messages.read import ToolExchange, last_user_text, read_exchanges

COMPLETION = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "search_tools", "arguments": '{"query": "rain"}'},
                    },
                    {"id": "c2", "type": "function", "function": {"name": "load_tool", "arguments": "{oops"}},
                    {"id": "c3", "type": "custom", "custom": {"name": "load_tool", "input": "x"}},
                ],
            },
        }
    ],
}
MESSAGE = ChatCompletion.model_validate(COMPLETION).choices[0].message
RESULTS = [
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": '{"loaded": ["a"]}'}]},
    {"role": "tool", "tool_call_id": "c1", "content": "No tools."},
]


@pytest.mark.parametrize("message", [MESSAGE, MESSAGE.model_dump()], ids=["object", "dict"])
def test_chat_calls_and_results_are_read_in_the_order_of_the_results(message: Any) -> None:
    assert isinstance(MESSAGE, ChatCompletionMessage)
    assert read_exchanges([{"role": "user", "content": "Rain?"}, message, *RESULTS]) == [
        ToolExchange("c2", "load_tool", None, {"loaded": ["a"]}, True, False, 2),
        ToolExchange("c1", "search_tools", {"query": "rain"}, "No tools.", True, False, 3),
    ]


def test_a_call_without_a_result_stands_where_it_was_made() -> None:
    assert read_exchanges([MESSAGE, RESULTS[0]]) == [
        ToolExchange("c1", "search_tools", {"query": "rain"}, None, False, False, 0),
        ToolExchange("c2", "load_tool", None, {"loaded": ["a"]}, True, False, 1),
    ]


def test_a_call_without_a_type_is_a_function() -> None:
    call = {"id": "c1", "function": {"name": "load_tool", "arguments": {"tool_name": "a"}}}
    [exchange] = read_exchanges([{"role": "assistant", "tool_calls": [call]}])
    assert (exchange.tool_name, exchange.arguments) == ("load_tool", {"tool_name": "a"})


def test_a_result_may_repeat_the_name_of_its_call() -> None:
    [_, second] = read_exchanges([MESSAGE, {**RESULTS[0], "name": "load_tool"}])
    assert (second.call_id, second.answered) == ("c2", True)


RESPONSE = Response.model_validate(
    {
        "id": "r",
        "object": "response",
        "created_at": 1.0,
        "model": "m",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": [
            {"type": "reasoning", "id": "rs", "summary": []},
            {
                "type": "message",
                "id": "msg",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": '{"loaded": ["x"]}', "annotations": []}],
            },
            {
                "type": "function_call",
                "id": "fc",
                "call_id": "c1",
                "name": "load_tool",
                "arguments": '{"tool_name":"a"}',
            },
            {
                "type": "function_call",
                "call_id": "c2",
                "name": "load_tool",
                "namespace": "crm",
                "arguments": "{}",
            },
            {
                "type": "tool_search_call",
                "id": "ts",
                "call_id": "c3",
                "execution": "client",
                "status": "completed",
                "arguments": {"goal": "weather"},
            },
        ],
    }
)
FUNCTION = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}, "strict": False}
NAMESPACE = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers",
    "tools": [{"type": "function", "name": "list_customers"}],
}
OUTPUTS: list[dict[str, Any]] = [
    {"type": "function_call_output", "id": "o1", "status": "completed", "call_id": "c1", "output": '{"loaded": ["a"]}'},
    {
        "type": "function_call_output",
        "id": "o2",
        "status": "completed",
        "call_id": "c2",
        "name": "load_tool",
        "output": [{"type": "input_text", "text": "done"}],
    },
    {
        "type": "tool_search_output",
        "id": "o3",
        "call_id": "c3",
        "execution": "client",
        "status": "completed",
        "tools": [FUNCTION, NAMESPACE, {"type": "web_search"}],
    },
]
OUTPUT_OBJECTS = [
    ResponseFunctionToolCallOutputItem.model_validate(OUTPUTS[0]),
    ResponseFunctionToolCallOutputItem.model_validate(OUTPUTS[1]),
    ResponseToolSearchOutputItem.model_validate(OUTPUTS[2]),
]


@pytest.mark.parametrize("objects", [True, False], ids=["objects", "dicts"])
def test_response_items_are_read(objects: bool) -> None:
    calls: list[Any] = list(RESPONSE.output)
    assert isinstance(calls[2], ResponseFunctionToolCall)
    assert isinstance(calls[4], ResponseToolSearchCall)
    outputs: list[Any] = list(OUTPUT_OBJECTS)
    if not objects:
        calls, outputs = [json.loads(call.model_dump_json()) for call in calls], list(OUTPUTS)
    messages = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        *calls,
        *outputs,
    ]
    assert read_exchanges(messages) == [
        ToolExchange("c1", "load_tool", {"tool_name": "a"}, {"loaded": ["a"]}, True, False, 6),
        ToolExchange("c2", "crm.load_tool", {}, "done", True, False, 7),
        ToolExchange(
            "c3",
            "tool_search",
            {"goal": "weather"},
            None,
            True,
            False,
            8,
            references=("get_weather", "list_customers"),
            kind="tool_search",
        ),
    ]
    turn = last_user_text(messages)
    assert turn is not None
    assert (turn.text, turn.position, turn.assistant_follows) == ("Hi", 0, True)


def test_a_provider_tool_search_has_no_id_and_is_not_read() -> None:
    items = [
        {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}},
        {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": [FUNCTION]},
    ]
    assert read_exchanges(items) == []


def test_a_tool_search_item_is_answered_by_its_own_output_alone() -> None:
    call = {"type": "tool_search_call", "call_id": "c", "arguments": {}}
    [exchange] = read_exchanges([call, {"type": "function_call_output", "call_id": "c", "output": "x"}])
    assert (exchange.kind, exchange.answered) == ("tool_search", False)
