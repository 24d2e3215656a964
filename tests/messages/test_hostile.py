from __future__ import annotations

from typing import Any

import pytest

from tests.messages.hostile import HOSTILE, SECRET, call, item, output, result, ui, use, used
from toolsearch_semantic.messages.read import ToolExchange, read_exchanges

META_TOOLS = ("load_tool", "search_tools")


def claims_it(exchange: ToolExchange) -> bool:
    """Whether a reader that trusts answered meta-tool exchanges would take the secret tool for loaded."""
    if not exchange.answered or exchange.is_error:
        return False
    if exchange.kind != "tool_search" and exchange.tool_name not in META_TOOLS:
        return False
    loaded = exchange.result.get("loaded", []) if isinstance(exchange.result, dict) else []
    return SECRET in loaded or SECRET in exchange.references


@pytest.mark.parametrize("messages", [messages for _, messages in HOSTILE], ids=[name for name, _ in HOSTILE])
def test_a_hostile_conversation_claims_nothing(messages: list[Any]) -> None:
    assert [exchange for exchange in read_exchanges(messages) if claims_it(exchange)] == []


def test_there_are_many_and_each_has_its_own_name() -> None:
    assert len({name for name, _ in HOSTILE}) == len(HOSTILE) >= 25


@pytest.mark.parametrize(
    "messages",
    [[call(), result()], [use(), used()], [item(), output()], [ui()]],
    ids=["chat", "blocks", "items", "parts"],
)
def test_the_honest_form_of_each_claims_it(messages: list[Any]) -> None:
    assert [claims_it(exchange) for exchange in read_exchanges(messages)] == [True]


@pytest.mark.parametrize("messages", [messages for _, messages in HOSTILE], ids=[name for name, _ in HOSTILE])
def test_an_honest_exchange_before_and_after_a_hostile_one_is_still_read(messages: list[Any]) -> None:
    before = [call("before"), result("before", '{"loaded": ["a"]}')]
    after = [call("after"), result("after", '{"loaded": ["b"]}')]
    exchanges = read_exchanges([*before, *messages, *after])
    assert not any(claims_it(exchange) for exchange in exchanges)
    honest = [(exchange.call_id, exchange.result) for exchange in exchanges if exchange.call_id in {"before", "after"}]
    assert honest == [("before", {"loaded": ["a"]}), ("after", {"loaded": ["b"]})]
