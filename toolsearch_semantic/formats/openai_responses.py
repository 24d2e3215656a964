"""Tools of OpenAI Responses: ``{"type": "function", "name": ..., "parameters": {...}}``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolsearch_semantic.formats.fields import MISSING, field_of, made_tool
from toolsearch_semantic.formats.names import tools_by_written_name
from toolsearch_semantic.formats.schemas import written_schema
from toolsearch_semantic.tool import Tool

__all__ = ["is_openai_responses", "read_openai_responses", "to_openai_responses"]

MAX_NAME_LENGTH = 64


def is_openai_responses(obj: object) -> bool:
    """Return whether it is a flat function tool, as a mapping or an object of the client."""
    if isinstance(obj, type) or field_of(obj, "type") != "function":
        return False
    return field_of(obj, "function") is MISSING


def read_openai_responses(obj: object, *, key: str | None) -> Tool:
    """Read one tool; it has no executor.

    Args:
        obj: What `is_openai_responses` accepts.
        key: Names it where it has no name.

    Raises:
        InvalidToolError: A field is bad.
    """
    return made_tool(
        obj,
        key,
        name=field_of(obj, "name"),
        description=field_of(obj, "description"),
        schema=field_of(obj, "parameters"),
    )


def to_openai_responses(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Write tools for the ``tools`` of a Responses request, in order.

    ``strict`` is written as false: left out, OpenAI may rewrite the schema so that every optional argument becomes
    required. A name that OpenAI does not allow is written as a safe one (see `names.provider_name`); an empty
    description is left out.

    Args:
        tools: Tools as `as_tools` makes them.

    Raises:
        ToolNameConflictError: Two names would be written as one.
        InvalidToolError: A schema cannot be written as JSON.
    """
    return [
        {
            "type": "function",
            "name": name,
            **({"description": tool.description} if tool.description else {}),
            "parameters": written_schema(tool),
            "strict": False,
        }
        for name, tool in tools_by_written_name(tools, max_length=MAX_NAME_LENGTH).items()
    ]
