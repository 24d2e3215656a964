"""Tools of the Model Context Protocol: objects of its SDK, versions 1 and 2, and their JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolsearch_semantic.formats.fields import MISSING, field_of, made_tool
from toolsearch_semantic.formats.names import tools_by_written_name
from toolsearch_semantic.formats.schemas import written_schema
from toolsearch_semantic.tool import Tool

__all__ = ["is_mcp", "read_mcp", "to_mcp"]

MAX_NAME_LENGTH = 128


def is_mcp(obj: object) -> bool:
    """Return whether it has an ``inputSchema``, or is an object with a name and an ``input_schema``."""
    if isinstance(obj, Mapping):
        return "inputSchema" in obj
    if isinstance(obj, type) or callable(obj) or field_of(obj, "name") is MISSING:
        return False
    return field_of(obj, "inputSchema") is not MISSING or field_of(obj, "input_schema") is not MISSING


def read_mcp(obj: object, *, key: str | None) -> Tool:
    """Read one tool; it has no executor, because its server runs it.

    Args:
        obj: What `is_mcp` accepts.
        key: Names it where it has no name.

    Raises:
        InvalidToolError: A field is bad.
    """
    schema = field_of(obj, "inputSchema")
    return made_tool(
        obj,
        key,
        name=field_of(obj, "name"),
        description=field_of(obj, "description"),
        schema=field_of(obj, "input_schema") if schema is MISSING else schema,
    )


def to_mcp(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Write tools as the ``tools`` of an MCP ``tools/list`` result, in order.

    Dots stay in names, which MCP allows; what it does not allow is written as a safe name (see
    `names.provider_name`). An empty description is left out.

    Args:
        tools: Tools as `as_tools` makes them.

    Raises:
        ToolNameConflictError: Two names would be written as one.
        InvalidToolError: A schema cannot be written as JSON.
    """
    return [
        {
            "name": name,
            **({"description": tool.description} if tool.description else {}),
            "inputSchema": written_schema(tool),
        }
        for name, tool in tools_by_written_name(tools, max_length=MAX_NAME_LENGTH, allow_dots=True).items()
    ]
