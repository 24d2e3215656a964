from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.processor.conversation import Chat, catalogue, processor_of, tool
from toolsearch_semantic import ToolSearch
from toolsearch_semantic.formats.anthropic import to_anthropic
from toolsearch_semantic.formats.openai_chat import to_openai_chat

TOOLS = [*catalogue(), tool("ünï cödé"), tool("a/b.c"), tool("x" * 100)]
SEARCH = ToolSearch(TOOLS)
NAMES = st.sampled_from([each.name for each in TOOLS])

ACTIONS = st.one_of(
    st.tuples(st.just("load"), st.lists(NAMES, min_size=1, max_size=4)),
    st.tuples(st.just("load at once"), st.lists(NAMES, min_size=2, max_size=3)),
    st.tuples(st.just("search"), st.sampled_from(["weather forecast", "give money back", "mail", "zzz"])),
    st.tuples(st.just("call"), NAMES),
    st.tuples(st.just("user"), st.sampled_from(["open a bug report", "hello", "play a song"])),
    st.tuples(st.just("answer"), st.just("Done.")),
)


def act(chat: Chat, kind: str, what: Any) -> None:
    if kind == "load":
        chat.call("load_tool", tool_names=what)
    elif kind == "load at once":
        for name in what:
            chat.call("load_tool", tool_name=name)
        if len(chat.messages) >= 4:  # the host appends the results in another order than the loads ran
            chat.messages[-4:] = [*chat.messages[-2:], *chat.messages[-4:-2]]
    elif kind == "search":
        chat.call("search_tools", query=what)
    elif kind == "call":
        chat.call(what)
    elif kind == "user":
        chat.user(what)
    else:
        chat.messages.append({"role": "assistant", "content": what})


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["in-memory", "context"]),
    st.booleans(),
    st.sampled_from([0, 1]),
    st.lists(st.lists(ACTIONS, max_size=3), min_size=2, max_size=6),
)
def test_the_tools_of_a_step_are_a_prefix_of_those_of_the_next(
    storage: str, auto: bool, preselect: int, steps: list[list[tuple[str, Any]]]
) -> None:
    options = {"auto_load": auto, "preselect": preselect}
    processor = processor_of(SEARCH, storage=storage, search=options, always_loaded=["send_email"])
    chat = Chat(processor, tools=[tool("own")])
    before: list[list[str]] = [[], []]
    for actions in steps:
        tools = list(chat.step().tools.values())
        now = [
            [json.dumps(each) for each in to_openai_chat(tools)],
            [json.dumps(each) for each in to_anthropic(tools)],
        ]
        for earlier, later in zip(before, now, strict=True):
            assert later[: len(earlier)] == earlier
        before = now
        for kind, what in actions:
            act(chat, kind, what)
