"""Checking what a host gives: options of a processor, and the arguments of a step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolsearch_semantic.errors import InvalidOptionError

__all__ = ["DEFAULT_THREAD", "read_count", "read_flag", "read_messages", "read_seconds", "read_thread"]

DEFAULT_THREAD = "default"
"""The thread of requests that name none."""


def read_thread(thread_id: str | None, request_context: Mapping[str, Any]) -> str:
    """Read the thread's id, or else the one in the request's context, or else the default.

    Raises:
        InvalidOptionError: It is no string.
    """
    chosen = request_context.get("thread_id") if thread_id is None else thread_id
    if chosen is None:
        return DEFAULT_THREAD
    if not isinstance(chosen, str):
        raise InvalidOptionError(f"thread_id must be a string, not {chosen!r}.")
    return chosen


def read_messages(messages: Iterable[Any] | None) -> Sequence[Any]:
    """Read a conversation into a sequence, once; None is an empty one.

    Raises:
        InvalidOptionError: It is no iterable of messages.
    """
    if messages is None:
        return ()
    if isinstance(messages, list | tuple):
        return messages
    # A Pydantic object can be iterated and gives its fields, so a single message would read as several.
    single = isinstance(messages, str | bytes | Mapping) or hasattr(type(messages), "model_fields")
    if single or not isinstance(messages, Iterable):
        raise InvalidOptionError(f"messages must be an iterable of messages, oldest first, not {messages!r}.")
    return tuple(messages)


def read_count(name: str, value: object) -> int:
    """Read an option that is a positive integer.

    Raises:
        InvalidOptionError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidOptionError(f"{name} must be an integer of at least 1, not {value!r}.")
    return value


def read_seconds(name: str, value: float | None) -> float | None:
    """Read an option that is a positive number of seconds, or None.

    Raises:
        InvalidOptionError: It is not.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise InvalidOptionError(f"{name} must be a number of seconds above 0, or None, not {value!r}.")
    return float(value)


def read_flag(name: str, value: object) -> bool:
    """Read an option that is True or False.

    Raises:
        InvalidOptionError: It is neither.
    """
    if not isinstance(value, bool):
        raise InvalidOptionError(f"{name} must be True or False, not {value!r}.")
    return value
