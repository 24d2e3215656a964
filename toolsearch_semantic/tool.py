"""What the library calls a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolsearch_semantic.errors import InvalidToolError

__all__ = ["Tool"]


def _no_parameters() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that an agent can call, in one shape whatever framework it came from.

    Frozen: two tools are equal when every field but ``source`` is. ``source`` and ``input_schema`` are kept by
    reference and handed back untouched, so do not change them afterwards: what is indexed would not be true.

    Args:
        name: What the model calls it by. Any non-blank text; the writers in ``formats`` make it safe for a
            provider that allows less.
        description: What it does, as the model reads it. May be empty.
        input_schema: JSON Schema of its arguments, an object schema.
        execute: Runs it, sync or async, called with the arguments as keywords; None where somebody else does.
        namespace: The server or toolkit that it belongs to. Searchable, and never part of the name.
        search_text: Replaces the derived searchable text.
        source: The object that it was made from; None for a tool that was made here.

    Raises:
        InvalidToolError: A field is of the wrong type, the name is blank, or the schema is not an object schema.
    """

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=_no_parameters, hash=False)
    execute: Callable[..., Any] | None = None
    namespace: str | None = None
    search_text: str | None = None
    source: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidToolError(f"A tool's name must be a non-blank string, not {self.name!r}. Give it one.")
        if not isinstance(self.description, str):
            raise InvalidToolError(
                f"The description of tool {self.name!r} must be a string, not {self.description!r}. "
                "Use '' where there is none."
            )
        for option in ("namespace", "search_text"):
            value = getattr(self, option)
            if value is not None and not isinstance(value, str):
                raise InvalidToolError(f"The {option} of tool {self.name!r} must be a string or None, not {value!r}.")
        if self.execute is not None and not callable(self.execute):
            raise InvalidToolError(f"The execute of tool {self.name!r} must be callable or None, not {self.execute!r}.")
        if not isinstance(self.input_schema, Mapping):
            raise InvalidToolError(
                f"The input_schema of tool {self.name!r} must be a JSON Schema object, not {self.input_schema!r}. "
                "Leave it out where the tool takes no arguments."
            )
        declared = self.input_schema.get("type", "object")
        if declared != "object" and not (isinstance(declared, list) and "object" in declared):
            raise InvalidToolError(
                f"The input_schema of tool {self.name!r} must describe an object (its arguments), "
                f"not type {declared!r}."
            )
