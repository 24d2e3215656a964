"""What an index is: immutable, ranked, exact.

Rows are numbered in catalogue order. An index never changes: adding and removing give a new one, so a search
that runs meanwhile still sees one whole catalogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.text import TextFields

__all__ = ["DECIMALS", "Document", "Index", "Query", "Ranking", "best_rows", "select_top"]

DECIMALS = 6
"""Cosines and lexical scores are rounded to this many decimals, so that equal texts tie whatever their row is."""


@dataclass(frozen=True, slots=True)
class Document:
    """What an index holds of one tool: its fields, and its unit vector of shape (d,) where it has one."""

    fields: TextFields
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for: the text, and its unit vector of shape (d,) where an encoder ran."""

    text: str
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best rows of an index, best first; arrays of one length.

    ``scores`` are in (0, 1], float64. ``cosines`` and ``lexical`` are the raw parts that they were made from,
    NaN where the index has no such part.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    cosines: NDArray[np.float64]
    lexical: NDArray[np.float64]


class Index(Protocol):
    """Ranked search over documents; every index passes ``tests/indexes/contract.py``."""

    def __len__(self) -> int:
        """Count the rows."""
        ...

    def search(self, query: Query, k: int) -> Ranking:
        """Rank the ``k`` best rows with a score above 0; ties keep row order, also where the cut falls."""
        ...

    def with_added(self, documents: Sequence[Document]) -> Self:
        """Return an index with these documents as its last rows."""
        ...

    def without(self, rows: Sequence[int]) -> Self:
        """Return an index without these rows; the others keep their order and close ranks."""
        ...


def best_rows(scores: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Order the positions of the ``k`` highest scores above 0, highest first, ties by position. Shape (≤ k,)."""
    if k < len(scores):
        # Everything that ties with the k-th place stays in, so that the cut is made by position below.
        kth = np.partition(scores, len(scores) - k)[len(scores) - k]
        candidates = np.flatnonzero((scores >= kth) & (scores > 0))
    else:
        candidates = np.flatnonzero(scores > 0)
    order = np.argsort(-scores[candidates], kind="stable")
    return candidates[order][:k]


def select_top(
    rows: NDArray[np.int64],
    scores: NDArray[np.float64],
    k: int,
    *,
    cosines: NDArray[np.float64] | None = None,
    lexical: NDArray[np.float64] | None = None,
) -> Ranking:
    """Make a ranking of candidate rows, given in ascending order with their scores and parts."""
    best = best_rows(scores, k)
    missing = np.full(len(best), np.nan)
    return Ranking(
        rows=rows[best],
        scores=scores[best],
        cosines=missing if cosines is None else cosines[best],
        lexical=missing if lexical is None else lexical[best],
    )
