"""Tool names as each provider allows them."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

from toolsearch_semantic.errors import (
    InvalidOptionError,
    InvalidToolError,
    ToolNameConflictError,
    UnknownToolShapeError,
)
from toolsearch_semantic.formats.fields import shown
from toolsearch_semantic.tool import Tool

__all__ = ["provider_name", "provider_names", "tools_by_written_name", "written_names"]

_SEPARATOR = re.compile(r"[\s./\\:,;|]", re.ASCII)
_FORBIDDEN = {False: re.compile(r"[^A-Za-z0-9_-]"), True: re.compile(r"[^A-Za-z0-9_.-]")}
_HASH_LENGTH = 8
_SHORTEST_MAXIMUM = 16
_LENGTHS = (64, 128)  # OpenAI; Anthropic and MCP


def provider_name(name: str, *, max_length: int, allow_dots: bool = False) -> str:
    r"""Return a name that a provider accepts: letters, digits, ``_`` and ``-``, at most ``max_length`` of them.

    A name that is already fine is itself. Separators (white space and ``. / \ : , ; |``) become ``_``, which may
    make two names one: `provider_names` finds that. Where other characters are lost or the name is too long, eight
    hexadecimal digits of the SHA-256 of the whole name keep it distinct. The same in every process.

    Args:
        name: Any tool's name.
        max_length: What the provider allows; 16 or more.
        allow_dots: Leave dots as they are.

    Raises:
        InvalidToolError: The name is empty or no string.
        InvalidOptionError: ``max_length`` is below 16, which leaves no room for a distinct name.
    """
    if not isinstance(name, str) or not name:
        raise InvalidToolError(f"A tool's name must be a non-empty string, not {shown(name)}.")
    if max_length < _SHORTEST_MAXIMUM:
        raise InvalidOptionError(f"max_length must be {_SHORTEST_MAXIMUM} or more, not {max_length!r}.")
    forbidden = _FORBIDDEN[allow_dots]
    if len(name) <= max_length and not forbidden.search(name):
        return name
    separated = _SEPARATOR.sub(lambda found: "." if allow_dots and found[0] == "." else "_", name)
    if len(separated) <= max_length and not forbidden.search(separated):
        return separated
    # Accents are split off first, so that the part a reader can recognise survives.
    folded = "".join(c for c in unicodedata.normalize("NFKD", separated) if not unicodedata.combining(c))
    stem = forbidden.sub("_", folded)[: max_length - _HASH_LENGTH - 1].strip("_") or "tool"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
    return f"{stem}_{digest}"


def written_names(name: str) -> set[str]:
    """Return every name that the writers of this package may give a tool, its own among them.

    Args:
        name: The tool's name.
    """
    written = {provider_name(name, max_length=length, allow_dots=dots) for length in _LENGTHS for dots in (False, True)}
    return {name, *written}


def provider_names(names: Iterable[str], *, max_length: int, allow_dots: bool = False) -> dict[str, str]:
    """Return written name → tool name, in the order given: what a provider's tool call has to be read with.

    Args:
        names: The tools' names.
        max_length: What the provider allows; 16 or more.
        allow_dots: Leave dots as they are.

    Raises:
        ToolNameConflictError: Two names are equal, or would be written as one.
        InvalidToolError: A name is empty or no string.
        InvalidOptionError: ``max_length`` is below 16.
    """
    written: dict[str, str] = {}
    for name in names:
        safe = provider_name(name, max_length=max_length, allow_dots=allow_dots)
        if written.get(safe) == name:
            raise ToolNameConflictError(f"Two tools are named {name!r}. Give each name once.")
        if safe in written:
            raise ToolNameConflictError(
                f"The tools {written[safe]!r} and {name!r} would both be written as {safe!r}, because this "
                f"provider allows letters, digits, '_' and '-' up to {max_length} characters. Rename one of them."
            )
        written[safe] = name
    return written


def tools_by_written_name(tools: Iterable[Tool], *, max_length: int, allow_dots: bool = False) -> dict[str, Tool]:
    """Return written name → tool, in the order given.

    Args:
        tools: Tools as `as_tools` makes them; their names must be distinct.
        max_length: What the provider allows; 16 or more.
        allow_dots: Leave dots as they are.

    Raises:
        ToolNameConflictError: Two tools have one name, or would be written under one.
        UnknownToolShapeError: Something is no `Tool`.
    """
    given = list(tools)
    for position, tool in enumerate(given):
        if not isinstance(tool, Tool):
            raise UnknownToolShapeError(
                f"tools[{position}] must be a Tool to be written, not {type(tool).__name__} {shown(tool)}. "
                "Read the tools with as_tools first."
            )
    names = provider_names((tool.name for tool in given), max_length=max_length, allow_dots=allow_dots)
    return dict(zip(names, given, strict=True))
