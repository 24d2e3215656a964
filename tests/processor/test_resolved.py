from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from tests.conftest import BreakableEncoder
from tests.processor.conversation import Chat, catalogue, every_store, names, processor_of, tool
from toolsearch_semantic import Tool, ToolNameConflictError, ToolSearch, ToolSearchProcessor

NOTES = "search_notes"


def notes(user: str) -> Tool:
    return tool(NOTES, "Look through the notes of the user", answer=f"notes of {user}")


def with_resolved(storage: str = "in-memory", **options: Any) -> ToolSearchProcessor:
    return processor_of(catalogue(), include_resolved_tools=True, storage=storage, **options)


@every_store
def test_resolved_tools_are_searchable_and_withheld_until_loaded(storage: str) -> None:
    chat = Chat(with_resolved(storage), tools=[notes("ann")])
    assert chat.loaded() == []
    assert names(chat.call("search_tools", query="look through my notes"))[0] == NOTES
    assert "is not loaded" in chat.call(NOTES)["message"]
    chat.load(NOTES)
    assert chat.loaded() == [NOTES]
    assert chat.call(NOTES) == "notes of ann"


@every_store
def test_they_are_off_by_default(storage: str) -> None:
    chat = Chat(processor_of(catalogue(), storage=storage), tools=[notes("ann")])
    assert chat.loaded() == [NOTES]
    assert NOTES not in str(chat.call("search_tools", query="look through my notes"))


@every_store
def test_another_request_s_catalogue_never_holds_them(storage: str) -> None:
    processor = with_resolved(storage)
    Chat(processor, thread_id="ann", tools=[notes("ann")]).load(NOTES)
    bob = Chat(processor, thread_id="bob")
    assert NOTES not in str(bob.call("search_tools", query="look through my notes"))
    assert bob.call("load_tool", tool_name=NOTES)["not_found"] == [NOTES]
    assert "There is no tool" in bob.call(NOTES)["message"]


@every_store
def test_who_continues_a_thread_calls_their_own(storage: str) -> None:
    processor = with_resolved(storage)
    chat = Chat(processor, tools=[notes("ann")])
    chat.load(NOTES)
    chat.step()
    assert chat.call(NOTES) == "notes of ann"
    chat.tools = [notes("bob")]
    chat.user("And mine?")
    chat.step()
    assert chat.call(NOTES) == "notes of bob"
    assert chat.loaded_tools()[NOTES] is chat.tools[0]
    found = chat.processor.process_input_step_sync(tools=[notes("eve")]).call_sync("search_tools", {"query": "notes"})
    assert NOTES in names(found)


def test_an_index_that_is_kept_holds_no_instance() -> None:
    class Secret:
        def __call__(self) -> str:
            return "secret"

    secret = Secret()
    held = weakref.ref(secret)
    processor = with_resolved("context", search={"preselect": 1})
    chat = Chat(processor, tools=[Tool(NOTES, "Look through the notes", execute=secret)])
    chat.user("look through my notes")
    assert chat.loaded() == [NOTES]
    assert names(chat.call("search_tools", query="notes"))[0] == NOTES
    del secret, chat
    gc.collect()
    assert held() is None


@every_store
def test_a_clash_with_a_different_static_tool_is_an_error_or_chosen(storage: str) -> None:
    other = tool("createIssue", "Write a bug report on paper", answer="paper")
    with pytest.raises(ToolNameConflictError) as caught:
        Chat(with_resolved(storage), tools=[other]).step()
    assert "'Write a bug report on paper'" in str(caught.value)
    assert "'Open a new bug report in the tracker'" in str(caught.value)
    for choice, answer, described in [("static", "createIssue", "in the tracker"), ("resolved", "paper", "on paper")]:
        chat = Chat(with_resolved(storage, on_conflict=choice), tools={"issue_key": other})
        found = chat.call("search_tools", query="bug report")["results"]
        assert [hit["description"].endswith(described) for hit in found if hit["name"] == "createIssue"] == [True]
        assert chat.call("load_tool", tool_name="issue_key")["loaded"] == ["createIssue"]
        assert chat.loaded() == ["createIssue"]
        assert chat.call("createIssue") == answer


def test_a_static_alias_leads_to_the_resolved_tool_that_was_chosen() -> None:
    static, mine = tool("a", "Static"), tool("a", "Mine", answer="mine")
    processor = processor_of({"key": static}, include_resolved_tools=True, on_conflict="resolved")
    seen: list[Tool] = []
    chat = Chat(processor, tools=[mine])
    processor._filter = lambda args: seen.append(args.tool) or True  # type: ignore[func-returns-value]
    assert chat.load("key")["loaded"] == ["a"]
    assert chat.step().tools["a"] is mine
    assert all(each is mine for each in seen)


def test_a_resolved_tool_named_like_a_static_alias_or_keyed_like_a_static_tool_is_an_error() -> None:
    processor = processor_of({"key": tool("a")}, include_resolved_tools=True, on_conflict="resolved")
    with pytest.raises(ToolNameConflictError, match=r"'key'.*key of the static tool 'a'"):
        Chat(processor, tools=[tool("key")]).step()
    with pytest.raises(ToolNameConflictError, match=r"key 'a' .*'b'"):
        Chat(processor, tools={"a": tool("b")}).step()


def test_the_same_tool_or_an_equal_definition_of_one_source_is_one_tool() -> None:
    def clock() -> str:
        """Tell the time."""
        return "noon"

    record = {"name": "lookup", "description": "Look something up", "parameters": {"type": "object"}}
    shared = tool("shared")
    processor = processor_of([shared, clock, record], include_resolved_tools=True)
    chat = Chat(processor, tools=[shared, clock, dict(record)])
    found = names(chat.call("search_tools", query="select:shared,clock,lookup"))
    assert found == ["shared", "clock", "lookup"]
    chat.load("clock")
    chat.step()
    assert chat.call("clock") == "noon"


@every_store
def test_a_loaded_tool_that_is_no_longer_brought_is_hidden_until_it_is_again(storage: str) -> None:
    chat = Chat(with_resolved(storage), tools=[notes("ann")])
    chat.load(NOTES)
    chat.load("createIssue")
    chat.tools = None
    assert chat.loaded() == ["createIssue"]
    assert "There is no tool" in chat.call(NOTES)["message"]
    chat.tools = [notes("ann")]
    assert chat.loaded() == [NOTES, "createIssue"]
    assert chat.call(NOTES) == "notes of ann"


def test_the_same_thousand_definitions_are_embedded_once(encoder: BreakableEncoder) -> None:
    def brought(user: str) -> list[Tool]:
        return [tool(f"tool_{i}", f"Does thing number {i}", answer=user) for i in range(1_000)]

    processor = processor_of(ToolSearch(catalogue(), encoder=encoder), include_resolved_tools=True)
    first = Chat(processor, thread_id="ann", tools=brought("ann"))
    assert names(first.call("search_tools", query="tool_7"))[0] == "tool_7"
    assert len(encoder.documents) == 1_008
    second = Chat(processor, thread_id="bob", tools=brought("bob")[:-1])
    assert names(second.call("search_tools", query="tool_7"))[0] == "tool_7"
    second.load("tool_7")
    second.step()
    assert second.call("tool_7") == "bob"
    assert len(encoder.documents) == 1_008


def test_an_index_made_while_the_encoder_failed_is_made_again(encoder: BreakableEncoder) -> None:
    processor = processor_of(ToolSearch(catalogue(), encoder=encoder), include_resolved_tools=True)
    query = "what did I write down yesterday"
    encoder.failing = RuntimeError("out of memory")
    Chat(processor, tools=[notes("ann")]).call("search_tools", query=query)
    encoder.failing = None
    assert NOTES in names(Chat(processor, tools=[notes("ann")]).call("search_tools", query=query))


@every_store
def test_the_filter_gets_this_request_s_own_instance(storage: str) -> None:
    seen: list[Tool] = []
    processor = with_resolved(storage, filter=lambda args: seen.append(args.tool) or True)
    for user in ("ann", "bob"):
        seen.clear()
        chat = Chat(processor, tools=[notes(user)])
        chat.load(NOTES)
        chat.call("search_tools", query="look through my notes")
        chat.step()
        mine = [each for each in seen if each.name == NOTES]
        assert mine
        assert all(each is chat.tools[0] for each in mine)
