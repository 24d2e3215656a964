"""The recipes in models/ run on a small data set made here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsearch_semantic.encoders.bundled import bundled_folder
from toolsearch_semantic.encoders.static import StaticEncoder
from toolsearch_semantic.scores import FusedScore, LogisticScore

MODELS = Path(__file__).parents[2] / "models"


@pytest.fixture
def data(tmp_path: Path, demo: list[dict[str, Any]]) -> Path:
    """Three sets of 60 tools; each tool is asked for by the second half of its description."""
    folder = tmp_path / "data"
    for number in range(3):
        tools = [{**record, "id": record["name"]} for record in demo[60 * number : 60 * number + 60]]
        queries = [
            {"query": " ".join(tool["description"].split()[4:14]) or tool["name"], "relevant": [tool["id"]]}
            for tool in tools
        ]
        (folder / f"set{number}").mkdir(parents=True)
        for name, rows in (("tools", tools), ("queries", queries)):
            lines = "\n".join(json.dumps(row) for row in rows)
            (folder / f"set{number}" / f"{name}.jsonl").write_text(lines)
    return folder


def run(script: str, *arguments: Path) -> str:
    # Scripts import their neighbours, which CI's PYTHONSAFEPATH would forbid; the package comes from site-packages.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, str(MODELS / script), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_scoring_is_fitted_and_written_into_the_model(tmp_path: Path, data: Path) -> None:
    model = Path(shutil.copytree(bundled_folder("toolsearch-static"), tmp_path / "model"))
    before = StaticEncoder(model)
    out = run("fit_scores.py", model, data)
    after = StaticEncoder(model)
    assert [line.split()[0] for line in out.splitlines()[1:4]] == ["set0", "set1", "set2"]
    assert after.fingerprint == before.fingerprint
    assert after.scoring != before.scoring
    assert isinstance(after.scoring.semantic, LogisticScore)
    assert isinstance(after.scoring.hybrid, FusedScore)
    assert 0 < after.scoring.hybrid.weak_below < 1
    high, low = after.scoring.hybrid(np.array([0.8, 0.2]), np.array([0.6, 0.1]))
    assert high > 0.5 > low
    provenance = json.loads((model / "toolsearch.json").read_text())["scoring"]["provenance"]
    assert (provenance["sets"], provenance["requests"]) == (["set0", "set1", "set2"], 180)


def test_a_model_is_evaluated_by_set(data: Path) -> None:
    rows = {
        line.split()[0]: line.split()[1:]
        for line in run("evaluate.py", MODELS / "toolsearch-static", *sorted(data.iterdir())).splitlines()
    }
    for name in ("data/set0", "data/set1", "data/set2"):
        ndcg, recall = map(float, rows[name])
        assert 0.6 < ndcg <= recall <= 1.0
