"""Tools as plain JSON records, for catalogues in files and for saving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolsearch_semantic.formats.fields import field_of, made_tool
from toolsearch_semantic.formats.schemas import plain_schema
from toolsearch_semantic.tool import Tool

__all__ = ["is_record", "read_record", "to_record"]


def is_record(obj: object) -> bool:
    """Return whether it is a mapping with a name, description or parameters, and no provider's ``type``."""
    return (
        isinstance(obj, Mapping)
        and "type" not in obj
        and any(field in obj for field in ("name", "description", "parameters"))
    )


def read_record(obj: object, *, key: str | None) -> Tool:
    """Read one record; it has no executor.

    Read are ``name``, ``description``, ``parameters``, ``namespace`` and ``search_text``; other keys are ignored.

    Args:
        obj: What `is_record` accepts.
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
        namespace=field_of(obj, "namespace"),
        search_text=field_of(obj, "search_text"),
    )


def to_record(tool: Tool) -> dict[str, Any]:
    """Write a tool's definition as plain JSON, to be saved; read again, it is an equal definition.

    The executor and the source are not part of it. A namespace or search text of None is left out.

    Args:
        tool: Any tool.

    Raises:
        InvalidToolError: The schema cannot be written as JSON.
    """
    record: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": plain_schema(tool)}
    if tool.namespace is not None:
        record["namespace"] = tool.namespace
    if tool.search_text is not None:
        record["search_text"] = tool.search_text
    return record
