"""How a search is asked for."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from toolsearch_semantic.errors import InvalidOptionError

__all__ = ["SearchOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What bounds a search's hits.

    Args:
        top_k: The most hits, at least 1.
        min_score: The lowest score of a hit, in 0..1; a hit always scores above 0.

    Raises:
        InvalidOptionError: A value is of a wrong type or out of range.
    """

    top_k: int = 5
    min_score: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "top_k", _positive_integer("top_k", self.top_k))
        object.__setattr__(self, "min_score", _share("min_score", self.min_score))

    @classmethod
    def read(cls, options: SearchOptions | Mapping[str, Any] | None) -> Self:
        """Read options from a mapping, with names in snake_case or in camelCase; None gives the defaults.

        Raises:
            InvalidOptionError: A name is unknown or given in both spellings, or a value is not allowed.
        """
        if options is None:
            return cls()
        if isinstance(options, cls):
            return options
        if not isinstance(options, Mapping):
            raise InvalidOptionError(f"Search options must be SearchOptions or a mapping, not {options!r}.")
        known = {field.name: field.name for field in fields(cls)}
        known |= {_camel_case(name): name for name in known}
        values: dict[str, Any] = {}
        for key, value in options.items():
            name = known.get(key)
            if name is None:
                raise InvalidOptionError(f"Unknown search option {key!r}; there are {', '.join(sorted(known))}.")
            if name in values:
                raise InvalidOptionError(f"The search option {name!r} was given twice, as {key!r} too. Give it once.")
            values[name] = value
        return cls(**values)


def _positive_integer(name: str, value: object) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidOptionError(f"{name} must be an integer of at least 1, not {value!r}.") from None
    if number < 1:
        raise InvalidOptionError(f"{name} must be at least 1, not {value!r}.")
    return number


def _share(name: str, value: object) -> float:
    try:
        if isinstance(value, bool | str | bytes):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidOptionError(f"{name} must be a number in 0..1, not {value!r}.") from None
    if math.isnan(number) or not 0.0 <= number <= 1.0:
        raise InvalidOptionError(f"{name} must be in 0..1, not {value!r}.")
    return number


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
