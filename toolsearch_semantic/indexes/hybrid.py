"""Search by meaning and by keyword at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from toolsearch_semantic.indexes.base import Document, Query, Ranking, best_rows, select_top
from toolsearch_semantic.indexes.lexical import LexicalIndex
from toolsearch_semantic.indexes.semantic import SemanticIndex
from toolsearch_semantic.scores import UNCALIBRATED, ScoreFunction

__all__ = ["HybridIndex"]

_FIRST_DEPTH = 100


class HybridIndex:
    """Ranks by one monotone function of cosine and lexical score, exactly.

    Candidates are the best rows of each half. No row outside them can have a higher cosine or a higher lexical
    score than the last of its half, so once the k-th fused score is above the fusion of those two bounds the
    ranking is final; until then the search goes deeper (the threshold algorithm of Fagin, Lotem and Naor, 2001).

    Args:
        semantic: The half that ranks by meaning.
        lexical: The half that ranks by keyword, over the same rows.
        score: From (cosine, lexical score) to score.
    """

    def __init__(
        self, semantic: SemanticIndex, lexical: LexicalIndex, *, score: ScoreFunction = UNCALIBRATED.hybrid
    ) -> None:
        if len(semantic) != len(lexical):
            raise ValueError(f"the halves must hold the same rows, not {len(semantic)} and {len(lexical)}")
        self.semantic = semantic
        self.lexical = lexical
        self._score = score

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.lexical)

    def with_added(self, documents: Sequence[Document]) -> Self:
        """Return an index with these documents as its last rows."""
        return type(self)(self.semantic.with_added(documents), self.lexical.with_added(documents), score=self._score)

    def without(self, rows: Sequence[int]) -> Self:
        """Return an index without these rows."""
        return type(self)(self.semantic.without(rows), self.lexical.without(rows), score=self._score)

    def search(self, query: Query, k: int) -> Ranking:
        """Rank the ``k`` best rows by the query's text and vector."""
        if query.vector is None:
            raise ValueError("a hybrid search needs the query's vector; search the lexical half instead")
        if not len(self):
            nothing = np.empty(0)
            return select_top(np.empty(0, np.int64), nothing, k, cosines=nothing, lexical=nothing)
        lexical = self.lexical.shares(query.text)
        depth = max(_FIRST_DEPTH, 2 * k)
        while True:
            by_meaning, cosines = self.semantic.nearest(query.vector, depth)
            by_keyword = best_rows(lexical, depth)
            rows = np.union1d(by_meaning, by_keyword)
            all_cosines = self.semantic.cosines(query.vector, rows)
            ranking = select_top(
                rows, self._score(all_cosines, lexical[rows]), k, cosines=all_cosines, lexical=lexical[rows]
            )
            if len(by_meaning) == len(self):
                return ranking
            lexical_bound = lexical[by_keyword[-1]] if len(by_keyword) == depth else 0.0
            bound = self._score(np.array([cosines.min()]), np.array([lexical_bound]))[0]
            if len(ranking.scores) == k and ranking.scores[-1] > bound:
                return ranking
            depth *= 4
