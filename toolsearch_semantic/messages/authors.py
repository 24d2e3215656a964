"""Who wrote a message, and which library's shape it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from toolsearch_semantic.messages.values import exact_text, field_of, word_of

__all__ = ["Author", "Shape", "author_of", "unwrapped"]

Author = Literal["assistant", "user", "tool", "request", "other"]
Shape = Literal["role", "langchain", "responses", "pydantic_ai"]

# Compared exactly: a role in other letters, or in letters of another script that look the same, is nobody's.
_ROLES: dict[str, Author] = {"assistant": "assistant", "model": "assistant", "user": "user", "tool": "tool"}

_LANGCHAIN_TYPES: dict[str, Author] = {
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "human": "user",
    "HumanMessageChunk": "user",
    "tool": "tool",
    "ToolMessageChunk": "tool",
    "system": "other",
    "SystemMessageChunk": "other",
    "function": "other",
    "FunctionMessageChunk": "other",
    "remove": "other",
}

_ITEM_TYPES: dict[str, Author] = {
    "function_call": "assistant",
    "tool_search_call": "assistant",
    "custom_tool_call": "assistant",
    "reasoning": "assistant",
    "mcp_call": "assistant",
    "web_search_call": "assistant",
    "file_search_call": "assistant",
    "code_interpreter_call": "assistant",
    "image_generation_call": "assistant",
    "computer_call": "assistant",
    "local_shell_call": "assistant",
    "shell_call": "assistant",
    "apply_patch_call": "assistant",
    "function_call_output": "tool",
    "tool_search_output": "tool",
}

_KINDS: dict[str, tuple[Author, Shape]] = {
    "response": ("assistant", "pydantic_ai"),
    "request": ("request", "pydantic_ai"),
}

_TYPES: dict[str, tuple[Author, Shape]] = {
    **{kind: (author, "langchain") for kind, author in _LANGCHAIN_TYPES.items()},
    **{kind: (author, "responses") for kind, author in _ITEM_TYPES.items()},
}


def unwrapped(message: object) -> object:
    """Return the message inside LangChain's ``{"type", "data"}`` form, and any other as it is."""
    if not isinstance(message, dict) or word_of(message, "type") not in _LANGCHAIN_TYPES:
        return message
    data = field_of(message, "data")
    if not isinstance(data, Mapping) or field_of(message, "content") is not None:
        return message
    agrees = word_of(data, "type") == word_of(message, "type") and field_of(message, "role") is None
    return data if agrees else None


def author_of(message: object) -> tuple[Author, Shape]:
    """Return who wrote a message, and its shape.

    A message may say so in its role, and in its type or its kind. Where the two disagree it is nobody's, so that a
    user's message with the type of a call is neither.
    """
    said = _TYPES.get(word_of(message, "type") or "") or _KINDS.get(word_of(message, "kind") or "")
    role = field_of(message, "role")
    by_role = _ROLES.get(exact_text(role) or "", "other")
    if said is None:
        return by_role, "role"
    if role is None:
        return said
    return (by_role, "role") if by_role == said[0] else ("other", "role")
