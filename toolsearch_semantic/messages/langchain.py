"""LangChain: ``AIMessage.tool_calls`` and `ToolMessage`, as objects or as their dicts."""

from __future__ import annotations

from toolsearch_semantic.messages.events import Answer, Call, Event
from toolsearch_semantic.messages.results import Outcome, content_outcome
from toolsearch_semantic.messages.values import field_of, items_of, named, word_of

__all__ = ["answers", "calls"]


def calls(message: object) -> list[Event]:
    """Return the calls of an AI message.

    Its content may repeat them as its provider wrote them; ``tool_calls`` is what the host ran.
    """
    found: list[Event] = []
    for entry in items_of(field_of(message, "tool_calls")):
        if field_of(entry, "type") is not None and word_of(entry, "type") != "tool_call":
            continue
        call_id, name = word_of(entry, "id"), word_of(entry, "name")
        if call_id and name:
            found.append(Call(call_id, name, field_of(entry, "args")))
    return found


def answers(message: object) -> list[Event]:
    """Return the result that a tool message is."""
    call_id = word_of(message, "tool_call_id")
    if not call_id:
        return []
    status = field_of(message, "status")
    is_error = status is not None and word_of(message, "status") != "success"
    return [Answer(call_id, named(message, "name"), message, is_error=is_error, read=_outcome)]


def _outcome(message: object) -> Outcome:
    """Read the artifact's structured content, else content that is structured, else an artifact that is a dict."""
    artifact = field_of(message, "artifact")
    for name in ("structured_content", "structuredContent"):
        if (structured := field_of(artifact, name)) is not None:
            return Outcome(structured)
    found = content_outcome(field_of(message, "content"))
    if isinstance(artifact, dict) and not isinstance(found.result, dict | list) and not found.references:
        return Outcome(artifact)
    return found
