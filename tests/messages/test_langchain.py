from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_openai_messages,
    message_to_dict,
)

from toolsearch_semantic.messages.read import ToolExchange, last_user_text, read_exchanges

CALLS = [
    {"name": "search_tools", "args": {"query": "rain"}, "id": "c1", "type": "tool_call"},
    {"name": "load_tool", "args": {"tool_name": "a"}, "id": "c2", "type": "tool_call"},
]
MESSAGES: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("Rain?"),
    AIMessage("", tool_calls=CALLS),
    ToolMessage('{"results": []}', tool_call_id="c1", name="search_tools"),
    ToolMessage([{"type": "text", "text": '{"loaded": ["a"]}'}], tool_call_id="c2", name="load_tool"),
]
EXPECTED = [
    ToolExchange("c1", "search_tools", {"query": "rain"}, {"results": []}, True, False, 3),
    ToolExchange("c2", "load_tool", {"tool_name": "a"}, {"loaded": ["a"]}, True, False, 4),
]


@pytest.mark.parametrize(
    "messages",
    [
        MESSAGES,
        [message.model_dump() for message in MESSAGES],
        [message_to_dict(message) for message in MESSAGES],
        convert_to_openai_messages(MESSAGES),
    ],
    ids=["objects", "dumped", "wrapped", "openai"],
)
def test_messages_are_read(messages: list[Any]) -> None:
    assert read_exchanges(messages) == EXPECTED
    turn = last_user_text(messages)
    assert turn is not None
    assert (turn.text, turn.position, turn.assistant_follows) == ("Rain?", 1, True)


def test_calls_that_the_content_repeats_are_read_once() -> None:
    content: list[str | dict[Any, Any]] = [{"type": "tool_use", "id": "c2", "name": "load_tool", "input": {}}]
    message = AIMessage(content, tool_calls=CALLS[1:])
    assert read_exchanges([message, MESSAGES[4]]) == [
        ToolExchange("c2", "load_tool", {"tool_name": "a"}, {"loaded": ["a"]}, True, False, 1)
    ]


def test_a_chunk_counts_as_its_message() -> None:
    chunk = AIMessageChunk(
        "", tool_call_chunks=[{"name": "load_tool", "args": '{"tool_name": "a"}', "id": "c2", "index": 0}]
    )
    assert read_exchanges([chunk, MESSAGES[4]])[0].arguments == {"tool_name": "a"}


def answered(message: ToolMessage) -> ToolExchange:
    [exchange] = read_exchanges([AIMessage("", tool_calls=CALLS[1:]), message])
    return exchange


def test_an_error_status_is_an_error() -> None:
    exchange = answered(ToolMessage('{"loaded": ["a"]}', tool_call_id="c2", status="error"))
    assert (exchange.answered, exchange.is_error) == (True, True)


def test_structured_content_of_an_artifact_is_preferred() -> None:
    artifact = {"structured_content": {"loaded": ["a"]}}
    assert answered(ToolMessage("{}", tool_call_id="c2", artifact=artifact)).result == {"loaded": ["a"]}


def test_another_artifact_counts_where_the_content_is_text() -> None:
    assert answered(ToolMessage("Done", tool_call_id="c2", artifact={"loaded": ["a"]})).result == {"loaded": ["a"]}
    assert answered(ToolMessage('{"x": 1}', tool_call_id="c2", artifact={"loaded": ["a"]})).result == {"x": 1}
    assert answered(ToolMessage("Done", tool_call_id="c2", artifact=["a"])).result == "Done"


def test_a_chat_message_has_the_author_of_its_role() -> None:
    turn = last_user_text([ChatMessage("Rain?", role="user"), ChatMessage("Yes.", role="assistant")])
    assert turn is not None
    assert (turn.text, turn.assistant_follows) == ("Rain?", True)


def test_a_human_message_never_carries_results() -> None:
    content: list[str | dict[Any, Any]] = [{"type": "tool_result", "tool_use_id": "c2", "content": "{}"}]
    [exchange] = read_exchanges([AIMessage("", tool_calls=CALLS[1:]), HumanMessage(content)])
    assert not exchange.answered
