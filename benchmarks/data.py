"""Catalogues with labelled requests, as folders of ``tools.jsonl`` and ``queries.jsonl``.

A tool is ``{"id", "name", "description", "parameters"}``, a request ``{"query", "relevant": [ids]}``, with "lang" and
"group" where they are known. Names may repeat within a set, ids do not.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["LabelledRequest", "LabelledSet", "digest_of", "read_set"]


@dataclass(frozen=True, slots=True)
class LabelledRequest:
    """What is asked, the rows of the tools that are right, and which group its figures count in."""

    query: str
    relevant: frozenset[int]
    group: str
    lang: str


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """A catalogue and requests over it."""

    name: str
    tools: list[dict[str, Any]]
    requests: list[LabelledRequest]

    @property
    def services(self) -> list[str]:
        """Name each tool's service: its id without the last part, where that leaves more than the set's name."""
        return [str(tool["id"]).rpartition("/")[0] for tool in self.tools]


def read_set(folder: Path) -> LabelledSet:
    """Read one set.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A request names a tool that is not there.
    """
    tools = _lines(folder / "tools.jsonl")
    rows = {tool["id"]: row for row, tool in enumerate(tools)}
    requests = []
    for number, record in enumerate(_lines(folder / "queries.jsonl"), 1):
        unknown = [one for one in record["relevant"] if one not in rows]
        if unknown:
            raise ValueError(f"{folder / 'queries.jsonl'}, line {number}: no tool has the id {unknown[0]!r}")
        relevant = frozenset(rows[one] for one in record["relevant"])
        requests.append(
            LabelledRequest(record["query"], relevant, record.get("group") or "", record.get("lang") or "en")
        )
    return LabelledSet(folder.name, tools, requests)


def digest_of(folder: Path) -> str:
    """Hash a set's two files: the first 16 hexadecimal digits of their SHA-256."""
    digest = hashlib.sha256()
    for name in ("tools.jsonl", "queries.jsonl"):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:16]


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
