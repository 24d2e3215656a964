"""Search by meaning: exact inner products of unit vectors, through FAISS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.indexes.base import DECIMALS, Document, Query, Ranking, select_top
from toolsearch_semantic.options import Precision
from toolsearch_semantic.scores import UNCALIBRATED, ScoreFunction

if TYPE_CHECKING:
    import faiss

__all__ = ["SemanticIndex"]

_MARGIN = 8
"""How many neighbours are fetched beyond k, so that a tie at the cut is usually seen at once."""


class SemanticIndex:
    """A flat FAISS inner-product index over unit vectors, with exact and repeatable cosines.

    FAISS finds the neighbours; their cosines are then computed again row by row, because FAISS may sum equal
    vectors in another order, and equal texts must tie. A row of zeros is a text without meaning to the encoder
    and is never found. With less precision, cosines are those of the rounded vectors: exact and repeatable as well,
    and off by less than 0.001 (float16) or, as a rule, 0.012 (int8).

    Args:
        dimension: Length d of the vectors.
        documents: Each with a vector of shape (d,).
        score: From cosine to score; by default the cosine itself.
        precision: How each number is held: in 4, 2 or 1 bytes.
    """

    def __init__(
        self,
        dimension: int,
        documents: Sequence[Document] = (),
        *,
        score: ScoreFunction = UNCALIBRATED.semantic,
        precision: Precision = "float32",
    ) -> None:
        self._score = score
        self._precision = precision
        self._flat: faiss.Index = _flat_index(dimension, precision)
        self._add(documents)

    @property
    def vectors(self) -> NDArray[np.float32]:
        """A copy of the vectors, shape (n, d)."""
        rows: NDArray[np.float32] = self._flat.reconstruct_n(0, len(self))
        return rows

    def __len__(self) -> int:
        """Count the rows."""
        return int(self._flat.ntotal)

    def _add(self, documents: Sequence[Document]) -> None:
        if documents:
            self._flat.add(np.stack([_vector(document) for document in documents]))

    def _over(self, flat: faiss.Index) -> Self:
        new = type(self)(flat.d, score=self._score, precision=self._precision)
        new._flat = flat
        return new

    def with_added(self, documents: Sequence[Document]) -> Self:
        """Return an index with these documents as its last rows."""
        import faiss

        new = self._over(faiss.clone_index(self._flat))
        new._add(documents)
        return new

    def without(self, rows: Sequence[int]) -> Self:
        """Return an index without these rows."""
        import faiss

        flat = faiss.clone_index(self._flat)
        # A flat index closes ranks and keeps the order.
        flat.remove_ids(faiss.IDSelectorBatch(np.array(sorted(rows), np.int64)))
        return self._over(flat)

    def cosines(self, vector: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Compute the cosines of a query vector with some rows; the same for equal rows. Shape (len(rows),)."""
        stored = self._flat.reconstruct_batch(rows).astype(np.float64)
        exact = np.einsum("ij,j->i", stored, vector.astype(np.float64))
        cosines: NDArray[np.float64] = np.round(np.clip(exact, -1.0, 1.0), DECIMALS)
        return cosines

    def nearest(self, vector: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Find at least ``k`` rows such that no other row has a cosine as high as the k-th of them.

        Returns:
            Rows in ascending order and their cosines; more than ``k`` where rows tie, all where fewer exist.
        """
        fetch = k + _MARGIN
        while True:
            fetch = min(fetch, len(self))
            _, found = self._flat.search(vector[np.newaxis], fetch)
            rows = np.sort(found[0])
            cosines = self.cosines(vector, rows)
            if fetch == len(self):
                return rows, cosines
            highest = np.sort(cosines)[::-1]
            if highest[k - 1] > highest[-1] + 10.0**-DECIMALS:
                return rows, cosines
            fetch *= 4

    def search(self, query: Query, k: int) -> Ranking:
        """Rank the ``k`` best rows by the query's vector."""
        if query.vector is None or not len(self):
            return select_top(np.empty(0, np.int64), np.empty(0), k, cosines=np.empty(0))
        rows, cosines = self.nearest(query.vector, k)
        return select_top(rows, self._score(cosines, np.zeros(len(rows))), k, cosines=cosines)


def _flat_index(dimension: int, precision: Precision) -> faiss.Index:
    import faiss

    if precision == "float32":
        return faiss.IndexFlatIP(dimension)
    kinds = {"float16": faiss.ScalarQuantizer.QT_fp16, "int8": faiss.ScalarQuantizer.QT_8bit}
    index = faiss.IndexScalarQuantizer(dimension, kinds[precision], faiss.METRIC_INNER_PRODUCT)
    # What a unit vector's numbers can be, and not what those of one catalogue are: a vector must not change when
    # others are added.
    index.train(np.array([[-1.0], [1.0]], np.float32).repeat(dimension, axis=1))
    return index


def _vector(document: Document) -> NDArray[np.float32]:
    if document.vector is None:
        raise ValueError("a semantic index needs documents with vectors")
    return document.vector
