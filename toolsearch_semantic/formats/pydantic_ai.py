"""Tools of Pydantic AI: ``Tool`` and ``ToolDefinition``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolsearch_semantic.formats.execution import AsyncExecute
from toolsearch_semantic.formats.fields import MISSING, field_of, made_tool
from toolsearch_semantic.tool import Tool

__all__ = ["is_definition", "is_pydantic_ai", "read_pydantic_ai"]


def is_pydantic_ai(obj: object) -> bool:
    """Return whether it has the fields of a Pydantic AI tool or tool definition."""
    if isinstance(obj, type | Mapping):
        return False
    return is_definition(obj) or _is_runnable(obj)


def is_definition(obj: object) -> bool:
    """Return whether it is a tool definition: data that nothing can run."""
    return field_of(obj, "parameters_json_schema") is not MISSING


def _is_runnable(obj: object) -> bool:
    return field_of(obj, "function_schema") is not MISSING and field_of(obj, "takes_ctx") is not MISSING


def read_pydantic_ai(obj: Any, *, key: str | None) -> Tool:
    """Read one tool or tool definition.

    A tool is run by an async callable that validates the arguments as Pydantic AI does. It has no executor where
    only an agent's run can supply what it needs: a run context, an argument validator that takes one, or a human's
    approval. A definition never has one.

    Args:
        obj: What `is_pydantic_ai` accepts.
        key: Names it where its name is None.

    Raises:
        InvalidToolError: A field is bad.
    """
    definition = field_of(obj, "parameters_json_schema")
    schema = field_of(obj.function_schema, "json_schema") if definition is MISSING else definition
    given_by_a_run = definition is not MISSING or _needs_a_run(obj)

    async def run(arguments: Mapping[str, Any]) -> Any:
        function = obj.function_schema
        return await function.call(function.validator.validate_python(dict(arguments)), None)

    return made_tool(
        obj,
        key,
        name=field_of(obj, "name"),
        description=field_of(obj, "description"),
        schema=schema,
        execute=None if given_by_a_run else AsyncExecute(obj, run),
    )


def _needs_a_run(obj: Any) -> bool:
    # Approval and argument validators came to Pydantic AI later than the rest.
    validator = field_of(obj, "args_validator")
    has_validator = validator is not None and validator is not MISSING
    return bool(obj.takes_ctx) or field_of(obj, "requires_approval") is True or has_validator
