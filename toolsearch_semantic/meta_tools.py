"""The two tools that the model gets in place of the catalogue: their definitions and the texts of their results.

Everything that is sent to the model is written here. Definitions and instructions are constant for a processor, so
that a provider's prompt cache stays whole; results give names, and descriptions cut short, with what does not
print left out. A name that does not print whole is given as the safe name that a provider would be given for it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch_semantic.errors import InvalidOptionError
from toolsearch_semantic.formats.names import provider_name, written_names
from toolsearch_semantic.hits import SearchHit
from toolsearch_semantic.text import clean
from toolsearch_semantic.tool import Tool

__all__ = [
    "ErrorResult",
    "MetaTools",
    "catalogue_message",
    "load_result",
    "nothing_found",
    "printable",
    "quoted",
    "search_result",
    "short_description",
    "shown_name",
]

DESCRIPTION_LENGTH = 150
_QUOTE_LENGTH = 200
_MOST_QUOTED = 5


class ErrorResult(dict[str, Any]):
    """A result that tells the model what went wrong: ``{"success": False, "message": ...}``.

    A dict like other results, and of this class so that a host can mark it as an error to its provider.
    """

    def __init__(self, message: str) -> None:
        super().__init__(success=False, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaTools:
    """Names and descriptions of the meta-tools; the defaults are written for a model to follow.

    Args:
        search_name: Name of the tool that searches.
        load_name: Name of the tool that loads.
        search_description: In place of the default description.
        load_description: In place of the default description.
        instructions: In place of the default system message; "" sends none.

    Raises:
        InvalidOptionError: A name is blank, or both are one, or would be written as one.
    """

    search_name: str = "search_tools"
    load_name: str = "load_tool"
    search_description: str | None = None
    load_description: str | None = None
    instructions: str | None = None

    def __post_init__(self) -> None:
        for option in ("search_name", "load_name"):
            name = getattr(self, option)
            if not isinstance(name, str) or not name.strip():
                raise InvalidOptionError(f"{option} must be a non-blank string, not {name!r}.")
        if written_names(self.search_name) & written_names(self.load_name):
            raise InvalidOptionError(f"The meta-tools need two names, not {self.search_name!r} and {self.load_name!r}.")

    @property
    def names(self) -> tuple[str, str]:
        """The names of the tool that searches and of the one that loads."""
        return self.search_name, self.load_name

    @property
    def written(self) -> frozenset[str]:
        """Every name that a provider may be given for them."""
        return frozenset(written_names(self.search_name) | written_names(self.load_name))

    def search_tool(self, *, auto_load: bool) -> Tool:
        """Define the tool that searches."""
        then = (
            "What is found is loaded at once: call it in your next step."
            if auto_load
            else f"It finds names only: load those that you need with {self.load_name}."
        )
        default = (
            "Find tools by what they do. Most of your tools are not listed; search whenever a task needs something "
            f"that you have no tool for. {then}"
        )
        return Tool(self.search_name, self.search_description or default, _SEARCH_SCHEMA)

    def load_tool(self) -> Tool:
        """Define the tool that loads."""
        default = (
            f"Load tools that {self.search_name} found, by name. A loaded tool can be called from your next step on, "
            "and stays loaded."
        )
        return Tool(self.load_name, self.load_description or default, _LOAD_SCHEMA)

    def system_message(self, *, auto_load: bool) -> str:
        """Write the instructions that go with the meta-tools."""
        if self.instructions is not None:
            return self.instructions
        how = (
            f"Call {self.search_name} with a few words on what you need; the tools that it finds can be called from "
            "your next step on."
            if auto_load
            else f"Call {self.search_name} with a few words on what you need, then {self.load_name} with the names "
            "that fit; loaded tools can be called from your next step on."
        )
        return (
            f"You have more tools than are listed. {how} If nothing fits, search once more with other words, then go "
            "on without a tool and say what is missing."
        )


_SEARCH_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "description": "What the tool should do, in a few words, such as 'send an invoice by mail'; or a list of "
            "such texts, for several tools at once.",
        }
    },
    "required": ["query"],
    "additionalProperties": False,
}
_LOAD_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "tool_name": {"type": "string", "description": "Name of one tool, as the search gave it."},
        "tool_names": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Names of several tools, as the search gave them.",
        },
    },
    "additionalProperties": False,
}


def printable(text: str) -> str:
    """Collapse white space and drop what does not print: control and format characters, lone surrogates."""
    text = clean(text)
    if text.isprintable():
        return text
    return clean("".join(c for c in text if unicodedata.category(c) not in {"Cc", "Cf", "Cs"}))


def shown_name(name: str) -> str:
    """Give a tool's name as the model is to see it: itself, or the safe name where it does not print whole."""
    return name if printable(name) == name else provider_name(name, max_length=64)


def quoted(text: str) -> str:
    """Quote what a model wrote, cleaned and cut to 200 characters."""
    text = printable(text[: 4 * _QUOTE_LENGTH])
    return f'"{text if len(text) <= _QUOTE_LENGTH else text[: _QUOTE_LENGTH - 3] + "..."}"'


def short_description(tool: Tool) -> str:
    """Cut a description to 150 characters, the last three of them dots; cleaned of what does not print."""
    text = printable(tool.description)
    return text if len(text) <= DESCRIPTION_LENGTH else text[: DESCRIPTION_LENGTH - 3] + "..."


def catalogue_message(tools: Sequence[Tool], *, auto_load: bool) -> str:
    """Write the system message that lists a small catalogue: names, and descriptions cut short."""
    lines = (
        f"- {shown_name(tool.name)}: {short_description(tool)}" if tool.description else f"- {shown_name(tool.name)}"
        for tool in tools
    )
    title = "Tools that a search for their name loads:" if auto_load else "Tools that can be loaded by name:"
    return "\n".join([title, *lines])


def nothing_found(queries: Sequence[str]) -> dict[str, Any]:
    """Write the result of a search without hits."""
    telling = [query for query in queries if printable(query)]
    if not telling:
        return {"results": [], "message": "The query is empty. Say in a few words what the tool should do."}
    asked = ", ".join(quoted(query) for query in telling[:_MOST_QUOTED])
    if len(telling) > _MOST_QUOTED:
        asked += f" and {len(telling) - _MOST_QUOTED} more"
    return {
        "results": [],
        "message": f"No tool was found for {asked}. Search again with other words for what the tool should do, or go "
        "on without a tool.",
    }


def search_result(
    hits: Sequence[SearchHit],
    *,
    weak: bool,
    load_name: str | None,
    loaded: Sequence[str] = (),
    already: Sequence[str] = (),
    available: Sequence[str] = (),
    unloaded: Sequence[str] = (),
) -> dict[str, Any]:
    """Write the result of a search with hits.

    Args:
        hits: What was found, best first.
        weak: Whether even the best is likely chance.
        load_name: The tool that loads; None where the hits were loaded.
        loaded: What was loaded, where hits are.
        already: What had been loaded before.
        available: What is there without being loaded.
        unloaded: What was unloaded to make room.
    """
    result: dict[str, Any] = {
        "results": [
            {
                "name": shown_name(hit.tool.name),
                "description": short_description(hit.tool),
                "score": _shown_score(hit.score),
            }
            for hit in hits
        ]
    }
    parts = []
    if weak:
        parts.append(
            "Probably no tool does this: these are weak matches. Use one only if its description fits; otherwise "
            "search with other words, or go on without a tool."
        )
    if load_name is None:
        lists = {"loaded": loaded, "already_loaded": already, "available": available, "unloaded": unloaded}
        parts += _said(lists)
        result |= _fields(lists)
    elif not weak:
        parts.append(f"Load what you need with {load_name}, by name; then call it in your next step.")
    result["message"] = " ".join(parts)
    return result


def load_result(
    *,
    loaded: Sequence[str],
    already: Sequence[str],
    missing: Mapping[str, Sequence[str]],
    available: Sequence[str] = (),
    unloaded: Sequence[str] = (),
    not_loaded: Sequence[str] = (),
    alike: Mapping[str, str] | None = None,
    more_missing: int = 0,
) -> dict[str, Any]:
    """Write the result of a load.

    Args:
        loaded: What was loaded.
        already: What had been loaded before.
        missing: What was not found, with suggestions for each.
        available: What is there without being loaded; no receipt, since no store is to remember it.
        unloaded: What was unloaded to make room.
        not_loaded: What there was no room for.
        alike: What was not loaded because it would be written like a tool that is there: name → that tool's.
        more_missing: How many more were not found.
    """
    there = {"loaded": loaded, "already_loaded": already, "available": available}
    parts = _said(there)
    for name, near in missing.items():
        advice = f"Did you mean {', '.join(map(shown_name, near))}?" if near else "Search for it by what it does."
        parts.append(f"No tool is named {quoted(name)}. {advice}")
    if more_missing:
        parts.append(f"Nor are there tools of the {more_missing} names after these.")
    lists = {"unloaded": unloaded, "not_loaded": not_loaded}
    parts += _said(lists)
    alike = alike or {}
    for name, other in alike.items():
        parts.append(f"{shown_name(name)} cannot be loaded beside {shown_name(other)}: their names are too alike.")
    lists["not_loaded"] = [*not_loaded, *alike]
    result: dict[str, Any] = {"success": not missing and not lists["not_loaded"], "message": " ".join(parts)}
    result |= _fields({**there, **lists})
    if missing:
        result["not_found"] = [printable(name) for name in missing]
        result["suggestions"] = {printable(name): [*map(shown_name, near)] for name, near in missing.items()}
    return result


_SAYINGS = {
    "loaded": "Loaded, to be called from your next step on: {}.",
    "already_loaded": "Already loaded: {}.",
    "available": "You have these without loading them: {}.",
    "unloaded": "Unloaded, to make room: {}.",
    "not_loaded": "Not loaded, because so many cannot be loaded at once: {}. Load them when you need them.",
}


def _said(lists: Mapping[str, Sequence[str]]) -> list[str]:
    return [_SAYINGS[field].format(", ".join(map(shown_name, names))) for field, names in lists.items() if names]


def _fields(lists: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {field: [*map(shown_name, names)] for field, names in lists.items() if names}


def _shown_score(score: float) -> float:
    return max(round(score, 2), 0.01)  # a hit scores above 0, and is shown to
