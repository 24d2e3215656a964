from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.types import CallToolResult, TextContent

from tests.messages.hostile import call, item, output, result, ui, use, used, user
from toolsearch_semantic.messages.read import ToolExchange, last_user_text, read_exchanges

RECEIPT = {"loaded": ["a"]}
TEXT = json.dumps(RECEIPT)


def test_shapes_may_be_mixed() -> None:
    messages = [
        user(), call("a"), result("a", "1"), use("b"), used("b", "2"), item("c"), output("c", "3"), ui(), "text", 5,
        None,
        SimpleNamespace(role="assistant", tool_calls=call("d")["tool_calls"]),
        SimpleNamespace(role="tool", tool_call_id="d", content="4"),
    ]  # fmt: skip
    found = [(exchange.call_id, exchange.position) for exchange in read_exchanges(messages) if exchange.answered]
    assert found == [("a", 2), ("b", 4), ("c", 6), ("c1", 7), ("d", 12)]


def test_an_id_may_be_used_again_once_its_call_is_answered() -> None:
    messages = [call(), result(content="1"), call(), result(content="2"), call(name="x"), result(content="3")]
    found = [(exchange.tool_name, exchange.result) for exchange in read_exchanges(messages)]
    assert found == [("load_tool", 1), ("load_tool", 2), ("x", 3)]


def test_an_ambiguous_id_leaves_what_was_answered_before() -> None:
    messages = [call(), result(content="1"), call(), call(), result(content="2")]
    assert [exchange.result for exchange in read_exchanges(messages) if exchange.answered] == [1]


def test_a_result_with_another_name_does_not_use_up_the_call() -> None:
    [exchange] = read_exchanges([call(), result(name="x", content="1"), result(content="2")])
    assert (exchange.result, exchange.position) == (2, 2)


def test_only_the_tools_asked_for_are_returned_and_all_take_part_in_the_pairing() -> None:
    messages = [
        call("a"),
        call("b", name="x"),
        result("b"),
        result("a", "1"),
        call("c", name="x"),
        call("c"),
        result("c"),
    ]
    found = read_exchanges(messages, tool_names=["load_tool"])
    assert [(exchange.call_id, exchange.answered) for exchange in found] == [("a", True), ("c", False)]


def test_only_the_newest_messages_are_read_and_positions_stay() -> None:
    messages = [call("a"), result("a"), call("b"), result("b", "1"), user("Bye")]
    for given_messages in (messages, iter(messages)):
        [exchange] = read_exchanges(given_messages, limit=4)
        assert (exchange.call_id, exchange.position) == ("b", 3)
    assert read_exchanges(messages, limit=2) == []
    turn = last_user_text(messages, limit=1)
    assert turn is not None
    assert turn.position == 4


def test_an_exchange_can_be_hashed_and_not_changed() -> None:
    [exchange] = read_exchanges([call(), result()])
    assert len({exchange, *read_exchanges([call(), result()])}) == 1
    with pytest.raises(AttributeError):
        exchange.answered = False  # type: ignore[misc]


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (TEXT, RECEIPT),
        (f"  {TEXT}\n", RECEIPT),
        ("plain", "plain"),
        ("", ""),
        ("NaN", "NaN"),
        ("1e5", 1e5),
        ("null", None),
        (None, None),
        ([], None),
        (["a", "b"], "a\nb"),
        ([{"type": "text", "text": '{"loaded":'}, {"type": "text", "text": '["a"]}'}], RECEIPT),
        ([{"type": "image", "data": "x"}, {"type": "text", "text": TEXT}], RECEIPT),
        (RECEIPT, RECEIPT),
        (json.dumps([{"type": "text", "text": TEXT}]), RECEIPT),
        (json.dumps({"content": [{"type": "text", "text": TEXT}], "isError": False}), RECEIPT),
        ({"content": [{"type": "text", "text": "x"}], "structuredContent": RECEIPT}, RECEIPT),
        (CallToolResult(content=[TextContent(type="text", text=TEXT)]), RECEIPT),
        (CallToolResult(content=[], structured_content=RECEIPT), RECEIPT),
        ({"content": TEXT, "other": 1}, {"content": TEXT, "other": 1}),
        ('{"loaded": ["a"]', '{"loaded": ["a"]'),
        ("[" * 200_000, "[" * 200_000),
        ("9" * 5_000, "9" * 5_000),
        (f'"{"x" * 1_000_000}"', f'"{"x" * 1_000_000}"'),
        (b"bytes", b"bytes"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_result_is_parsed_where_it_is_json(content: Any, value: Any) -> None:
    [exchange] = read_exchanges([call(), result(content=content)])
    assert (exchange.answered, exchange.result, exchange.is_error) == (True, value, False)


@pytest.mark.parametrize(
    "content",
    [
        CallToolResult(content=[], is_error=True),
        {"content": [{"type": "text", "text": "x"}], "isError": True},
        {"content": [{"type": "text", "text": "x"}], "isError": "false"},
        json.dumps({"content": [], "isError": True}),
    ],
)
def test_an_error_mark_inside_a_result_counts(content: Any) -> None:
    [exchange] = read_exchanges([call(), result(content=content)])
    assert exchange.is_error


def test_content_within_content_is_unpacked_only_so_deep() -> None:
    texts = [TEXT]
    for _ in range(6):
        texts.append(json.dumps([{"type": "text", "text": texts[-1]}]))
    assert [read_exchanges([call(), result(content=text)])[0].result == RECEIPT for text in texts] == [
        True, True, True, False, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("is_error", ["false", 0, "no", [], 1])
def test_an_odd_error_mark_is_an_error(is_error: Any) -> None:
    message = used()
    message["content"][0]["is_error"] = is_error
    [exchange] = read_exchanges([use(), message])
    assert exchange.is_error


@pytest.mark.parametrize("arguments", ["", "[]", "5", '"x"', "{", None, [], 5, {1: 2}])
def test_arguments_that_are_no_json_object_are_none(arguments: Any) -> None:
    assert read_exchanges([call(arguments=arguments)])[0].arguments is None


def test_the_fields_have_these_defaults() -> None:
    exchange = ToolExchange("c", "load_tool", None, None, False, False, 0)
    assert (exchange.references, exchange.kind) == ((), "function")
