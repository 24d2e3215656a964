"""Tools of Anthropic Messages: ``{"name": ..., "input_schema": {...}}``, and the functions of its client."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolsearch_semantic.formats.execution import AsyncExecute, SyncExecute
from toolsearch_semantic.formats.fields import MISSING, field_of, made_tool
from toolsearch_semantic.formats.names import tools_by_written_name
from toolsearch_semantic.formats.schemas import written_schema
from toolsearch_semantic.tool import Tool

__all__ = ["is_anthropic", "read_anthropic", "to_anthropic"]

MAX_NAME_LENGTH = 128


def is_anthropic(obj: object) -> bool:
    """Return whether it has an ``input_schema``: a mapping, or an object of the anthropic client."""
    if isinstance(obj, Mapping):
        return "input_schema" in obj and "inputSchema" not in obj
    if isinstance(obj, type) or type(obj).__module__.partition(".")[0] != "anthropic":
        return False
    return field_of(obj, "input_schema") is not MISSING


def read_anthropic(obj: object, *, key: str | None) -> Tool:
    """Read one tool; what the client's ``beta_tool`` made is run through its ``call``, the rest has no executor.

    Args:
        obj: What `is_anthropic` accepts.
        key: Names it where it has no name.

    Raises:
        InvalidToolError: A field is bad.
    """
    return made_tool(
        obj,
        key,
        name=field_of(obj, "name"),
        description=field_of(obj, "description"),
        schema=field_of(obj, "input_schema"),
        execute=_executor(obj),
    )


def to_anthropic(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Write tools for the ``tools`` of a Messages request, in order.

    A name that Anthropic does not allow is written as a safe one (see `names.provider_name`); an empty description
    is left out.

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
            "input_schema": written_schema(tool),
        }
        for name, tool in tools_by_written_name(tools, max_length=MAX_NAME_LENGTH).items()
    ]


def _executor(obj: object) -> Callable[..., Any] | None:
    call = None if isinstance(obj, Mapping) else field_of(obj, "call")
    if call is None or not callable(call):
        return None
    return (AsyncExecute if inspect.iscoroutinefunction(call) else SyncExecute)(obj, call)
