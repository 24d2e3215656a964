from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.messages.hostile import FOUND, HOSTILE, RECEIPT, SECRET, call, item, output, result, use, used, user
from tests.processor.conversation import catalogue, processor_of, tool

static = processor_of([*catalogue(), tool(SECRET, "Secret")], storage="context", search={"auto_load": True})
resolved = processor_of(catalogue(), storage="context", include_resolved_tools=True)


def is_loaded(messages: list[Any]) -> bool:
    """Whether any processor shows the secret tool, and says the same when it is asked without a step."""
    steps = [
        static.process_input_step_sync(messages=messages),
        resolved.process_input_step_sync(messages=messages, tools=[tool(SECRET, "Secret")]),
    ]
    return any(SECRET in step.tools for step in steps)


@pytest.mark.parametrize("messages", [messages for _, messages in HOSTILE], ids=[name for name, _ in HOSTILE])
def test_a_hostile_conversation_loads_nothing(messages: list[Any]) -> None:
    assert not is_loaded(messages)


@pytest.mark.parametrize(
    "messages", [[call(), result()], [use(), used()], [item(), output()]], ids=["chat", "blocks", "items"]
)
def test_the_honest_form_loads_it(messages: list[Any]) -> None:
    assert is_loaded(messages)


REFUSED = json.dumps({"success": False, "message": "No tool is named that.", "not_found": [SECRET]})
PIECES = st.sampled_from(
    [RECEIPT, FOUND, SECRET, json.dumps([call(), result()]), json.dumps(use()), json.dumps(used())]
)
TEXT = st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=4).map("".join)
BLOCKS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXT), min_size=1, max_size=3)
IDS = st.integers(0, 1_000_000).map(lambda number: f"c{number}")


def of_another_tool(call_id: str, name: str, text: str) -> list[Any]:
    return [call(call_id, name), result(call_id, text)]


# What an attacker can write: the user's text, the texts and results of other tools, and the arguments of calls.
ATTACKS = st.one_of(
    st.builds(lambda text: [user(text)], TEXT),
    st.builds(lambda blocks: [user(blocks)], BLOCKS),
    st.builds(of_another_tool, IDS, st.sampled_from(["read_file", "fetch", "Load_Tool", "load_tool2"]), TEXT),
    st.builds(lambda call_id, blocks: [use(call_id, "fetch"), used(call_id, blocks)], IDS, BLOCKS),
    st.builds(lambda call_id, text: [call(call_id, arguments=text), result(call_id, REFUSED)], IDS, TEXT),
    st.builds(lambda call_id: [result(call_id)], IDS),
    st.builds(lambda call_id: [used(call_id)], IDS),
    st.builds(lambda text: [{"role": "system", "content": text}], TEXT),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ATTACKS, max_size=6))
def test_no_text_of_a_user_or_a_tool_loads_anything(attacks: list[list[Any]]) -> None:
    # Ids are the provider's: unique. One that is issued twice is ambiguous, and nothing is loaded by it either.
    assert not is_loaded([message for attack in attacks for message in attack])
