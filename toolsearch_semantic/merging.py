"""Tools of several sources in one catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from toolsearch_semantic.errors import ToolNameConflictError
from toolsearch_semantic.formats.read import same_tool
from toolsearch_semantic.tool import Tool

__all__ = ["SourcedTool", "merge_tools"]


@dataclass(frozen=True, slots=True)
class SourcedTool:
    """A tool and where it came from.

    Args:
        tool: The tool, under the name that it was declared with.
        place: Where it stands, for messages: ``'tools.jsonl', line 3``.
        origin: The stem of its file or the name of its server, which tells its name from the same name elsewhere.
    """

    tool: Tool
    place: str
    origin: str


def merge_tools(found: Iterable[SourcedTool]) -> list[Tool]:
    """Put the tools of several sources into one catalogue, where each name is one tool's.

    The same definition twice is one tool, unless the two records have different ids. Of different tools with one
    name, each is renamed: to its record's ``id`` where it has one, else to ``<namespace or origin>__<name>``. Names
    do not depend on the order of the sources.

    Raises:
        ToolNameConflictError: Two different tools would still have one name.
    """
    by_name: dict[str, list[SourcedTool]] = {}
    distinct: list[SourcedTool] = []
    for one in found:
        namesakes = by_name.setdefault(one.tool.name, [])
        if not any(_is_same(one.tool, other.tool) for other in namesakes):
            namesakes.append(one)
            distinct.append(one)
    taken: dict[str, SourcedTool] = {}
    merged: list[Tool] = []
    for one in distinct:
        name = one.tool.name
        if len(by_name[name]) > 1:
            name = _record_id(one.tool) or f"{one.tool.namespace or one.origin}__{name}"
        if name in taken:
            raise ToolNameConflictError(
                f"Two different tools would be named {name!r}: {one.tool.name!r} at {one.place}, and "
                f"{taken[name].tool.name!r} at {taken[name].place}. Rename one of them, give each an 'id' or a "
                "'namespace', or leave one out."
            )
        taken[name] = one
        merged.append(one.tool if name == one.tool.name else replace(one.tool, name=name))
    return merged


def _is_same(one: Tool, other: Tool) -> bool:
    return _record_id(one) == _record_id(other) and same_tool(one, other)


def _record_id(tool: Tool) -> str | None:
    identity = tool.source.get("id") if isinstance(tool.source, Mapping) else None
    return identity if isinstance(identity, str) and identity.strip() else None
