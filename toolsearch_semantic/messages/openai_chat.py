"""OpenAI Chat Completions: ``tool_calls`` of an assistant, and messages of role ``tool``.

The legacy ``function_call`` and role ``function`` have no ids, so nothing ties a result to its call: they are not read.
"""

from __future__ import annotations

from toolsearch_semantic.messages.events import Answer, Call, Event
from toolsearch_semantic.messages.results import content_outcome
from toolsearch_semantic.messages.values import field_of, items_of, named, word_of

__all__ = ["answers", "calls"]


def calls(message: object) -> list[Event]:
    """Return the calls of an assistant's message."""
    found: list[Event] = []
    for entry in items_of(field_of(message, "tool_calls")):
        if field_of(entry, "type") is not None and word_of(entry, "type") != "function":
            continue
        function = field_of(entry, "function")
        call_id, name = word_of(entry, "id"), word_of(function, "name")
        if call_id and name:
            found.append(Call(call_id, name, field_of(function, "arguments")))
    return found


def answers(message: object) -> list[Event]:
    """Return the result that a message of role ``tool`` is."""
    call_id = word_of(message, "tool_call_id")
    if not call_id:
        return []
    return [Answer(call_id, named(message, "name"), field_of(message, "content"), read=content_outcome)]
