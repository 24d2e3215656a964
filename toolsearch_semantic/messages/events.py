"""What the readers of single messages hand to the pairing: calls, and answers to calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from toolsearch_semantic.messages.results import Outcome, value_outcome

__all__ = ["Answer", "Call", "Event", "Way"]

Way = Literal["call", "block", "search"]
"""How a call is made, and so how it may be answered.

- ``call``: by name in an assistant's message or item; answered where only a host writes tool results.
- ``block``: an Anthropic ``tool_use`` block; answered in the same way, or by a ``tool_result`` block in the user turn
  that follows directly.
- ``search``: an OpenAI ``tool_search_call`` item; answered by a ``tool_search_output`` item.
"""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the assistant makes.

    Args:
        call_id: Non-empty.
        name: As the assistant called it; with its namespace and a dot before it, where it has one.
        arguments: As they were found: an object, or text.
        way: How it is made.
        bare_name: The name that a result repeats, where the name has a namespace.
    """

    call_id: str
    name: str
    arguments: Any
    way: Way = "call"
    bare_name: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A result that stands where results stand.

    Args:
        call_id: Of the call that it answers; non-empty.
        name: The tool's name as the result has it; None where it has none, and "" where it has something else.
        raw: What the result is read from.
        way: Where it stands.
        is_error: Its own error mark.
        read: Reads ``raw``, when somebody wants it.
    """

    call_id: str
    name: str | None
    raw: Any
    way: Way = "call"
    is_error: bool = False
    read: Callable[[Any], Outcome] = value_outcome


Event = Call | Answer
