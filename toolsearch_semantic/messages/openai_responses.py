"""OpenAI Responses: items of the types ``function_call`` and ``tool_search_call``, and their outputs.

What the provider itself runs is not read: an ``mcp_call`` is some server's tool, which may bear a meta-tool's name, and
a tool search of ``execution: "server"`` is not this package's.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolsearch_semantic.messages.events import Answer, Call, Event
from toolsearch_semantic.messages.results import Outcome, content_outcome
from toolsearch_semantic.messages.values import exact_text, field_of, items_of, named, word_of

__all__ = ["TOOL_SEARCH", "events"]

TOOL_SEARCH = "tool_search"
"""The name that a call has which is made by a ``tool_search_call`` item."""


def events(item: object) -> list[Event]:
    """Return the call or the result that an item is."""
    call_id = word_of(item, "call_id")
    kind = word_of(item, "type")
    if not call_id:
        return []
    if kind == "function_call":
        return _function_call(item, call_id)
    if kind == "function_call_output":
        return [Answer(call_id, named(item, "name"), field_of(item, "output"), read=content_outcome)]
    by_host = field_of(item, "execution") is None or word_of(item, "execution") == "client"
    return _tool_search(item, call_id, kind) if by_host else []


def _tool_search(item: object, call_id: str, kind: str | None) -> list[Event]:
    if kind == "tool_search_call":
        return [Call(call_id, TOOL_SEARCH, field_of(item, "arguments"), way="search")]
    if kind == "tool_search_output":
        return [Answer(call_id, None, field_of(item, "tools"), way="search", read=_loaded)]
    return []


def _function_call(item: object, call_id: str) -> list[Event]:
    name = word_of(item, "name")
    if not name:
        return []
    namespace = field_of(item, "namespace")
    full_name = name if namespace is None else f"{exact_text(namespace) or '?'}.{name}"
    return [Call(call_id, full_name, field_of(item, "arguments"), bare_name=name)]


def _loaded(tools: object) -> Outcome:
    return Outcome(references=tuple(_names(tools)))


def _names(tools: object) -> Iterator[str]:
    for tool in items_of(tools):
        inner = items_of(field_of(tool, "tools")) if word_of(tool, "type") == "namespace" else (tool,)
        for each in inner:
            name = word_of(each, "name")
            if name and word_of(each, "type") in {"function", "custom"}:
                yield name
