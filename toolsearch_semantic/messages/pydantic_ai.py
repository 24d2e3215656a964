"""Pydantic AI: the parts of a `ModelResponse` and of a `ModelRequest`, as objects or as their dicts.

What the provider itself runs (``builtin-tool-call`` and its result) is not read.
"""

from __future__ import annotations

from toolsearch_semantic.messages.events import Answer, Call, Event
from toolsearch_semantic.messages.results import TEXT_TYPES
from toolsearch_semantic.messages.values import exact_text, field_of, items_of, word_of

__all__ = ["answers", "calls", "user_text"]


def calls(message: object) -> list[Event]:
    """Return the calls of a response."""
    found: list[Event] = []
    for part in items_of(field_of(message, "parts")):
        if word_of(part, "part_kind") != "tool-call":
            continue
        call_id, name = word_of(part, "tool_call_id"), word_of(part, "tool_name")
        if call_id and name:
            found.append(Call(call_id, name, field_of(part, "args")))
    return found


def answers(message: object) -> list[Event]:
    """Return the results in a request; any outcome but success is an error, as is a prompt to retry."""
    found: list[Event] = []
    for part in items_of(field_of(message, "parts")):
        kind = word_of(part, "part_kind")
        call_id, name = word_of(part, "tool_call_id"), word_of(part, "tool_name")
        if kind not in {"tool-return", "retry-prompt"} or not (call_id and name):
            continue
        outcome = field_of(part, "outcome")
        failed = outcome is not None and word_of(part, "outcome") != "success"
        is_error = failed or kind == "retry-prompt"
        found.append(Answer(call_id, name, field_of(part, "content"), is_error=is_error))
    return found


def user_text(message: object) -> str | None:
    """Return the text of a request's user prompts, joined by line ends; None where it has no user prompt."""
    prompts = [part for part in items_of(field_of(message, "parts")) if word_of(part, "part_kind") == "user-prompt"]
    if not prompts:
        return None
    return "\n".join(text for part in prompts for text in _texts(field_of(part, "content")))


def _texts(content: object) -> list[str]:
    texts = []
    for item in (content,) if isinstance(content, str) else items_of(content):
        kind = None if isinstance(item, str) else word_of(item, "kind")
        if kind == "text-content":
            item = field_of(item, "content")  # noqa: PLW2901 - the text inside it is what is meant
        elif kind is None and not isinstance(item, str) and word_of(item, "type") in TEXT_TYPES:
            item = field_of(item, "text")  # noqa: PLW2901
        text = exact_text(item)
        if text is not None:
            texts.append(text)
    return texts
