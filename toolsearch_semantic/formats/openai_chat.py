"""Tools of OpenAI Chat Completions: ``{"type": "function", "function": {...}}``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolsearch_semantic.errors import InvalidToolError
from toolsearch_semantic.formats.fields import MISSING, field_of, made_tool, shown
from toolsearch_semantic.formats.names import tools_by_written_name
from toolsearch_semantic.formats.schemas import written_schema
from toolsearch_semantic.tool import Tool

__all__ = ["is_openai_chat", "read_openai_chat", "to_openai_chat"]

MAX_NAME_LENGTH = 64


def is_openai_chat(obj: object) -> bool:
    """Return whether it is a function tool with a nested function, as a mapping or an object of the client."""
    if isinstance(obj, type) or field_of(obj, "type") != "function":
        return False
    return field_of(obj, "function") is not MISSING


def read_openai_chat(obj: object, *, key: str | None) -> Tool:
    """Read one tool; it has no executor.

    Args:
        obj: What `is_openai_chat` accepts.
        key: Names it where the function has no name.

    Raises:
        InvalidToolError: The function is no object, or has a bad field.
    """
    function = field_of(obj, "function")
    if not isinstance(function, Mapping) and field_of(function, "name") is MISSING:
        raise InvalidToolError(
            f"Its 'function' must be an object with name, description and parameters, "
            f"not {type(function).__name__} {shown(function)}."
        )
    return made_tool(
        obj,
        key,
        name=field_of(function, "name"),
        description=field_of(function, "description"),
        schema=field_of(function, "parameters"),
    )


def to_openai_chat(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Write tools for the ``tools`` of a Chat Completions request, in order.

    A name that OpenAI does not allow is written as a safe one (see `names.provider_name`); an empty description
    is left out.

    Args:
        tools: Tools as `as_tools` makes them.

    Raises:
        ToolNameConflictError: Two names would be written as one.
        InvalidToolError: A schema cannot be written as JSON.
    """
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                **({"description": tool.description} if tool.description else {}),
                "parameters": written_schema(tool),
            },
        }
        for name, tool in tools_by_written_name(tools, max_length=MAX_NAME_LENGTH).items()
    ]
