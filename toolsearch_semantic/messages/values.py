"""Fields of messages, which may be dicts or objects of any client library, and may be malformed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

__all__ = ["LONGEST_JSON", "exact_text", "field_of", "is_marked", "items_of", "json_of", "named", "word_of"]

LONGEST_JSON = 1_000_000
"""Characters; text that is longer is not parsed."""


def field_of(obj: object, name: str) -> Any:
    """Return a mapping's value or an object's attribute; None where there is none, or where reading it raises."""
    if type(obj) is dict:
        return obj.get(name)
    try:
        if isinstance(obj, Mapping):
            return obj.get(name)
        return getattr(obj, name, None)
    except Exception:  # a property of an unknown object may fail in any way
        return None


def exact_text(value: object) -> str | None:
    """Return a string as a plain `str`, and None for anything else.

    A member of a string enum, or of another subclass, is taken for its own characters, whatever it makes of `==`.
    """
    if type(value) is str:
        return value
    return str.__str__(value) if isinstance(value, str) else None


def word_of(obj: object, name: str) -> str | None:
    """Return a field that is a non-empty string, such as an id, a name or a role; None for anything else."""
    value = obj.get(name) if type(obj) is dict else field_of(obj, name)
    return (value if type(value) is str else exact_text(value)) or None


def named(obj: object, name: str) -> str | None:
    """Return the name that an object has under a field; None where it has none, and "" where it is no name."""
    value = field_of(obj, name)
    return None if value is None else exact_text(value) or ""


def items_of(value: object) -> Sequence[Any]:
    """Return a list's or tuple's items, and none for anything else: iterating something unknown could consume it."""
    return value if type(value) is list or isinstance(value, list | tuple) else ()


def is_marked(value: object) -> bool:
    """Return whether an error flag is raised: by anything but False and None, so that an odd flag is no success."""
    return value is not None and value is not False


def json_of(text: str) -> tuple[bool, Any]:
    """Return whether a text is JSON, and its value.

    Text over `LONGEST_JSON`, NaN and infinities, and nesting that is too deep to parse are no JSON.
    """
    if len(text) > LONGEST_JSON:
        return False, None
    try:
        return True, _DECODER.decode(text)
    except (ValueError, RecursionError):
        return False, None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)
