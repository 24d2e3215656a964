"""The figures of benchmarks/ on cases that can be checked by hand, and against plain loops."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("checkout")


@pytest.fixture
def checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def test_rankings_have_the_figures_of_the_definitions() -> None:
    from benchmarks.metrics import ndcg, recall, reciprocal_rank, success

    ranked, relevant = [7, 3, 9, 1], {3, 1, 5}
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert ndcg(ranked, relevant, 10) == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / ideal)
    assert ndcg(ranked, relevant, 2) == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert recall(ranked, relevant, 2) == pytest.approx(1 / 3)
    assert recall(ranked, relevant, 5) == pytest.approx(2 / 3)
    assert (success(ranked, relevant, 1), success(ranked, relevant, 2)) == (0.0, 1.0)
    assert (reciprocal_rank(ranked, relevant), reciprocal_rank([8], relevant)) == (0.5, 0.0)


def test_auroc_is_the_share_of_pairs_in_the_right_order() -> None:
    from benchmarks.metrics import auroc

    chance = np.random.default_rng(0)
    for _ in range(50):
        scores = chance.integers(0, 6, 30) / 5  # many ties
        positive = chance.random(30) < 0.4
        if positive.all() or not positive.any():
            continue
        pairs = [(p > n) + 0.5 * (p == n) for p in scores[positive] for n in scores[~positive]]
        assert auroc(scores, positive) == pytest.approx(np.mean(pairs), abs=1e-12)
    with pytest.raises(ValueError, match="not 0 positives and 3 negatives"):
        auroc(np.zeros(3), np.zeros(3, np.bool_))


def test_the_calibration_error_is_that_of_its_bins() -> None:
    from benchmarks.metrics import calibration_error

    scores = np.array([0.05, 0.05, 0.95, 0.95])
    right = np.array([False, True, True, True])
    assert calibration_error(scores, right) == pytest.approx(0.5 * 0.45 + 0.5 * 0.05)


def test_a_set_is_read_and_a_label_without_a_tool_is_refused(tmp_path: Path) -> None:
    from benchmarks.data import read_set

    tools = [{"id": f"s/{name}/x", "name": name, "description": ""} for name in "ab"]
    (tmp_path / "tools.jsonl").write_text("".join(json.dumps(tool) + "\n" for tool in tools))
    (tmp_path / "queries.jsonl").write_text('{"query": "q", "relevant": ["s/b/x"]}\n')
    one = read_set(tmp_path)
    assert one.services == ["s/a", "s/b"]
    assert [(r.query, r.relevant, r.group, r.lang) for r in one.requests] == [("q", frozenset({1}), "", "en")]
    (tmp_path / "queries.jsonl").write_text('{"query": "q", "relevant": ["gone"]}\n')
    with pytest.raises(ValueError, match=r"line 1: no tool has the id 'gone'"):
        read_set(tmp_path)


def test_a_missing_tool_and_a_missing_service_are_taken_out(tmp_path: Path) -> None:
    from benchmarks.abstention import cases, measure
    from benchmarks.data import LabelledRequest, LabelledSet

    class Fixed:
        """Scores every tool by its row."""

        def read(self, tools: object, queries: object) -> None: ...

        def scores(self, number: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            return np.array([0.1, 0.2, 0.6, 0.9])

    tools = [{"id": name} for name in ("s/a/1", "s/a/2", "s/b/1", "s/b/2")]
    one = LabelledSet("s", tools, [LabelledRequest("q", frozenset({3}), "", "en")] * 20)
    [(_, tool_gone, _), *_] = cases(Fixed(), one, "tool")
    [(_, service_gone, _), *_] = cases(Fixed(), one, "service")
    assert (tool_gone.tolist(), service_gone.tolist()) == ([False, False, False, True], [False, False, True, True])
    figures = measure(Fixed(), one, "service")
    assert figures is not None
    assert figures["auroc"] == 1.0
    assert figures["recall"] == [1.0, 1.0, 1.0, 1.0]
    assert figures["false accepts"] == [1.0, 0.0, 0.0]
    assert figures["calibration error"] == pytest.approx(0.5 * 0.1 + 0.5 * 0.2)
    assert measure(Fixed(), LabelledSet("s", tools, one.requests[:19]), "tool") is None
