"""Tools of LangChain: instances of ``BaseTool``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolsearch_semantic.errors import InvalidToolError
from toolsearch_semantic.formats.execution import AsyncExecute
from toolsearch_semantic.formats.fields import field_of, made_tool, shown
from toolsearch_semantic.formats.schemas import model_schema
from toolsearch_semantic.tool import Tool

__all__ = ["is_langchain", "read_langchain"]


def is_langchain(obj: object) -> bool:
    """Return whether a class named BaseTool of a LangChain package is among its classes."""
    return any(
        parent.__name__ == "BaseTool" and parent.__module__.partition(".")[0].startswith("langchain")
        for parent in type(obj).__mro__
    )


def read_langchain(obj: Any, *, key: str | None) -> Tool:
    """Read one tool, as its model sees it: arguments that LangChain injects are left out.

    It is run with ``ainvoke``. Where LangChain has to inject a required argument it has no executor, because only
    LangChain's own tool node can.

    Args:
        obj: What `is_langchain` accepts.
        key: Names it where its name is None.

    Raises:
        InvalidToolError: A field is bad, or LangChain cannot say what its arguments are.
    """
    try:
        schema = _schema(obj)
        injected = _required(obj) - set(schema.get("properties", {}))
    except Exception as error:  # LangChain and the user's model run here, and may fail in any way
        raise InvalidToolError(
            f"The arguments of the LangChain tool {shown(field_of(obj, 'name'))} have no JSON Schema: {error}. "
            "Give it an args_schema."
        ) from error

    async def run(arguments: Mapping[str, Any]) -> Any:
        return await obj.ainvoke(dict(arguments))

    return made_tool(
        obj,
        key,
        name=field_of(obj, "name"),
        description=field_of(obj, "description"),
        schema=schema,
        execute=None if injected else AsyncExecute(obj, run),
    )


def _schema(obj: Any) -> dict[str, Any]:
    # The one-string Tool has no schema of its own: it says only in `args` that it takes a string.
    if obj.args_schema is None and list(obj.args) == ["tool_input"]:
        return {"type": "object", "properties": dict(obj.args), "required": ["tool_input"]}
    schema = obj.tool_call_schema
    return dict(schema) if isinstance(schema, Mapping) else model_schema(schema)


def _required(obj: Any) -> set[str]:
    fields = getattr(obj.args_schema, "model_fields", None) or {}
    return {name if field.alias is None else field.alias for name, field in fields.items() if field.is_required()}
