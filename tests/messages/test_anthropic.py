from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message
from anthropic.types.beta import BetaMessage

from toolsearch_semantic.messages.read import ToolExchange, last_user_text, read_exchanges

DUMP: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "content": [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "t1", "name": "search_tools", "input": {"query": "rain"}},
        {"type": "tool_use", "id": "t2", "name": "load_tool", "input": {"tool_name": "a"}},
        {"type": "tool_use", "id": "t3", "name": "load_tool", "input": {}},
        {"type": "server_tool_use", "id": "t4", "name": "web_search", "input": {}},
    ],
}
MESSAGE = Message.model_validate(DUMP)


def results(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


@pytest.mark.parametrize(
    "message",
    [
        MESSAGE,
        BetaMessage.model_validate(DUMP),
        DUMP,
        MESSAGE.to_param(),
        {"role": "assistant", "content": MESSAGE.content},
    ],
    ids=["object", "beta", "dict", "param", "dict of objects"],
)
def test_blocks_are_read(message: Any) -> None:
    answers = results(
        result("t2", [{"type": "text", "text": '{"loaded": ["a"]}'}]),
        result("t1", [{"type": "tool_reference", "tool_name": "b"}, {"type": "tool_reference", "tool_name": "c"}]),
        result("t3", "Cannot.", is_error=True),
        result("t4", "forged"),
    )
    assert read_exchanges([{"role": "user", "content": "Rain?"}, message, answers]) == [
        ToolExchange("t2", "load_tool", {"tool_name": "a"}, {"loaded": ["a"]}, True, False, 2),
        ToolExchange("t1", "search_tools", {"query": "rain"}, None, True, False, 2, references=("b", "c")),
        ToolExchange("t3", "load_tool", {}, "Cannot.", True, True, 2),
    ]


def test_text_beside_references_is_the_result() -> None:
    blocks = [{"type": "tool_reference", "tool_name": "b"}, {"type": "text", "text": '{"loaded": ["b"]}'}]
    [first, *_] = [e for e in read_exchanges([MESSAGE, results(result("t1", blocks))]) if e.answered]
    assert (first.result, first.references) == ({"loaded": ["b"]}, ("b",))


def test_a_result_without_content_is_none() -> None:
    block = {"type": "tool_result", "tool_use_id": "t1"}
    [first, *_] = [e for e in read_exchanges([MESSAGE, results(block)]) if e.answered]
    assert (first.call_id, first.result, first.is_error) == ("t1", None, False)


def test_results_may_come_in_several_messages_of_one_user_turn() -> None:
    messages = [MESSAGE, results(result("t1", "one")), results(result("t2", "two")), results(result("t3", "three"))]
    found = [(exchange.call_id, exchange.result, exchange.position) for exchange in read_exchanges(messages)]
    assert found == [("t1", "one", 1), ("t2", "two", 2), ("t3", "three", 3)]


def test_a_tool_message_may_answer_a_block() -> None:
    messages = [MESSAGE, {"role": "tool", "tool_call_id": "t1", "content": "one"}]
    assert [e.result for e in read_exchanges(messages) if e.answered] == ["one"]


def test_a_message_with_results_alone_is_not_the_user_s() -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": "Rain?"}, {"type": "text", "text": "Tomorrow."}]}
    messages = [asked, MESSAGE, results(result("t1", "one"))]
    turn = last_user_text(messages)
    assert turn is not None
    assert (turn.text, turn.position, turn.assistant_follows) == ("Rain?\nTomorrow.", 0, True)
    messages.append(results(result("t2", "two"), {"type": "text", "text": "Stop."}))
    turn = last_user_text(messages)
    assert turn is not None
    assert (turn.text, turn.position, turn.assistant_follows) == ("Stop.", 3, False)
