"""JSON Schemas: made from Pydantic models on the way in, made plain JSON on the way out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolsearch_semantic.errors import InvalidToolError
from toolsearch_semantic.formats.fields import shown
from toolsearch_semantic.tool import Tool

__all__ = ["model_schema", "plain_schema", "written_schema"]


def model_schema(model: Any) -> dict[str, Any]:
    """Return a Pydantic model class's JSON Schema with an object at its root.

    Pydantic describes a model that contains itself by a reference; providers want the object itself there.
    """
    schema: dict[str, Any] = model.model_json_schema() if hasattr(model, "model_json_schema") else model.schema()
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        inlined = schema["$defs"][reference.removeprefix("#/$defs/")]
        return {**inlined, **{name: value for name, value in schema.items() if name != "$ref"}}
    return schema


def plain_schema(tool: Tool) -> dict[str, Any]:
    """Return a tool's input schema as new plain JSON objects, in the order of the original.

    Raises:
        InvalidToolError: The schema holds what JSON has no form for.
    """
    try:
        text = json.dumps(tool.input_schema, default=_plain, allow_nan=False)
        schema: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidToolError(
            f"The input_schema of tool {shown(tool.name)} cannot be written as JSON: {error}. "
            "Use only objects with string keys, lists, strings, finite numbers, booleans and null."
        ) from error
    return schema


def written_schema(tool: Tool) -> dict[str, Any]:
    """Return a tool's input schema as providers want it: plain JSON, of type object, with properties.

    Raises:
        InvalidToolError: The schema holds what JSON has no form for.
    """
    return {**plain_schema(tool), "type": "object"} | ({} if "properties" in tool.input_schema else {"properties": {}})


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} {shown(value)} has no form in JSON")
