"""What a search finds."""

from __future__ import annotations

from dataclasses import dataclass

from toolsearch_semantic.options import Mode
from toolsearch_semantic.tool import Tool

__all__ = ["SearchHit"]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A tool that was found.

    Args:
        tool: The tool.
        score: Relevance in (0, 1].
        source: Which ranking gave the score: ``"lexical"`` from a hybrid search means that it fell back.
        cosine: Cosine of the query with the tool's text, in -1..1; None where it had no part in the ranking.
        lexical: The lexical score, in 0..1; None where it had no part in the ranking.
        words: The query's words that the tool's text has.
        by_name: Whether the query named the tool, so that the score is 1.0 whatever the ranking was.
    """

    tool: Tool
    score: float
    source: Mode
    cosine: float | None = None
    lexical: float | None = None
    words: tuple[str, ...] = ()
    by_name: bool = False
