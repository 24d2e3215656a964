"""The fields that every outside shape has in some form, fetched and checked."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from toolsearch_semantic.errors import InvalidToolError
from toolsearch_semantic.tool import Tool

__all__ = ["MISSING", "field_of", "made_tool", "shown"]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""What `field_of` answers where there is no such field; None is a value that a field may have."""

_LONGEST_SHOWN = 120


class _ShortRepr(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 4
        self.maxstring = 60
        self.maxother = 80


_REPR = _ShortRepr()


def shown(value: object) -> str:
    """Return a short repr for an error message, at most 120 characters, whatever the object's own repr does."""
    try:
        text = _REPR.repr(value)
    except Exception:  # a repr may fail in any way, and the message matters more
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def field_of(obj: object, name: str) -> Any:
    """Return a mapping's value or an object's attribute, or `MISSING`.

    An attribute that raises counts as missing: asking an unknown object what it is must not fail.
    """
    if type(obj) is dict or isinstance(obj, Mapping):  # the first test is much the faster
        return obj.get(name, MISSING)
    try:
        return getattr(obj, name, MISSING)
    except Exception:
        return MISSING


def made_tool(
    source: object,
    key: str | None,
    *,
    name: object,
    description: object = None,
    schema: object = None,
    execute: Callable[..., Any] | None = None,
    namespace: object = None,
    search_text: object = None,
) -> Tool:
    """Check the fields of one outside tool and make a `Tool` of them.

    Args:
        source: The outside object, kept as `Tool.source`.
        key: Names the tool where it declares no name.
        name: The declared name; None and `MISSING` declare none.
        description: None and `MISSING` become an empty one.
        schema: None and `MISSING` become the schema of no arguments.
        execute: Runs it.
        namespace: The server or toolkit; None and `MISSING` are none.
        search_text: Replaces the derived searchable text; None and `MISSING` are none.

    Raises:
        InvalidToolError: A field is of the wrong type, or neither a name nor a key is there.
    """
    declared = _text("name", name, None)
    called = key if declared is None else declared
    if called is None:
        raise InvalidToolError(
            f"It has no name: {shown(source)}. Give it a 'name', or give the tools as a mapping whose keys name them."
        )
    if not called.strip():
        raise InvalidToolError(f"Its name is blank: {shown(called)}. Give it a name.")
    return Tool(
        called,
        _text("description", description, called) or "",
        _object_schema(schema, called),
        execute,
        _text("namespace", namespace, called),
        _text("search_text", search_text, called),
        source,
    )


def _text(field: str, value: object, owner: str | None) -> str | None:
    if value is None or value is MISSING:
        return None
    if not isinstance(value, str):
        of = "" if owner is None else f" of {shown(owner)}"
        raise InvalidToolError(f"The {field}{of} must be a string, not {type(value).__name__} {shown(value)}.")
    return value


def _object_schema(schema: object, owner: str) -> Mapping[str, Any]:
    if schema is None or schema is MISSING:
        return {"type": "object", "properties": {}}
    if not (type(schema) is dict or isinstance(schema, Mapping)):
        raise InvalidToolError(
            f"The schema of {shown(owner)} must be a JSON Schema object, not {type(schema).__name__} {shown(schema)}. "
            "Leave it out where the tool takes no arguments."
        )
    declared = schema.get("type", "object")
    if declared != "object" and not (isinstance(declared, list) and "object" in declared):
        raise InvalidToolError(
            f"The schema of {shown(owner)} must describe an object (the arguments by name), not type {shown(declared)}."
        )
    return schema
