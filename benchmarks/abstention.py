"""What scores say where no tool fits: against the same requests with every tool there.

    python -m benchmarks.abstention ../shared/data/dev/* --minilm FOLDER --save benchmarks/results

Two protocols: "tool missing", a request's right tools are taken out of the catalogue; "service missing", all tools of
their service are. A service is what an id begins with; a set with one service has no second protocol. AUROC is of the
best score, requests as they are against requests without. A request is accepted at a ``min_score`` where a hit reaches
it; recall is of the first five hits.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.encoders.bundled import BundledEncoder

from .data import LabelledSet, digest_of, read_set
from .metrics import auroc, calibration_error
from .systems import Bm25s, Dense, Ours, Remembering, System

MIN_SCORES = (0.1, 0.3, 0.5)
RECALL_DEPTH = 5
DEFAULT = "hybrid"
FEWEST = 20
"""Requests that a protocol needs for a figure."""

Floats = NDArray[np.float64]


def cases(
    system: System, one: LabelledSet, protocol: str
) -> Iterator[tuple[Floats, NDArray[np.bool_], frozenset[int]]]:
    """Give each request's scores, which tools are taken out, and the right tools' rows."""
    services = np.array(one.services)
    for number, request in enumerate(one.requests):
        if not request.relevant:
            continue
        right = np.zeros(len(services), np.bool_)
        right[list(request.relevant)] = True
        gone = right if protocol == "tool" else np.isin(services, np.unique(services[right]))
        if not gone.all():
            yield system.scores(number), gone, request.relevant


def measure(system: System, one: LabelledSet, protocol: str) -> dict[str, Any] | None:
    """Measure one system on one set; None where too few requests fit the protocol."""
    complete, without, labels, kept = [], [], [], []
    for scores, gone, relevant in cases(system, one, protocol):
        ranked = np.argsort(-scores, kind="stable")[:RECALL_DEPTH]
        complete.append(float(scores[ranked[0]]))
        labels.append(int(ranked[0]) in relevant)
        without.append(float(scores[~gone].max()))
        found = np.array([row in relevant for row in ranked.tolist()])
        kept.append([float((found & (scores[ranked] >= m)).sum() / len(relevant)) for m in (0.0, *MIN_SCORES)])
    if len(complete) < FEWEST:
        return None
    best = np.array(complete + without)
    present = np.array([True] * len(complete) + [False] * len(without))
    result: dict[str, Any] = {"requests": len(complete), "auroc": auroc(best, present)}
    if best.max() <= 1.0:
        right = np.array(labels + [False] * len(without))
        result["calibration error"] = calibration_error(best, right)
        result["recall"] = np.mean(kept, axis=0).tolist()
        result["false accepts"] = [float((np.array(without) >= m).mean()) for m in MIN_SCORES]
    return result


def main() -> int:
    """Print a row a set and protocol, and save them where asked."""
    parser = argparse.ArgumentParser(description="What scores say where no tool fits.")
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
    systems: dict[str, System] = {mode: Ours(mode, encoder) for mode in ("lexical", "semantic", DEFAULT)}
    systems["bm25s"] = Bm25s()
    if arguments.minilm:
        systems["minilm"] = Dense(arguments.minilm)
    results: dict[str, Any] = {}
    for folder in folders:
        one = read_set(folder)
        for system in systems.values():
            system.read(one.tools, [request.query for request in one.requests])
        for protocol in ("tool", "service"):
            row = {name: measure(system, one, protocol) for name, system in systems.items()}
            results[f"{folder.name}, {protocol} missing"] = row
            print(f"{folder.name + ', ' + protocol:24}", end="")
            print("".join(f" {name} {figures['auroc']:.3f}" for name, figures in row.items() if figures), end="")
            ours = row[DEFAULT]
            if ours:
                recall = " ".join(f"{value:.2f}" for value in ours["recall"])
                false = " ".join(f"{value:.2f}" for value in ours["false accepts"])
                print(f" | error {ours['calibration error']:.3f} recall {recall} false {false}", end="")
            print(flush=True)
    if arguments.save:
        record = {
            "model": encoder.fingerprint,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "data": {folder.name: digest_of(folder) for folder in folders},
            "rows": results,
        }
        path = arguments.save / f"abstention-{arguments.model}.json"
        path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
