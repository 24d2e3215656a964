"""Time the library on this machine: import, start, build, query, memory, and FAISS against a plain product.

    python benchmarks/speed.py
    python benchmarks/speed.py --tools ../shared/data/catalogues/mcp_corpus/tools.jsonl

Without ``--tools`` the demo catalogue is varied up to the number of tools asked for. Times are wall-clock medians
on whatever else the machine does; start-up figures come from fresh processes, in turn with what they are compared to.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from toolsearch_semantic import ToolSearch
from toolsearch_semantic.encoders.bundled import BundledEncoder
from toolsearch_semantic.encoders.cache import MemoryVectorCache

QUERIES = [
    "tell the team the build broke",
    "give the customer their money back",
    "who is on call right now",
    "is it going to rain in Lisbon",
    "open a bug report for the login page",
    "turn this paragraph into Spanish",
    "list the files that were shared with me last week",
    "why is the checkout service slow",
]
WARM_UP = 50
REPEATS = 1_000
IMPORTS = "import numpy, pydantic"
MEMORY_CHILD = """
import json, resource, sys
from toolsearch_semantic import ToolSearch
search = ToolSearch(json.load(sys.stdin))
search.search("tell the team the build broke")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def demo_records() -> list[dict[str, Any]]:
    """Read the demo catalogue."""
    text = files("toolsearch_semantic.demo").joinpath("tools.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def catalogue(path: Path | None, count: int) -> list[dict[str, Any]]:
    """Give ``count`` tools of distinct names and texts."""
    if path is None:
        records = demo_records()
        rounds = range(-(-count // len(records)))
        return [
            record
            if number == 0
            else {**record, "name": f"{record['name']}_{number}", "description": f"{record['description']} ({number})"}
            for number in rounds
            for record in records
        ][:count]
    with path.open(encoding="utf-8") as lines:
        records = [json.loads(line) for line, _ in zip(lines, range(count), strict=False)]
    return [{**record, "name": record.get("id", record["name"])} for record in records]


def process_seconds(commands: Sequence[Sequence[str]], runs: int) -> list[float]:
    """Run fresh processes in turn; the median seconds of each command, after one round that is not counted."""
    seconds: list[list[float]] = [[] for _ in commands]
    for run in range(runs + 1):
        for taken, command in zip(seconds, commands, strict=True):
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if run:
                taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in seconds]


def milliseconds(work: Callable[[str], object]) -> tuple[float, float]:
    """Time calls over the queries in turn: median and 95th percentile."""
    taken = []
    for i in range(WARM_UP + REPEATS):
        query = QUERIES[i % len(QUERIES)]
        start = time.perf_counter()
        work(query)
        taken.append((time.perf_counter() - start) * 1_000)
    return float(np.median(taken[WARM_UP:])), float(np.percentile(taken[WARM_UP:], 95))


def build_rate(records: list[dict[str, Any]], encoder: BundledEncoder) -> float:
    """Build from nothing, with the encoder loaded: tools a second, median of five after the words were seen once."""
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        ToolSearch(records, encoder=encoder, cache=MemoryVectorCache())
        taken.append(time.perf_counter() - start)
    return len(records) / statistics.median(taken)


def memory_mib(records: list[dict[str, Any]]) -> float:
    """Build and search in a fresh process: its peak resident memory."""
    child = [sys.executable, "-c", MEMORY_CHILD]
    done = subprocess.run(child, input=json.dumps(records), capture_output=True, text=True, check=True)
    kilobytes = int(done.stdout)
    return kilobytes / (2**20 if sys.platform == "darwin" else 2**10)


def faiss_against_numpy(count: int, dimension: int) -> tuple[float, float]:
    """Find the best 10 of random unit vectors: median ms of FAISS, and of a numpy product with argpartition."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(count, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = {query: vectors[i][np.newaxis] for i, query in enumerate(QUERIES)}
    flat = faiss.IndexFlatIP(dimension)
    flat.add(vectors)

    def product(query: str) -> object:
        scores = vectors @ queries[query][0]
        best = np.argpartition(scores, -10)[-10:]
        return best[np.argsort(-scores[best])]

    return milliseconds(lambda query: flat.search(queries[query], 10))[0], milliseconds(product)[0]


def commit() -> str:
    """Name the commit that is checked out, if this is a checkout."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description="Time the library on this machine.")
    parser.add_argument("--tools", type=Path, help="a JSON Lines catalogue; by default the demo catalogue, varied")
    parser.add_argument("--count", type=int, default=1_000, help="how many tools (default 1000)")
    parser.add_argument("--save", type=Path, help="a folder for the figures as JSON, named by the commit")
    parser.add_argument("--runs", type=int, default=11, help="fresh processes per start-up figure (default 11)")
    arguments = parser.parse_args()

    records = catalogue(arguments.tools, arguments.count)
    encoder = BundledEncoder()
    toolsearch = [sys.executable, "-m", "toolsearch_semantic.cli", "demo", QUERIES[0]]
    plain, with_ours, demo = process_seconds(
        [
            [sys.executable, "-c", IMPORTS],
            [sys.executable, "-c", f"{IMPORTS}, toolsearch_semantic"],
            toolsearch,
        ],
        arguments.runs,
    )
    rows = [
        ("import numpy, pydantic", f"{plain:.3f} s"),
        ("  … and toolsearch_semantic adds", f"{with_ours - plain:.3f} s"),
        ("toolsearch demo, whole process", f"{demo:.3f} s"),
        ("build from nothing", f"{build_rate(records, encoder):,.0f} tools/s"),
        ("peak memory, build and search", f"{memory_mib(records):.0f} MiB"),
    ]
    for mode in ("lexical", "semantic", "hybrid"):
        search = ToolSearch(records, mode=mode, encoder=encoder)  # type: ignore[arg-type]
        middle, high = milliseconds(search.search)
        rows.append((f"query, warm, {mode}", f"{middle:.2f} ms (p95 {high:.2f})"))
    for count in (1_000, 10_000, 100_000):
        by_faiss, by_numpy = faiss_against_numpy(count, encoder.dimension)
        rows.append(
            (f"best 10 of {count:,} x {encoder.dimension}", f"FAISS {by_faiss:.3f} ms, numpy {by_numpy:.3f} ms, "
             f"ratio {by_faiss / by_numpy:.2f}")
        )  # fmt: skip
    source = "the demo catalogue, varied" if arguments.tools is None else arguments.tools.name
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "faiss-cpu", "tokenizers"))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {libraries}")
    print(f"commit {commit()}; {len(records):,} tools of {source}")
    for label, value in rows:
        print(f"{label:38} {value}")
    if arguments.save:
        arguments.save.mkdir(parents=True, exist_ok=True)
        record = {
            "command": " ".join(["python", *sys.argv]),
            "commit": commit(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {libraries}",
            "tools": f"{len(records)} of {source}",
            "figures": dict(rows),
        }
        path = arguments.save / f"speed-{commit()}.json"
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"saved {path}")


if __name__ == "__main__":
    main()
