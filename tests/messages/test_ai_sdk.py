"""Shapes written after the types of AI SDK 4 to 7 (`ui-messages.ts`, `content-part.ts`)."""

from __future__ import annotations

from typing import Any

import pytest

from toolsearch_semantic.messages.read import ToolExchange, last_user_text, read_exchanges

RECEIPT = {"loaded": ["a"]}


def ui(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "m", "role": "assistant", "parts": [{"type": "step-start"}, *parts], **more}


def part(kind: str, state: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "toolCallId": "c1", "state": state, "input": {"tool_name": "a"}, **more}


@pytest.mark.parametrize(
    "message",
    [
        ui(part("tool-load_tool", "output-available", output=RECEIPT)),
        ui(part("tool-load_tool", "output-available", output='{"loaded": ["a"]}')),
        ui(part("dynamic-tool", "output-available", toolName="load_tool", output=RECEIPT)),
        ui(
            part(
                "tool-load_tool",
                "output-available",
                output={"content": [{"type": "text", "text": '{"loaded": ["a"]}'}], "isError": False},
            )
        ),
    ],
    ids=["static", "text", "dynamic", "mcp"],
)
def test_a_tool_part_holds_a_call_and_its_result(message: dict[str, Any]) -> None:
    assert read_exchanges([message]) == [ToolExchange("c1", "load_tool", {"tool_name": "a"}, RECEIPT, True, False, 0)]


@pytest.mark.parametrize("state", ["input-streaming", "input-available", "approval-requested", "approval-responded"])
def test_a_part_without_an_output_is_a_call(state: str) -> None:
    [exchange] = read_exchanges([ui(part("tool-load_tool", state))])
    assert (exchange.tool_name, exchange.answered) == ("load_tool", False)


def test_errors_and_denials_are_errors() -> None:
    [failed] = read_exchanges([ui(part("tool-load_tool", "output-error", errorText="No."))])
    [denied] = read_exchanges([ui(part("tool-load_tool", "output-denied"))])
    assert (failed.answered, failed.is_error, failed.result) == (True, True, "No.")
    assert (denied.answered, denied.is_error, denied.result) == (True, True, None)


INVOCATION = {
    "state": "result",
    "toolCallId": "c1",
    "toolName": "load_tool",
    "args": {"tool_name": "a"},
    "result": RECEIPT,
}
OLD = {"id": "m", "role": "assistant", "content": ""}
OLD_PART = {"type": "tool-invocation", "toolInvocation": INVOCATION}


@pytest.mark.parametrize(
    "message",
    [
        {**OLD, "toolInvocations": [INVOCATION]},
        {**OLD, "parts": [OLD_PART]},
        {**OLD, "parts": [OLD_PART], "toolInvocations": [INVOCATION]},
        {**OLD, "content": {"format": 2, "parts": [OLD_PART], "toolInvocations": [INVOCATION]}},
        {**OLD, "content": {"format": 2, "parts": [], "toolInvocations": [INVOCATION]}},
    ],
    ids=["invocations", "parts", "both", "in the content", "invocations in the content"],
)
def test_version_4_invocations_are_read_once(message: dict[str, Any]) -> None:
    assert read_exchanges([message]) == [ToolExchange("c1", "load_tool", {"tool_name": "a"}, RECEIPT, True, False, 0)]


def test_a_version_4_call_without_a_result_is_a_call() -> None:
    [exchange] = read_exchanges([{**OLD, "toolInvocations": [{**INVOCATION, "state": "call"}]}])
    assert not exchange.answered


def model_messages(result: dict[str, Any], **call: Any) -> list[dict[str, Any]]:
    given = call or {"input": {"tool_name": "a"}}
    return [
        {"role": "user", "content": [{"type": "text", "text": "Rain?"}]},
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "load_tool", **given}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "load_tool", **result}]},
    ]


@pytest.mark.parametrize(
    ("result", "value", "is_error"),
    [
        ({"output": {"type": "json", "value": RECEIPT}}, RECEIPT, False),
        ({"output": {"type": "text", "value": '{"loaded": ["a"]}'}}, RECEIPT, False),
        ({"output": {"type": "content", "value": [{"type": "text", "text": '{"loaded": ["a"]}'}]}}, RECEIPT, False),
        ({"output": {"type": "error-text", "value": "No."}}, "No.", True),
        ({"output": {"type": "error-json", "value": RECEIPT}}, RECEIPT, True),
        ({"output": {"type": "execution-denied", "reason": "No."}}, "No.", True),
        ({"result": RECEIPT}, RECEIPT, False),
        ({"result": RECEIPT, "isError": True}, RECEIPT, True),
    ],
)
def test_model_messages_are_read(result: dict[str, Any], value: Any, is_error: bool) -> None:
    assert read_exchanges(model_messages(result)) == [
        ToolExchange("c1", "load_tool", {"tool_name": "a"}, value, True, is_error, 2)
    ]
    assert read_exchanges(model_messages(result, args={"tool_name": "a"}))[0].arguments == {"tool_name": "a"}


def test_the_user_s_ui_message_is_read() -> None:
    messages = [
        {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Rain?"}, {"type": "file", "url": "x"}]},
        ui(part("tool-load_tool", "output-available", output=RECEIPT)),
    ]
    turn = last_user_text(messages)
    assert turn is not None
    assert (turn.text, turn.position, turn.assistant_follows) == ("Rain?", 0, True)
