"""From a cosine and a lexical score to one score in 0..1.

A scoring belongs to an encoder: cosines of different models are on different scales. Every function here is
monotone in both arguments, gives 0 where neither is above 0, and looks at one tool only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LEXICAL",
    "UNCALIBRATED",
    "ConvexScore",
    "LogisticScore",
    "ScoreFunction",
    "Scoring",
]


class ScoreFunction(Protocol):
    """(cosines, lexical scores) → scores, elementwise, monotone in each."""

    def __call__(self, cosines: NDArray[np.float64], lexical: NDArray[np.float64], /) -> NDArray[np.float64]:
        """Score pairs; the arrays have one shape. Cosines below 0 count as 0."""
        ...


@dataclass(frozen=True, slots=True)
class ConvexScore:
    """``weight * max(0, cosine) + (1 - weight) * lexical``: a mean, which claims no probability."""

    weight: float
    kind: Literal["convex"] = "convex"
    weak_below: float = 0.25

    def __post_init__(self) -> None:
        if not 0.0 <= self.weight <= 1.0:
            raise ValueError(f"weight must be in 0..1, not {self.weight!r}")

    def __call__(self, cosines: NDArray[np.float64], lexical: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score pairs; in [0, 1]."""
        return self.weight * np.maximum(cosines, 0.0) + (1.0 - self.weight) * lexical


@dataclass(frozen=True, slots=True)
class LogisticScore:
    """A fitted logistic curve (Platt, 1999) of both parts; no evidence scores 0.

    The score is ``sigmoid(intercept + evidence)`` with ``evidence = cosine * max(0, cos) + lexical * sqrt(lex)``, and 0
    where the evidence is 0. Where it was fitted, it estimates the probability that the tool answers the request.
    The root is there because long requests reach low lexical shares even on their best tool; it ranked better on the
    training sets than the share itself.
    """

    intercept: float
    cosine: float
    lexical: float
    kind: Literal["logistic"] = "logistic"
    weak_below: float = 0.05

    def __post_init__(self) -> None:
        if not (np.isfinite(self.intercept) and 0.0 <= self.cosine < np.inf and 0.0 <= self.lexical < np.inf):
            raise ValueError(f"a logistic score needs a finite intercept and slopes of 0 or more, not {self!r}")

    def __call__(self, cosines: NDArray[np.float64], lexical: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score pairs; in [0, 1)."""
        evidence = self.cosine * np.maximum(cosines, 0.0) + self.lexical * np.sqrt(lexical)
        return np.where(evidence > 0.0, 1.0 / (1.0 + np.exp(-self.intercept - evidence)), 0.0)


@dataclass(frozen=True, slots=True)
class Scoring:
    """How one encoder's cosines become scores, alone and with the lexical score.

    A score below its function's ``weak_below`` is one that few right tools have.
    """

    semantic: ConvexScore | LogisticScore
    hybrid: ConvexScore | LogisticScore


UNCALIBRATED = Scoring(semantic=ConvexScore(1.0), hybrid=ConvexScore(0.7))
"""For an encoder without a fitted scoring: the cosine itself, and a mean with it.

The bound of weak scores lies between what all-MiniLM-L6-v2 gives unrelated pairs (median .05) and right ones (.46).
"""

LEXICAL = LogisticScore(intercept=-2.7149, cosine=0.0, lexical=4.3993, weak_below=0.188)
"""From the lexical score alone to a probability; fitted on the training sets, see ``models/README.md``."""
