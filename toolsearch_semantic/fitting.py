"""Fitting how a cosine and a lexical score become one score, on requests whose right tools are known.

Fitted are the weight of the cosine beside the square root of the lexical score, by how well the sum ranks, and for
each kind of score a logistic curve (Platt, 1999), by maximum likelihood, so that it estimates the probability that a
tool answers the request. The curve sees each request's first hit twice: with every tool there, and without the right
ones, so that half of all cases have no right tool. Sets weigh the same, however many requests they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.indexes.base import best_rows
from toolsearch_semantic.scores import LogisticScore, ScoreFunction, Scoring

__all__ = ["Judged", "Quality", "calibration_error", "fit_lexical", "fit_scoring", "quality_of"]

Floats = NDArray[np.float64]
Rank = Callable[[Floats, Floats], Floats]

DEPTH = 10
RECALL_DEPTH = 5
WEIGHTS = tuple(round(0.05 * i, 2) for i in range(1, 20))
WITHIN = 0.002
"""Mean nDCG@10 that meaning may cost: requests in labelled sets repeat their tool's words more than people do."""
WEAK_SHARE = 0.1
"""One right tool in so many scores below the bound of weak scores."""

_BINS = 10
_MOST_STEPS = 50
_CONVERGED = 1e-9
_RIDGE = 1e-5  # pulls slopes towards 0 a little, so that few or separable requests still give a finite curve


@dataclass(frozen=True, slots=True)
class Judged:
    """Requests over one catalogue: for each, both parts of every tool's score and which tools are right.

    All arrays of a request have shape (tools,). Each request has at least one right tool.
    """

    cosines: Sequence[Floats]
    lexical: Sequence[Floats]
    right: Sequence[NDArray[np.bool_]]

    def __len__(self) -> int:
        """Count the requests."""
        return len(self.right)

    def part(self, rows: Sequence[int]) -> Judged:
        """Take some of the requests."""
        return Judged([self.cosines[i] for i in rows], [self.lexical[i] for i in rows], [self.right[i] for i in rows])


@dataclass(frozen=True, slots=True)
class Quality:
    """How well a score ranks and what it is worth: nDCG@10, recall@5, and expected calibration error of first hits."""

    ndcg: float
    recall: float
    calibration_error: float


def fit_scoring(sets: Sequence[Judged]) -> Scoring:
    """Fit the scores of meaning alone and of both.

    Args:
        sets: Requests by set; at least one with a request.
    """
    weight = best_weight(sets)
    return Scoring(semantic=_curve(sets, 1.0), hybrid=_curve(sets, weight))


def fit_lexical(sets: Sequence[Judged]) -> LogisticScore:
    """Fit the score of keywords alone."""
    return _curve(sets, 0.0)


def best_weight(sets: Sequence[Judged]) -> float:
    """Choose the highest weight of the cosine that costs at most ``WITHIN`` of the best mean nDCG@10."""
    means = {w: float(np.mean([_rankings(one, _mixed(w))[0].mean() for one in sets])) for w in WEIGHTS}
    return max(weight for weight, mean in means.items() if mean >= max(means.values()) - WITHIN)


def quality_of(score: ScoreFunction, one: Judged) -> Quality:
    """Judge a score on requests."""
    ndcg, recall = _rankings(one, score)
    cosines, lexical, right = _first_hits(one, score)
    return Quality(float(ndcg.mean()), float(recall.mean()), calibration_error(score(cosines, lexical), right))


def calibration_error(scores: Floats, right: NDArray[np.bool_]) -> float:
    """Compute the expected calibration error in ten bins of equal width (Naeini, Cooper and Hauskrecht, 2015)."""
    bins = np.minimum((scores * _BINS).astype(int), _BINS - 1)
    gaps = (abs(scores[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins))
    return float(sum(gaps))


def _mixed(weight: float) -> Rank:
    """Give the evidence that ranks: what a `LogisticScore` sums, up to scale."""
    return lambda cosines, lexical: weight * np.maximum(cosines, 0.0) + (1.0 - weight) * np.sqrt(lexical)


def _curve(sets: Sequence[Judged], weight: float) -> LogisticScore:
    """Fit intercept and slope of a curve over mixed evidence, and where its scores begin to be weak."""
    mixed = _mixed(weight)
    hits = [_first_hits(one, mixed) for one in sets]
    intercept, slope = _logistic(
        np.concatenate([mixed(cosines, lexical) for cosines, lexical, _ in hits]),
        np.concatenate([right for _, _, right in hits]).astype(np.float64),
        np.concatenate([np.full(len(right), 1 / len(right)) for _, _, right in hits]),
    )
    slope = max(slope, 0.0)
    curve = LogisticScore(round(intercept, 4), round(slope * weight, 4), round(slope * (1.0 - weight), 4))
    best = [
        float(curve(cosines[right], lexical[right]).max())
        for one in sets
        for cosines, lexical, right in zip(one.cosines, one.lexical, one.right, strict=True)
    ]
    return replace(curve, weak_below=round(float(np.quantile(best, WEAK_SHARE)), 3))


def _logistic(evidence: Floats, labels: Floats, shares: Floats) -> tuple[float, float]:
    """Maximise the weighted likelihood by Newton's method, with steps that never lose any: intercept and slope.

    Labels are drawn in as Platt does (1999), to one more case than there is on either side: so few or separable
    requests do not make the curve a step.
    """
    right = labels.sum()
    targets = np.where(labels > 0, (right + 1) / (right + 2), 1 / (len(labels) - right + 2))
    design = np.stack([np.ones_like(evidence), evidence], axis=1)
    penalty = _RIDGE * shares.sum() * np.array([0.0, 1.0])
    parameters = np.zeros(2)

    def loss(at: Floats) -> float:
        logits = design @ at
        return float(shares @ (np.logaddexp(0.0, logits) - targets * logits) + penalty @ (at * at) / 2)

    for _ in range(_MOST_STEPS):
        probability = 1.0 / (1.0 + np.exp(-design @ parameters))
        gradient = design.T @ (shares * (targets - probability)) - penalty * parameters
        curvature = (design * (shares * probability * (1.0 - probability))[:, np.newaxis]).T @ design
        step = np.linalg.lstsq(curvature + np.diag(penalty), gradient, rcond=None)[0]
        while np.abs(step).max() > _CONVERGED and loss(parameters + step) > loss(parameters):
            step /= 2
        parameters += step
        if np.abs(step).max() <= _CONVERGED:
            break
    return float(parameters[0]), float(parameters[1])


def _first_hits(one: Judged, rank: Rank) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Take each request's first hit with all tools and without the right ones: cosines, lexical scores, labels."""
    cosines, lexical, labels = [], [], []
    for by_meaning, by_keyword, right in zip(one.cosines, one.lexical, one.right, strict=True):
        evidence = rank(by_meaning, by_keyword)
        for allowed in (np.ones_like(right), ~right):
            if not allowed.any():  # every tool is right: nothing is left without them
                continue
            row = int(np.argmax(np.where(allowed, evidence, -1.0)))
            cosines.append(by_meaning[row])
            lexical.append(by_keyword[row])
            labels.append(bool(right[row] and allowed[row]))
    return np.array(cosines), np.array(lexical), np.array(labels, np.bool_)


def _rankings(one: Judged, rank: Rank) -> tuple[Floats, Floats]:
    """Compute nDCG@10 with binary gains and recall@5 of each request, both of shape (requests,)."""
    discounts = 1.0 / np.log2(np.arange(2, DEPTH + 2))
    ndcg, recall = np.empty(len(one)), np.empty(len(one))
    for i, (cosines, lexical, right) in enumerate(zip(one.cosines, one.lexical, one.right, strict=True)):
        gains = right[best_rows(rank(cosines, lexical), DEPTH)]
        ndcg[i] = gains @ discounts[: len(gains)] / discounts[: right.sum()].sum()
        recall[i] = gains[:RECALL_DEPTH].sum() / right.sum()
    return ndcg, recall
