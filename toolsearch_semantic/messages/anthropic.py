"""Anthropic Messages: ``tool_use`` blocks of an assistant, and ``tool_result`` blocks in the user turn that follows.

What the provider itself runs (``server_tool_use``, ``mcp_tool_use`` and their results) is not read.
"""

from __future__ import annotations

from toolsearch_semantic.messages.events import Answer, Call, Event
from toolsearch_semantic.messages.results import content_outcome
from toolsearch_semantic.messages.values import exact_text, field_of, is_marked, items_of, word_of

__all__ = ["answers", "calls"]


def calls(message: object) -> list[Event]:
    """Return the calls of an assistant's message."""
    found: list[Event] = []
    for block in items_of(field_of(message, "content")):
        if word_of(block, "type") != "tool_use":
            continue
        call_id, name = word_of(block, "id"), word_of(block, "name")
        if call_id and name:
            toolset = field_of(block, "toolset_name")
            full_name = name if toolset is None else f"{exact_text(toolset) or '?'}.{name}"
            found.append(Call(call_id, full_name, field_of(block, "input"), way="block", bare_name=name))
    return found


def answers(message: object) -> list[Event]:
    """Return the results in a user's message."""
    found: list[Event] = []
    for block in items_of(field_of(message, "content")):
        call_id = word_of(block, "tool_use_id") if word_of(block, "type") == "tool_result" else None
        if call_id:
            is_error = is_marked(field_of(block, "is_error"))
            content = field_of(block, "content")
            found.append(Answer(call_id, None, content, way="block", is_error=is_error, read=content_outcome))
    return found
