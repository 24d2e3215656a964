"""Reading tools of any known shape, one or many."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from toolsearch_semantic.errors import InvalidToolError, ToolNameConflictError, UnknownToolShapeError
from toolsearch_semantic.formats.anthropic import is_anthropic, read_anthropic
from toolsearch_semantic.formats.execution import SyncExecute
from toolsearch_semantic.formats.fields import MISSING, field_of, shown
from toolsearch_semantic.formats.function import is_function, read_function
from toolsearch_semantic.formats.haystack import is_haystack, read_haystack
from toolsearch_semantic.formats.langchain import is_langchain, read_langchain
from toolsearch_semantic.formats.mcp import is_mcp, read_mcp
from toolsearch_semantic.formats.openai_chat import is_openai_chat, read_openai_chat
from toolsearch_semantic.formats.openai_responses import is_openai_responses, read_openai_responses
from toolsearch_semantic.formats.pydantic_ai import is_definition, is_pydantic_ai, read_pydantic_ai
from toolsearch_semantic.formats.pydantic_model import is_pydantic_model, read_pydantic_model
from toolsearch_semantic.formats.record import is_record, read_record
from toolsearch_semantic.tool import Tool

__all__ = ["NamedTools", "as_tool", "as_tools", "read_tools", "same_tool"]

_ACCEPTED = (
    "Accepted are: a Tool; a function or other callable; a Pydantic model class; a tool object of LangChain, "
    "Pydantic AI, Haystack or MCP; a dict of OpenAI (type 'function'), Anthropic (input_schema) or MCP (inputSchema); "
    "or a dict with name, description and parameters."
)

# The first that matches reads it. Objects of frameworks come before callables, because some of them can be called;
# `input_schema` comes before the flat OpenAI shape, which would read such a tool as one without arguments.
_Format = tuple[Callable[[object], bool], Callable[..., Tool]]
_FORMATS: tuple[_Format, ...] = (
    (is_langchain, read_langchain),
    (is_haystack, read_haystack),
    (is_pydantic_ai, read_pydantic_ai),
    (is_openai_chat, read_openai_chat),
    (is_anthropic, read_anthropic),
    (is_mcp, read_mcp),
    (is_openai_responses, read_openai_responses),
    (is_record, read_record),
    (is_pydantic_model, read_pydantic_model),
    (is_function, read_function),
)

# Plain dicts are what requests bring by the thousand; they need not be asked whether they are a framework's object.
_DICT_FORMATS = tuple(
    (matches, read)
    for matches, read in _FORMATS
    if matches in {is_openai_chat, is_anthropic, is_mcp, is_openai_responses, is_record}
)

# What read a Pydantic object of this class before: its fields are fixed, and asking for absent ones is slow.
_MODEL_FORMATS: WeakKeyDictionary[type, _Format] = WeakKeyDictionary()

_NO_TOOL_TYPES = {
    "custom": "It takes free text where a tool that can be searched for has a schema of named arguments.",
    "namespace": "It groups tools: give the tools in it instead.",
    "object": "It is a JSON Schema alone: put it under 'parameters', beside a 'name' and a 'description'.",
}


@dataclass(frozen=True, slots=True)
class NamedTools:
    """The tools of a catalogue, and the keys that they were given under.

    Args:
        tools: Distinct in name, in the order given.
        aliases: Key → tool name, for the keys that differ from the name; read-only.
    """

    tools: tuple[Tool, ...]
    aliases: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Entry:
    where: str
    key: str | None
    tool: Tool

    @property
    def party(self) -> str:
        namespace = "" if self.tool.namespace is None else f" of namespace {self.tool.namespace!r}"
        return f"{self.where}{namespace} ({type(_origin(self.tool)).__name__} {shown(_origin(self.tool))})"


def as_tool(obj: object, *, key: str | None = None) -> Tool:
    """Read one tool of any known shape; a `Tool` is returned as it is.

    Args:
        obj: The tool.
        key: Names it where its shape declares no name: a callable, a model class, a dict without a name.

    Raises:
        UnknownToolShapeError: No format reads it, or its provider runs it.
        InvalidToolError: Its shape is known, and a field of it is missing or bad.
    """
    if key is None:
        return _read(obj, None, "The tool")
    where = f"The tool under key {shown(key)}"
    return _read(obj, _checked_key(key, where), where)


def as_tools(tools: Mapping[str, Any] | Iterable[Any]) -> list[Tool]:
    """Read tools of any known shapes, mixed at will, in order.

    The same tool given twice is one. `read_tools` also tells which keys are aliases.

    Args:
        tools: A mapping of key → tool, or an iterable of tools.

    Raises:
        UnknownToolShapeError: It is no collection, or no format reads one of them.
        InvalidToolError: One's shape is known, and a field of it is missing or bad.
        ToolNameConflictError: Two different tools have one name, or a key is another tool's name.
    """
    return list(read_tools(tools).tools)


def read_tools(tools: Mapping[str, Any] | Iterable[Any]) -> NamedTools:
    """Read tools of any known shapes, and the keys that differ from the tools' names.

    A tool's own declared name goes before its key. The same object twice, or an equal definition that is run by the
    same executor, is one tool: the first is kept, and all keys lead to it.

    Args:
        tools: A mapping of key → tool, or an iterable of tools.

    Raises:
        UnknownToolShapeError: It is no collection, or no format reads one of them.
        InvalidToolError: One's shape is known, and a field of it is missing or bad.
        ToolNameConflictError: Two different tools have one name, or a key is another tool's name.
    """
    by_name: dict[str, _Entry] = {}
    keyed: list[_Entry] = []
    for where, key, obj in _entries(tools):
        entry = _Entry(where, key, _read(obj, key, where))
        first = by_name.setdefault(entry.tool.name, entry)
        if not same_tool(first.tool, entry.tool):
            raise ToolNameConflictError(
                f"Two different tools are named {entry.tool.name!r}: {first.party} and {entry.party}. "
                "Rename one of them, or leave one out."
            )
        if key is not None and key != entry.tool.name:
            keyed.append(entry)
    aliases: dict[str, str] = {}
    for entry in keyed:
        key = entry.key or ""
        if key in by_name:
            raise ToolNameConflictError(
                f"The key of {entry.party}, which is named {entry.tool.name!r}, is the name of another tool, "
                f"{by_name[key].party}. Use another key, or the tool's own name."
            )
        aliases[key] = entry.tool.name
    return NamedTools(tuple(entry.tool for entry in by_name.values()), MappingProxyType(aliases))


def _read(obj: object, key: str | None, where: str) -> Tool:
    if isinstance(obj, Tool):
        return obj
    for matches, read in _formats_for(obj):
        if matches(obj):
            if _is_model(obj):
                _MODEL_FORMATS[type(obj)] = (matches, read)
            try:
                return read(obj, key=key)
            except InvalidToolError as error:
                raise InvalidToolError(f"{where}: {error}") from error
    raise UnknownToolShapeError(
        f"{where} cannot be read as a tool: {type(obj).__name__} {shown(obj)}. {_hint(obj)}{_ACCEPTED}"
    )


def _checked_key(key: object, where: str) -> str:
    if not isinstance(key, str) or not key.strip():
        raise InvalidToolError(f"{where}: a key must be a non-blank string, not {type(key).__name__} {shown(key)}.")
    return key


def _formats_for(obj: object) -> Sequence[_Format]:
    if type(obj) is dict:
        return _DICT_FORMATS
    known = _MODEL_FORMATS.get(type(obj))
    return _FORMATS if known is None else (known, *_FORMATS)


def _hint(obj: object) -> str:
    if isinstance(obj, str):
        return "A name alone does not say what the tool does. "
    if inspect.isawaitable(obj):
        return "Await it first. "
    if isinstance(obj, type):
        return "A class is no tool: give an instance or a function. "
    kind = field_of(obj, "type")
    if isinstance(kind, str) and (isinstance(obj, Mapping) or _is_model(obj)):
        return f"{_type_hint(obj, kind)} "
    return ""


def _type_hint(obj: object, kind: str) -> str:
    if kind in _NO_TOOL_TYPES:
        return _NO_TOOL_TYPES[kind]
    if field_of(obj, "parameters") is not MISSING:
        return f"Its type {shown(kind)} is not known; that of a function is 'function'."
    return (
        f"Tools of type {shown(kind)} are run by the provider and have no schema, so they cannot be searched for: "
        "pass them to the provider directly."
    )


def _entries(tools: Any) -> Iterable[tuple[str, str | None, object]]:
    if isinstance(tools, Mapping):
        # A string is no tool, so such a mapping has the fields of one tool and not the keys of many.
        if any(isinstance(tools.get(field), str) for field in ("name", "type", "description")):
            raise _no_collection(tools)
        named = [(f"tools[{shown(key)}]", key, obj) for key, obj in tools.items()]
        return [(where, _checked_key(key, where), obj) for where, key, obj in named]
    if isinstance(tools, str | bytes | bytearray) or not isinstance(tools, Iterable) or _is_one(tools):
        raise _no_collection(tools)
    return ((f"tools[{position}]", None, obj) for position, obj in enumerate(tools))


def _is_one(obj: object) -> bool:
    # Every Pydantic object can be iterated, and gives its fields.
    return (
        isinstance(obj, Tool)
        or _is_model(obj)
        or any(matches(obj) for matches, _ in _FORMATS if matches is not is_function)
    )


def _no_collection(tools: object) -> UnknownToolShapeError:
    inner = field_of(tools, "tools")
    if inspect.isawaitable(tools) or isinstance(tools, AsyncIterable):
        advice = "Await it first, and give what comes out."
    elif isinstance(inner, Mapping | list | tuple):
        advice = "Give its 'tools' instead."
    else:
        advice = "Wrap a single tool in a list: [tool]."
    return UnknownToolShapeError(
        f"tools must be a mapping of key → tool or an iterable of tools, not {type(tools).__name__} {shown(tools)}. "
        f"{advice} {_ACCEPTED}"
    )


def _is_model(obj: object) -> bool:
    return hasattr(type(obj), "model_fields")


def _origin(tool: Tool) -> object:
    return tool if tool.source is None else tool.source


def same_tool(one: Tool, other: Tool) -> bool:
    """Return whether two tools are one: the same definition, run by the same thing.

    Never raises, however odd the sources are; what cannot be compared is different, so that one caller's tool is
    never taken for another's.

    Args:
        one: A tool.
        other: Another, or the same.
    """
    if one is other:
        return True
    fields = ("name", "description", "namespace", "search_text", "input_schema")
    if not all(_equal(getattr(one, field), getattr(other, field)) for field in fields):
        return False
    if one.execute is not None or other.execute is not None:
        return _equal(_runner(one), _runner(other))
    # Definitions that are only data are the same whatever shape they were written in; an object that its
    # framework runs is not the same as another, though this package can run neither.
    return _equal(one.source, other.source) or (_is_data(one.source) and _is_data(other.source))


def _runner(tool: Tool) -> object:
    return tool.execute.target if isinstance(tool.execute, SyncExecute) else tool.execute


def _is_data(source: object) -> bool:
    return source is None or isinstance(source, Mapping) or _is_model(source) or is_definition(source)


def _equal(one: object, other: object) -> bool:
    if one is other:
        return True
    try:
        return (one == other) is True
    except Exception:  # an object of any library may compare itself in any way, arrays element by element
        return False
