from __future__ import annotations

import warnings
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import messages as pai

from toolsearch_semantic.messages.read import ToolExchange, last_user_text, read_exchanges

MESSAGES: list[pai.ModelMessage] = [
    pai.ModelRequest(
        [pai.SystemPromptPart("Be brief."), pai.UserPromptPart(["Rain?", pai.ImageUrl("https://x/y.png")])]
    ),
    pai.ModelResponse(
        [
            pai.TextPart("Let me look."),
            pai.ToolCallPart("search_tools", '{"query": "rain"}', "c1"),
            pai.ToolCallPart("load_tool", {"tool_name": "a"}, "c2"),
            pai.NativeToolCallPart("load_tool", {}, "c3"),
            pai.NativeToolReturnPart("load_tool", {"loaded": ["x"]}, "c3"),
        ]
    ),
    pai.ModelRequest(
        [
            pai.ToolReturnPart("load_tool", {"loaded": ["a"]}, "c2"),
            pai.ToolReturnPart("search_tools", "Try again.", "c1", outcome="retried"),
        ]
    ),
]
EXPECTED = [
    ToolExchange("c2", "load_tool", {"tool_name": "a"}, {"loaded": ["a"]}, True, False, 2),
    ToolExchange("c1", "search_tools", {"query": "rain"}, "Try again.", True, True, 2),
]


@pytest.mark.parametrize(
    "messages",
    [MESSAGES, pai.ModelMessagesTypeAdapter.dump_python(MESSAGES, mode="json")],
    ids=["objects", "dicts"],
)
def test_parts_are_read(messages: list[Any]) -> None:
    assert read_exchanges(messages) == EXPECTED
    turn = last_user_text(messages)
    assert turn is not None
    assert (turn.text, turn.position, turn.assistant_follows) == ("Rain?", 0, True)


def test_a_request_with_returns_and_a_prompt_is_both() -> None:
    request = pai.ModelRequest([*MESSAGES[2].parts, pai.UserPromptPart([pai.TextContent("And tomorrow?")])])  # type: ignore[list-item]
    messages = [*MESSAGES[:2], request]
    assert read_exchanges(messages) == EXPECTED
    turn = last_user_text(messages)
    assert turn is not None
    assert (turn.text, turn.position, turn.assistant_follows) == ("And tomorrow?", 2, False)


def returned(part: Any) -> ToolExchange:
    messages = [pai.ModelResponse([pai.ToolCallPart("load_tool", None, "c")]), pai.ModelRequest([part])]
    [exchange] = read_exchanges(messages)
    return exchange


def test_a_retry_prompt_is_an_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = pai.RetryPromptPart("Wrong.", tool_name="load_tool", tool_call_id="c")
        nameless = pai.RetryPromptPart("Wrong.", tool_call_id="c")
    exchange = returned(part)
    assert (exchange.answered, exchange.is_error, exchange.result, exchange.arguments) == (True, True, "Wrong.", None)
    assert not returned(nameless).answered


@pytest.mark.parametrize("outcome", ["failed", "denied", "interrupted", "retried"])
def test_any_outcome_but_success_is_an_error(outcome: Any) -> None:
    assert returned(pai.ToolReturnPart("load_tool", {"loaded": ["a"]}, "c", outcome=outcome)).is_error


class Receipt(BaseModel):
    loaded: list[str]


def test_content_may_be_any_value() -> None:
    assert returned(pai.ToolReturnPart("load_tool", '{"loaded": ["a"]}', "c")).result == {"loaded": ["a"]}
    assert returned(pai.ToolReturnPart("load_tool", Receipt(loaded=["a"]), "c")).result == {"loaded": ["a"]}
    assert returned(pai.ToolReturnPart("load_tool", ["a", "b"], "c")).result == ["a", "b"]
    assert returned(pai.ToolReturnPart("load_tool", 5, "c")).result == 5
