"""What every index must do, checked against an exact reference in numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from toolsearch_semantic.indexes.base import Document, Index, Query
from toolsearch_semantic.text import text_fields
from toolsearch_semantic.tool import Tool

DIMENSION = 12
WORDS = ["create", "delete", "list", "issue", "invoice", "weather", "room", "light", "task", "user", "report"]


def unit(seed: int) -> NDArray[np.float32]:
    vector = np.random.default_rng(seed).normal(size=DIMENSION)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def document(words: Sequence[int], seed: int) -> Document:
    """A tool whose words and vector come from small ranges, so that equal ones and ties are frequent."""
    name = "_".join(WORDS[i] for i in words[:2]) or "nothing"
    tool = Tool(name, " ".join(WORDS[i] for i in words[2:]))
    return Document(text_fields(tool), unit(seed))


documents = st.lists(
    st.builds(document, st.lists(st.integers(0, len(WORDS) - 1), max_size=6), st.integers(0, 8)), max_size=40
)
queries = st.builds(
    lambda words, seed: Query(" ".join(WORDS[i] for i in words), unit(seed)),
    st.lists(st.integers(0, len(WORDS) - 1), min_size=1, max_size=4),
    st.integers(0, 12),
)


def expected_rows(scores: NDArray[np.float64], k: int) -> list[int]:
    """Sort everything: by falling score, ties by row, nothing at 0."""
    return [row for row in sorted(range(len(scores)), key=lambda r: (-scores[r], r)) if scores[row] > 0][:k]


@dataclass(frozen=True)
class IndexCase:
    """An index under test: how it is built, and how plain numpy scores the same documents."""

    name: str
    build: Callable[[Sequence[Document]], Index]
    reference: Callable[[Sequence[Document], Query], NDArray[np.float64]]

    def check(self, index: Index, held: Sequence[Document], query: Query, k: int) -> None:
        ranking = index.search(query, k)
        scores = self.reference(held, query)
        assert ranking.rows.tolist() == expected_rows(scores, k)
        np.testing.assert_allclose(ranking.scores, scores[ranking.rows], atol=1e-9)
        assert len(index) == len(held)
