"""Pydantic model classes as tools: the fields are the arguments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from toolsearch_semantic.errors import InvalidToolError
from toolsearch_semantic.formats.execution import SyncExecute
from toolsearch_semantic.formats.fields import made_tool
from toolsearch_semantic.formats.schemas import model_schema
from toolsearch_semantic.tool import Tool

__all__ = ["is_pydantic_model", "read_pydantic_model"]


def is_pydantic_model(obj: object) -> bool:
    """Return whether it is a class with what a Pydantic model class has."""
    return isinstance(obj, type) and all(
        hasattr(obj, name) for name in ("model_fields", "model_json_schema", "model_validate")
    )


def read_pydantic_model(obj: Any, *, key: str | None) -> Tool:
    """Read one model class; running it gives the validated instance.

    The key names it, or without one the class; its docstring is the description.

    Args:
        obj: What `is_pydantic_model` accepts.
        key: Its name.

    Raises:
        InvalidToolError: The model has no JSON Schema, or not that of an object.
    """
    try:
        schema = model_schema(obj)
    except Exception as error:  # Pydantic and the user's own schema hooks run here
        raise InvalidToolError(
            f"The Pydantic model {obj.__qualname__} has no JSON Schema: {error}. "
            "Use types for its fields that Pydantic can describe."
        ) from error

    def run(arguments: Mapping[str, Any]) -> Any:
        return obj.model_validate(dict(arguments))

    return made_tool(
        obj,
        key,
        name=obj.__name__ if key is None else key,
        description=inspect.cleandoc(obj.__doc__ or ""),
        schema=schema,
        execute=SyncExecute(obj, run),
    )
