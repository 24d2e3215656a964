"""Near duplicates: texts of one collection that another holds as well, give or take a few words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from toolsearch_semantic.text import tokenize

__all__ = ["SAME_SHARE", "near_duplicates"]

SAME_SHARE = 0.7
"""Jaccard similarity of two texts' sets of terms from which they count as the same."""

_ROWS = 2_000


def _terms(texts: Iterable[str], vocabulary: dict[str, int]) -> list[list[int]]:
    return [[vocabulary.setdefault(term, len(vocabulary)) for term in set(tokenize(text))] for text in texts]


def _matrix(rows: Sequence[Sequence[int]], width: int) -> csr_matrix:
    lengths = [len(row) for row in rows]
    flat = np.fromiter((term for row in rows for term in row), np.int32, sum(lengths))
    return csr_matrix(
        (np.ones(len(flat), np.float32), flat, np.concatenate(([0], np.cumsum(lengths)))), (len(rows), width)
    )


def near_duplicates(texts: Sequence[str], of: Sequence[str], *, share: float = SAME_SHARE) -> NDArray[np.bool_]:
    """Tell of each text whether one of ``of`` has nearly the same terms: shape (len(texts),).

    Terms are those of the lexical index, so case, accents, inflection and word order do not hide a copy.
    """
    vocabulary: dict[str, int] = {}
    ours, theirs = _terms(texts, vocabulary), _terms(of, vocabulary)
    width = max(1, len(vocabulary))
    other = _matrix(theirs, width)
    other_sizes = np.asarray(other.sum(axis=1)).ravel()
    found = np.zeros(len(texts), np.bool_)
    columns = other.T.tocsr()
    for start in range(0, len(texts), _ROWS):
        part = _matrix(ours[start : start + _ROWS], width)
        sizes = np.asarray(part.sum(axis=1)).ravel()
        common = (part @ columns).tocoo()
        union = sizes[common.row] + other_sizes[common.col] - common.data
        found[start + np.unique(common.row[common.data >= share * union])] = True
    return found
