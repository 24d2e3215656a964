from __future__ import annotations

import json
from enum import StrEnum
from typing import Any
from unittest.mock import MagicMock

import pytest
from mcp.types import CallToolResult

from tests.messages.hostile import call, result, user
from toolsearch_semantic.errors import InvalidOptionError
from toolsearch_semantic.messages.read import last_user_text, read_exchanges, read_user_turns

RECEIPT = {"loaded": ["a"]}
TEXT = json.dumps(RECEIPT)


class Role(StrEnum):
    TOOL = "tool"
    ASSISTANT = "assistant"


class Agreeable(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("assistant")


class Raising:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class Endless:
    def __getattr__(self, name: str) -> Any:
        return self


class RaisingDict(dict[str, Any]):
    def get(self, *args: Any) -> Any:
        raise RuntimeError


def test_members_of_a_string_enum_are_their_values() -> None:
    [exchange] = read_exchanges([call(role=Role.ASSISTANT), result(role=Role.TOOL)])
    assert exchange.answered


def test_a_string_that_equals_everything_is_its_own_characters() -> None:
    assert read_exchanges([call(role=Agreeable("user")), result()]) == []
    [exchange] = read_exchanges([call(), result(name=Agreeable("other"))])
    assert not exchange.answered


def cyclic() -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "type": "text"}
    message["content"] = message["tool_calls"] = message["parts"] = [message]
    return message


def test_a_cyclic_result_is_handed_back_unwalked() -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    [exchange] = read_exchanges([call(), result(content=value)])
    assert exchange.result is value


def nested() -> Any:
    content: Any = "x"
    for _ in range(10_000):
        content = [{"type": "tool_result", "tool_use_id": "c", "content": content}]
    return {"role": "user", "content": content}


ODD: dict[str, Any] = {
    "raises": Raising,
    "answers everything": Endless,
    "get raises": lambda: RaisingDict(role="user"),
    "mock": MagicMock,
    "cyclic": cyclic,
    "nested": nested,
    "class": lambda: object,
    "metaclass": lambda: type,
    "function": lambda: len,
    "tuple": tuple,
    "lists": lambda: [[]],
    "role raises": lambda: {"role": Raising()},
    "content raises": lambda: {"role": "user", "content": Raising()},
    "parts raise": lambda: {"role": "user", "content": [Raising(), Endless()]},
    "calls raise": lambda: {"role": "assistant", "tool_calls": [Raising(), Endless(), None, 5, "x"]},
    "calls are text": lambda: {"role": "assistant", "tool_calls": "x"},
    "result raises": lambda: {"role": "tool", "content": Raising()},
    "inner parts raise": lambda: {"role": "assistant", "content": {"parts": Raising()}},
    "data is a number": lambda: {"type": "ai", "data": 5},
    "data is empty": lambda: {"type": "ai", "data": {"type": "ai"}},
    "parts are a number": lambda: {"kind": "request", "parts": 5},
    "arguments raise": lambda: call("odd", arguments=Raising()),
    "arguments' get raises": lambda: call("odd", arguments=RaisingDict()),
}


@pytest.mark.parametrize("name", ODD)
def test_a_malformed_message_is_skipped(name: str) -> None:
    odd = ODD[name]()
    exchanges = read_exchanges([call(), odd, result(content=TEXT), odd])
    assert [exchange.result for exchange in exchanges if exchange.answered] == [RECEIPT]
    read_user_turns([odd, user(), odd])


@pytest.mark.parametrize("name", ODD)
def test_a_result_that_cannot_be_read_is_no_exception(name: str) -> None:
    [exchange] = read_exchanges([call(), result(content=ODD[name]())])
    assert exchange.answered


def test_a_result_that_raises_is_an_error() -> None:
    [exchange] = read_exchanges([call(), result(content=Raising())])
    assert (exchange.result, exchange.is_error) == (None, True)


@pytest.mark.parametrize("messages", [None, 5, "text", b"x", {}, user(), object(), CallToolResult(content=[])])
@pytest.mark.parametrize("read", [read_exchanges, read_user_turns, last_user_text])
def test_what_is_no_list_of_messages_is_an_error(read: Any, messages: Any) -> None:
    with pytest.raises(InvalidOptionError, match=f"not {type(messages).__name__} .*Wrap a single message in a list"):
        read(messages)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "5", None])
@pytest.mark.parametrize("read", [read_exchanges, read_user_turns, last_user_text])
def test_a_bad_limit_is_an_error(read: Any, limit: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"limit must be an integer ≥ 1"):
        read([], limit=limit)


@pytest.mark.parametrize("names", ["load_tool", 5, [5]])
def test_bad_names_are_an_error(names: Any) -> None:
    with pytest.raises(InvalidOptionError, match="tool_names must be a collection of names"):
        read_exchanges([], tool_names=names)
