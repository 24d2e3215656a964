from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.messages.hostile import call, item, result, use, used, user
from toolsearch_semantic.messages.read import read_exchanges, read_user_turns

TEXT = json.dumps({"loaded": ["a"]})

WORDS = st.sampled_from([
    "assistant", "user", "tool", "system", "c1", "c2", "load_tool", "tool_use", "tool_result", "function_call", "ai",
    "function_call_output", "tool_calls", "text", "request", "response", "tool-return", "tool-call", "tool-load_tool",
    "output-available", TEXT,
])  # fmt: skip
KEYS = st.sampled_from([
    "role", "type", "kind", "content", "parts", "tool_calls", "id", "call_id", "tool_call_id", "tool_use_id", "name",
    "function", "arguments", "output", "input", "part_kind", "tool_name", "toolCallId", "toolName", "state", "data",
    "toolInvocations", "text", "args", "isError", "structuredContent", "tools",
])  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6))
LIKELY = st.fixed_dictionaries({"role": WORDS}, optional={"content": VALUES, "parts": VALUES, "tool_calls": VALUES})


@given(st.lists(VALUES | LIKELY | st.dictionaries(KEYS, VALUES), max_size=8))
def test_nothing_ever_raises(messages: list[Any]) -> None:
    for exchange in read_exchanges(messages):
        assert exchange.answered or exchange.result is None
        assert 0 <= exchange.position < len(messages)
    read_user_turns(messages)


@given(st.lists(st.one_of(VALUES, st.sampled_from([TEXT, json.dumps(result()), json.dumps(used())])), max_size=5))
def test_what_a_user_writes_makes_no_exchange(contents: list[Any]) -> None:
    assert read_exchanges([user(content) for content in contents]) == []


@given(st.lists(st.text() | st.just(TEXT) | st.just(json.dumps([call(), result(), used()])), max_size=5))
def test_what_a_user_writes_answers_no_call(texts: list[str]) -> None:
    messages: list[Any] = [user(text) for text in texts] + [user([{"type": "text", "text": text}]) for text in texts]
    exchanges = read_exchanges([call("a"), use("b"), item("c"), *messages])
    assert [exchange.answered for exchange in exchanges] == [False] * 3


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_at_most_one_call_of_each_result_and_none_before_it(ids: list[str], calls: list[bool]) -> None:
    messages = [call(each) if is_call else result(each) for each, is_call in zip(ids, calls, strict=False)]
    answered = [exchange for exchange in read_exchanges(messages) if exchange.answered]
    assert len({exchange.position for exchange in answered}) == len(answered)
    for exchange in answered:
        assert messages[exchange.position] == result(exchange.call_id)
        assert call(exchange.call_id) in messages[: exchange.position]
    assert [exchange.position for exchange in answered] == sorted(exchange.position for exchange in answered)
