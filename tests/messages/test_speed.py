from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.messages.hostile import call, result, use, used, user
from toolsearch_semantic.messages.read import last_user_text, read_exchanges


def chat(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count // 4):
        yield user("Please find the weather for tomorrow in the city of Oslo.")
        yield call(f"c{number}")
        yield result(
            f"c{number}", json.dumps({"success": True, "message": "Loaded 1 tool.", "loaded": ["get_weather"]})
        )
        yield {"role": "assistant", "content": "It will rain."}


def blocks(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count // 4):
        yield user([{"type": "text", "text": "Please find the weather for tomorrow in the city of Oslo."}])
        yield use(f"c{number}")
        yield used(f"c{number}", json.dumps({"success": True, "message": "Loaded 1 tool.", "loaded": ["get_weather"]}))
        yield {"role": "assistant", "content": [{"type": "text", "text": "It will rain."}]}


@pytest.mark.parametrize("conversation", [chat, blocks])
def test_a_thousand_messages_are_read_fast(conversation: Any) -> None:
    messages = list(conversation(1_000))
    assert len(read_exchanges(messages)) == 250
    best = min(timed(messages) for _ in range(5))
    assert best < 0.1  # about 5 ms where nothing else runs


def timed(messages: list[Any]) -> float:
    start = time.perf_counter()
    read_exchanges(messages)
    last_user_text(messages)
    return time.perf_counter() - start


def test_a_result_of_another_tool_is_not_parsed() -> None:
    big = "[" + "0," * 400_000 + "0]"
    messages = [
        message for number in range(200) for message in (call(f"c{number}", "fetch"), result(f"c{number}", big))
    ]
    start = time.perf_counter()
    assert read_exchanges(messages, tool_names={"load_tool"}) == []
    assert time.perf_counter() - start < 0.1
