"""Reading what a tool returned out of the forms that results are carried in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch_semantic.messages.values import exact_text, field_of, is_marked, items_of, json_of, word_of

__all__ = ["TEXT_TYPES", "Outcome", "arguments_of", "content_outcome", "text_outcome", "value_outcome"]

TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
"""The types of content blocks whose ``text`` is text."""

_BLOCK_TYPES = TEXT_TYPES | {
    "tool_reference", "image", "image_url", "input_image", "audio", "resource", "resource_link", "document", "file",
    "input_file", "search_result", "media",
}  # fmt: skip

_MCP_FIELDS = frozenset({
    "content", "structuredContent", "structured_content", "isError", "is_error", "_meta", "meta", "resultType",
    "result_type",
})  # fmt: skip

# A result may be MCP content inside JSON text, and that content JSON text again; nothing honest goes deeper.
_DEEPEST = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool returned.

    Args:
        result: The value; text that is JSON is parsed.
        references: Tool names in ``tool_reference`` blocks, in order.
        is_error: An error mark inside the result.
    """

    result: Any = None
    references: tuple[str, ...] = ()
    is_error: bool = False


def arguments_of(raw: object) -> Mapping[str, Any] | None:
    """Return a call's arguments, parsed where they are JSON text; None where they are no JSON object."""
    text = exact_text(raw)
    if text is not None:
        _, raw = json_of(text)
    return raw if isinstance(raw, Mapping) and all(isinstance(key, str) for key in raw) else None


def text_outcome(text: str, depth: int = 0) -> Outcome:
    """Read a result that is text: JSON is parsed, and MCP content in it unpacked; text makes no references."""
    is_json, value = json_of(text)
    if not is_json:
        return Outcome(text)
    if isinstance(value, str):
        return Outcome(value)
    found = value_outcome(value, depth + 1)
    return Outcome(found.result, is_error=found.is_error)


def content_outcome(content: object, depth: int = 0) -> Outcome:
    """Read a result that is message content: text, or a list of text and content blocks.

    The texts of several blocks are joined by line ends. Without any text, the result is None.
    """
    if not isinstance(content, list | tuple):
        return value_outcome(content, depth)
    texts: list[str] = []
    references: list[str] = []
    for block in content:
        kind = None if isinstance(block, str) else word_of(block, "type")
        text = exact_text(block if isinstance(block, str) else field_of(block, "text") if kind in TEXT_TYPES else None)
        if text is not None:
            texts.append(text)
        elif kind == "tool_reference" and (name := word_of(block, "tool_name")):
            references.append(name)
    found = text_outcome("\n".join(texts), depth) if texts else Outcome()
    return Outcome(found.result, tuple(references), found.is_error)


def value_outcome(value: object, depth: int = 0) -> Outcome:
    """Read a result that is a value: text is parsed, MCP results and content lists are unpacked.

    Structured content is preferred to the text beside it. A Pydantic object becomes its dict.
    """
    text = exact_text(value)
    if text is not None:
        return text_outcome(text, depth)
    if depth > _DEEPEST:
        return Outcome(value)
    if isinstance(value, list | tuple):
        return content_outcome(value, depth) if _is_content(value) else Outcome(value)
    return _mcp_outcome(value, depth) or Outcome(_plain(value))


def _is_content(items: Sequence[Any]) -> bool:
    return bool(items) and all(word_of(item, "type") in _BLOCK_TYPES for item in items)


def _mcp_outcome(value: object, depth: int) -> Outcome | None:
    content = field_of(value, "content")
    if isinstance(value, Mapping) and not value.keys() <= _MCP_FIELDS:
        return None
    is_error = is_marked(field_of(value, "isError")) or is_marked(field_of(value, "is_error"))
    for name in ("structuredContent", "structured_content"):
        if (structured := field_of(value, name)) is not None:
            return Outcome(structured, is_error=is_error)
    blocks = items_of(content)
    if not _is_content(blocks) and not (isinstance(content, list) and not blocks and is_error):
        return None
    found = content_outcome(content, depth + 1)
    return Outcome(found.result, found.references, is_error or found.is_error)


def _plain(value: object) -> object:
    if not hasattr(type(value), "model_fields"):
        return value
    try:
        return value.model_dump(warnings=False)  # type: ignore[attr-defined]
    except Exception:  # a cyclic object, or a serializer that fails
        return value
