"""Labelled requests over tools: reading them, and which of them are kept out of training.

A set is a folder with ``tools.jsonl`` (id, name, description, parameters) and ``queries.jsonl`` (query, relevant, and
where known lang). Ids that begin with the same parts belong to one service: ``mcp/redis/get_key`` is of ``mcp/redis``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolsearch_semantic import Tool
from toolsearch_semantic.text import TextFields, searchable_text, text_fields

__all__ = ["HELD_OUT_IN", "Request", "ToolSet", "held_out", "read_jsonl", "read_set", "read_sets", "service_of"]

HELD_OUT_IN = 7
"""One tool in so many is never trained on: what asks for it fits the scores."""


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks for: its right tools, and the service that it was asked of where none is right."""

    query: str
    relevant: tuple[str, ...]
    lang: str = "en"
    service: str | None = None


@dataclass(frozen=True, slots=True)
class ToolSet:
    """Tools by id, as the fields that are searched, and the requests over them."""

    name: str
    tools: dict[str, TextFields]
    requests: list[Request]

    def texts(self) -> list[str]:
        """Give what the package embeds of each tool, in order."""
        return [searchable_text(fields) for fields in self.tools.values()]


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Read one JSON object a line."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def read_tools(path: Path) -> dict[str, TextFields]:
    """Read tools as the fields that the package searches; id and name stand in for each other."""
    return {
        record.get("id") or record["name"]: text_fields(
            Tool(record.get("name") or record["id"], record.get("description") or "", record.get("parameters") or {})
        )
        for record in read_jsonl(path)
    }


def read_requests(path: Path) -> list[Request]:
    """Read requests; none where there is no file."""
    if not path.is_file():
        return []
    return [
        Request(record["query"], tuple(record["relevant"]), record.get("lang", "en"), record.get("service"))
        for record in read_jsonl(path)
    ]


def read_set(folder: Path) -> ToolSet:
    """Read one set."""
    return ToolSet(folder.name, read_tools(folder / "tools.jsonl"), read_requests(folder / "queries.jsonl"))


def read_sets(folder: Path) -> list[ToolSet]:
    """Read every set below a folder, by name."""
    return [read_set(path) for path in sorted(folder.iterdir()) if (path / "tools.jsonl").is_file()]


def service_of(tool_id: str) -> str:
    """Give all but the last part of an id: tools with the same one are siblings."""
    return tool_id.rpartition("/")[0]


def held_out(ids: Iterable[str]) -> bool:
    """Tell whether one of these tools is never trained on: decided by a hash of its id, so it holds for every run."""
    return any(int(hashlib.sha256(one.encode()).hexdigest(), 16) % HELD_OUT_IN == 0 for one in ids)
