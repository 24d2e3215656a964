"""Tools of Haystack: ``haystack.tools.Tool`` and its subclasses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from toolsearch_semantic.formats.execution import AsyncExecute, SyncExecute
from toolsearch_semantic.formats.fields import MISSING, field_of, made_tool
from toolsearch_semantic.tool import Tool

__all__ = ["is_haystack", "read_haystack"]


def is_haystack(obj: object) -> bool:
    """Return whether it has the fields of a Haystack tool."""
    if isinstance(obj, type | Mapping):
        return False
    return all(field_of(obj, name) is not MISSING for name in ("parameters", "function", "inputs_from_state", "invoke"))


def read_haystack(obj: Any, *, key: str | None) -> Tool:
    """Read one tool.

    It is run with ``invoke``, or with ``invoke_async`` where it has only an async function. Where an agent's state
    supplies an argument it has no executor, because only Haystack's agent can.

    Args:
        obj: What `is_haystack` accepts.
        key: Names it where its name is None.

    Raises:
        InvalidToolError: A field is bad.
    """
    return made_tool(
        obj,
        key,
        name=field_of(obj, "name"),
        description=field_of(obj, "description"),
        schema=field_of(obj, "parameters"),
        execute=_executor(obj),
    )


def _executor(obj: Any) -> Callable[..., Any] | None:
    function = obj.function
    is_async = function is None
    if is_async:
        function = field_of(obj, "async_function")
    if obj.inputs_from_state or _required(function) - set(_properties(obj.parameters)):
        return None
    if is_async:

        async def run_async(arguments: Mapping[str, Any]) -> Any:
            return await obj.invoke_async(**arguments)

        return AsyncExecute(obj, run_async)
    return SyncExecute(obj, lambda arguments: obj.invoke(**arguments))


def _properties(schema: object) -> Mapping[str, Any]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _required(function: Any) -> set[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return set()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {p.name for p in parameters if p.default is inspect.Parameter.empty and p.kind not in variadic}
