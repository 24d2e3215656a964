from __future__ import annotations

from typing import Any

import pytest

from tests.messages.hostile import call, item, result, ui, use, user
from toolsearch_semantic.messages.read import last_user_text, read_user_turns


def test_user_turns_are_read_oldest_first() -> None:
    messages = [
        {"role": "system", "content": "s"}, user("one"), {"role": "developer", "content": "d"}, call(), result(),
        user([{"type": "image", "source": {}}]), {"role": "assistant", "content": "ok"}, user(""), user("two"),
    ]  # fmt: skip
    found = [(turn.text, turn.position, turn.assistant_follows) for turn in read_user_turns(messages)]
    assert found == [("one", 1, True), ("", 5, True), ("", 7, False), ("two", 8, False)]
    assert last_user_text(messages) == read_user_turns(messages)[-1]


@pytest.mark.parametrize("content", [None, 5, [], [None], [{}], [{"type": "tool_result"}], {"text": "x"}])
def test_a_user_message_without_content_is_no_turn(content: Any) -> None:
    assert last_user_text([user(content)]) is None


def test_a_tool_call_alone_follows_as_much_as_text() -> None:
    turns = [last_user_text([user("one"), message]) for message in (call(), use(), item(), ui(), {"type": "reasoning"})]
    assert [turn.assistant_follows for turn in turns if turn] == [True] * 5


def test_the_identity_is_the_message_s_and_not_the_text_s() -> None:
    def identity(*messages: Any) -> str:
        turn = last_user_text(messages)
        assert turn is not None
        return turn.identity

    once = identity(user("one"))
    assert identity(user("one"), call(), result()) == once
    assert len({once, identity(user("two")), identity(user("one"), user("one"))}) == 3
    known = identity({**user("one"), "id": "m1"})
    assert identity(call(), {**user("one"), "id": "m1"}) == known
    assert len({known, once, identity({**user("one"), "id": "m2"}), identity({**user("two"), "id": "m1"})}) == 4
    assert identity(user("\ud800")) != once
