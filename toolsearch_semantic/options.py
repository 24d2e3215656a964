"""How a search is asked for."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

from toolsearch_semantic.errors import InvalidOptionError

__all__ = ["Mode", "Precision", "SearchOptions"]

Mode = Literal["semantic", "lexical", "hybrid"]
"""How a catalogue is ranked."""

Precision = Literal["float32", "float16", "int8"]
"""How each number of a vector is held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How an agent's search is answered.

    Args:
        top_k: The most hits, at least 1.
        min_score: The lowest score of a hit, in 0..1; a hit always scores above 0.
        auto_load: Whether what is found is loaded at once, without ``load_tool``.
        preselect: How many tools a new user message loads before its first step; 0 is none.

    Raises:
        InvalidOptionError: A value is of a wrong type or out of range.
    """

    top_k: int = 5
    min_score: float = 0.0
    auto_load: bool = False
    preselect: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "top_k", _integer("top_k", self.top_k, least=1))
        object.__setattr__(self, "min_score", _share("min_score", self.min_score))
        if not isinstance(self.auto_load, bool):
            raise InvalidOptionError(f"auto_load must be True or False, not {self.auto_load!r}.")
        object.__setattr__(self, "preselect", _integer("preselect", self.preselect, least=0))

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


def _integer(name: str, value: object, *, least: int) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidOptionError(f"{name} must be an integer of at least {least}, not {value!r}.") from None
    if number < least:
        raise InvalidOptionError(f"{name} must be at least {least}, not {value!r}.")
    return number


def _share(name: str, value: object) -> float:
    try:
        if isinstance(value, bool | str | bytes):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InvalidOptionError(f"{name} must be a number in 0..1, not {value!r}.") from None
    if math.isnan(number) or not 0.0 <= number <= 1.0:
        raise InvalidOptionError(f"{name} must be in 0..1, not {value!r}.")
    return number


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
