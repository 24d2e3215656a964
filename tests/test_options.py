from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from toolsearch_semantic import InvalidOptionError, SearchOptions, ToolSearch


def test_the_defaults_are_five_hits_of_any_score() -> None:
    assert SearchOptions.read(None) == SearchOptions(top_k=5, min_score=0.0)


def test_both_spellings_are_read() -> None:
    assert SearchOptions.read({"topK": 3, "minScore": 0.5, "autoLoad": True, "preselect": 2}) == SearchOptions(
        top_k=3, min_score=0.5, auto_load=True, preselect=2
    )
    given = SearchOptions(top_k=2)
    assert SearchOptions.read(given) is given


@pytest.mark.parametrize("value", [0, -1, 5.0, 5.5, "5", None, True, math.nan, [5]])
def test_top_k_that_is_not_a_positive_integer_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"top_k must be.*at least 1, not"):
        SearchOptions(top_k=value)
    with pytest.raises(InvalidOptionError, match="top_k"):
        ToolSearch(mode="lexical").search("x", top_k=value)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, "0.5", None, True, b"0"])
def test_min_score_outside_0_to_1_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"min_score must be .*0\.\.1, not"):
        SearchOptions(min_score=value)


@pytest.mark.parametrize("value", [-1, 1.5, "1", None, True])
def test_preselect_that_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"preselect must be .*at least 0, not"):
        SearchOptions(preselect=value)


@pytest.mark.parametrize("value", [0, 1, "yes", None])
def test_auto_load_that_is_no_boolean_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOptionError, match="auto_load must be True or False"):
        SearchOptions(auto_load=value)


def test_numbers_of_numpy_are_numbers() -> None:
    options = SearchOptions(top_k=np.int64(3), min_score=np.float32(0.5))
    assert (options.top_k, options.min_score) == (3, 0.5)
    assert type(options.top_k) is int


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topk": 3}, "Unknown search option 'topk'; there are autoLoad, auto_load, minScore"),
        ({"topK": 3, "top_k": 3}, "given twice"),
        ([("top_k", 3)], "must be SearchOptions or a mapping"),
        ({3: 3}, "Unknown search option 3"),
    ],
)
def test_options_that_cannot_be_read_are_named(options: Any, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        SearchOptions.read(options)
