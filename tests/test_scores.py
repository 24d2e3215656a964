from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch_semantic.encoders.bundled import BundledEncoder, BundledModel
from toolsearch_semantic.scores import LEXICAL, UNCALIBRATED, ConvexScore, LogisticScore, ScoreFunction

BUNDLED = [BundledEncoder(name).scoring for name in get_args(BundledModel)]
FUNCTIONS = [
    UNCALIBRATED.semantic,
    UNCALIBRATED.hybrid,
    *(one.semantic for one in BUNDLED),
    *(one.hybrid for one in BUNDLED),
    LEXICAL,
    LogisticScore(-4, 9, 5),
]
cosine = st.floats(-1, 1)
share = st.floats(0, 1)


def at(function: ScoreFunction, cosines: float, lexical: float) -> float:
    return float(function(np.array([cosines]), np.array([lexical]))[0])


@pytest.mark.parametrize("function", FUNCTIONS, ids=repr)
@given(c=cosine, d=cosine, x=share, y=share)
def test_scores_are_monotone_and_in_bounds(function: ScoreFunction, c: float, d: float, x: float, y: float) -> None:
    low = at(function, min(c, d), min(x, y))
    high = at(function, max(c, d), max(x, y))
    assert 0.0 <= low <= high <= 1.0


@pytest.mark.parametrize("function", FUNCTIONS, ids=repr)
def test_no_evidence_scores_0(function: ScoreFunction) -> None:
    assert at(function, 0.0, 0.0) == 0.0
    assert at(function, -0.7, 0.0) == 0.0


def test_an_encoder_without_a_calibration_scores_by_the_cosine_itself() -> None:
    assert at(UNCALIBRATED.semantic, 0.37, 0.9) == pytest.approx(0.37)
    assert at(UNCALIBRATED.hybrid, 0.5, 0.1) == pytest.approx(0.7 * 0.5 + 0.3 * 0.1)


def test_the_logistic_curve_has_the_documented_values() -> None:
    def sigmoid(z: float) -> float:
        return float(1 / (1 + np.exp(-z)))

    expected = sigmoid(-4 + 9 * 0.5 + 5 * 0.2**0.5)
    assert at(LogisticScore(-4, 9, 5), 0.5, 0.2) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("values", [(-4, -1, 5), (-4, 9, -1), (np.nan, 9, 5), (-4, np.inf, 5)])
def test_a_curve_that_is_not_monotone_is_refused(values: tuple[Any, Any, Any]) -> None:
    with pytest.raises(ValueError, match="slopes of 0 or more"):
        LogisticScore(*values)


def test_a_weight_outside_0_to_1_is_refused() -> None:
    with pytest.raises(ValueError, match=r"0\.\.1, not 1\.5"):
        ConvexScore(1.5)
