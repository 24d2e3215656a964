"""Reading JSON into declared shapes, with errors that fit on a line."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["read_json"]

Shape = TypeVar("Shape")


def read_json(shape: type[Shape], data: bytes) -> Shape:
    """Read JSON as a dataclass, checked by pydantic.

    Raises:
        ValueError: It is no JSON, or not of this shape; says the first thing that is wrong, and where.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(shape).validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from error
