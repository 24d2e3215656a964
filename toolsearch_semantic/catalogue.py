"""The tools of one catalogue, under their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from toolsearch_semantic.errors import InvalidOptionError, ToolNameConflictError, ToolNotFoundError
from toolsearch_semantic.formats.read import NamedTools, same_tool
from toolsearch_semantic.text import clean, normalise
from toolsearch_semantic.tool import Tool

__all__ = ["SELECT", "Catalogue"]

SELECT = "select:"
"""Begins a query that names tools."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Tools in order, and the aliases (key → name) that they answer to; immutable.

    ``rows`` gives each name's place, and ``squashed`` the places of all names that are one when case and
    separators are put aside.
    """

    tools: tuple[Tool, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, int] = field(init=False)
    squashed: Mapping[str, tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        rows = {tool.name: row for row, tool in enumerate(self.tools)}
        for alias, name in self.aliases.items():
            if name not in rows:
                raise ToolNotFoundError(f"The alias {alias!r} leads to {name!r}, which is not in the catalogue.")
        squashed: dict[str, tuple[int, ...]] = {}
        for name, row in [*rows.items(), *((alias, rows[name]) for alias, name in self.aliases.items())]:
            key = _squash(name)
            there = squashed.get(key, ())
            if key and row not in there:  # a name of separators alone would be found by any others
                squashed[key] = (*there, row)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "squashed", squashed)

    def row(self, name: str) -> int | None:
        """Find a tool by name or alias."""
        return self.rows.get(self.aliases.get(name, name))

    def with_added(self, new: NamedTools) -> Self:
        """Return a catalogue with more tools at its end; those that it has already are passed over.

        Raises:
            ToolNameConflictError: A name or an alias means a different tool already.
        """
        added: list[Tool] = []
        for tool in new.tools:
            row = self.row(tool.name)
            if row is None:
                added.append(tool)
            elif not same_tool(self.tools[row], tool):
                there = self.tools[row]
                raise ToolNameConflictError(
                    f"The tool {_named(tool)} cannot be added: the name {tool.name!r} is taken by {_named(there)}. "
                    "Remove that one first, or rename one of them."
                )
        aliases = dict(self.aliases)
        for alias, name in new.aliases.items():
            row = self.row(alias)
            if row is not None and self.tools[row].name != name:
                raise ToolNameConflictError(
                    f"The key {alias!r} of the tool {name!r} is taken by {_named(self.tools[row])}. Rename one of them."
                )
            aliases[alias] = name
        return type(self)((*self.tools, *added), aliases)

    def without(self, names: Iterable[str]) -> tuple[Self, list[int]]:
        """Return a catalogue without some tools and their aliases, and the rows that they had.

        Raises:
            ToolNotFoundError: A name is not in the catalogue.
            InvalidOptionError: One string was given in place of several.
        """
        if isinstance(names, str):
            raise InvalidOptionError(f"Several names are expected: give [{names!r}], not {names!r}.")
        gone: set[int] = set()
        for name in names:
            row = self.row(name)
            if row is None:
                raise ToolNotFoundError(f"There is no tool {name!r} to remove; nothing was removed.")
            gone.add(row)
        tools = tuple(tool for row, tool in enumerate(self.tools) if row not in gone)
        left = {tool.name for tool in tools}
        return type(self)(tools, {a: name for a, name in self.aliases.items() if name in left}), sorted(gone)

    def named_in(self, query: str) -> tuple[int, ...]:
        """Find the tools that a query names: by being a name, or as ``select:name1,name2``."""
        if is_selection(query):
            names = query[len(SELECT) :].split(",")
            return tuple(dict.fromkeys(row for name in names for row in self.squashed.get(_squash(name), ())))
        rows = self.squashed.get(_squash(query), ())
        spelt_alike = self.row(query)
        # Names can differ by case or separators alone; the one that was typed comes first.
        return rows if spelt_alike is None else tuple(dict.fromkeys((spelt_alike, *rows)))


def is_selection(query: str) -> bool:
    """Tell whether a query names tools, whatever else they are about."""
    return query[: len(SELECT)].lower() == SELECT


def _squash(name: str) -> str:
    return "".join(normalise(clean(name)).translate(_SEPARATORS).split()).casefold()


_SEPARATORS = str.maketrans("_-.", "   ")


def _named(tool: Tool) -> str:
    return repr(tool.name) if tool.namespace is None else f"{tool.name!r} of {tool.namespace!r}"
