"""Figures of rankings and of scores: pure functions of arrays."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["auroc", "calibration_error", "ndcg", "recall", "reciprocal_rank", "success"]

Floats = NDArray[np.float64]


def ndcg(ranked: Sequence[int], relevant: Collection[int], k: int) -> float:
    """Compute nDCG@k with binary gains and discount log2(rank + 1) (Järvelin and Kekäläinen, 2002)."""
    discounts = 1 / np.log2(np.arange(2, k + 2))
    gains = np.array([row in relevant for row in ranked[:k]], np.float64)
    return float(gains @ discounts[: len(gains)] / discounts[: len(relevant)].sum())


def recall(ranked: Sequence[int], relevant: Collection[int], k: int) -> float:
    """Compute the share of the right tools that are among the first k."""
    return len(set(ranked[:k]) & set(relevant)) / len(relevant)


def success(ranked: Sequence[int], relevant: Collection[int], k: int) -> float:
    """Tell whether any right tool is among the first k: 1 or 0."""
    return float(any(row in relevant for row in ranked[:k]))


def reciprocal_rank(ranked: Sequence[int], relevant: Collection[int]) -> float:
    """Compute 1 / rank of the first right tool; 0 where none was found."""
    return next((1 / rank for rank, row in enumerate(ranked, 1) if row in relevant), 0.0)


def auroc(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """Compute the chance that a positive scores above a negative, ties counting half (Hanley and McNeil, 1982).

    Raises:
        ValueError: All are positive, or none is.
    """
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        raise ValueError(f"AUROC needs both kinds, not {positives} positives and {negatives} negatives")
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks[positive].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def calibration_error(scores: Floats, right: NDArray[np.bool_], bins: int = 10) -> float:
    """Compute the expected calibration error in bins of equal width (Naeini, Cooper and Hauskrecht, 2015)."""
    places = np.minimum((scores * bins).astype(int), bins - 1)
    gaps = (abs(scores[places == b].mean() - right[places == b].mean()) * (places == b).mean() for b in set(places))
    return float(sum(gaps))
