"""Measure how well a model folder finds tools: nDCG@10 and recall@5 of plain cosine ranking.

    python models/evaluate.py models/toolsearch-static ../shared/data/train/* ../shared/data/dev/*

A folder with `toolsearch.json` is run by the package; any other is loaded by sentence-transformers.
A tool's text is the words of its name, ". ", and its description. Ties keep catalogue order. A data folder holds
`tools.jsonl` and `queries.jsonl`; one without requests is passed over. Where requests have a "group", the set's
figure is the plain mean over its groups. The last line is the plain mean over the sets.
"""

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]

NDCG_DEPTH = 10
RECALL_DEPTH = 5
REQUESTS_AT_ONCE = 1024

# Where a word ends inside a name: lower|Upper, ACRONYM|Word, and the characters between words.
_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s_\-./]+")


class Figures(NamedTuple):
    """The figures of one set, in 0..1."""

    ndcg: float
    recall: float


def static_encoder(folder: Path) -> Encode:
    """Return the encoder of a static model folder, as the package runs it."""
    # Imported here, because the recipe uses this module where the package is not installed.
    from toolsearch_semantic.encoders.static import StaticEncoder

    return StaticEncoder(folder).encode_documents


def sentence_transformer_encoder(folder: Path) -> Encode:
    """Return the encoder of any local sentence-transformers model, computed in float32 on the CPU."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True).float()

    def encode(texts: Sequence[str]) -> Vectors:
        return np.asarray(model.encode(list(texts), batch_size=64, normalize_embeddings=True), dtype=np.float32)

    return encode


def load_encoder(folder: Path) -> Encode:
    """Return the encoder that fits the folder."""
    return static_encoder(folder) if (folder / "toolsearch.json").exists() else sentence_transformer_encoder(folder)


def tool_text(tool: dict[str, Any]) -> str:
    """Return what of a tool is embedded."""
    words = " ".join(word for word in _WORD_BORDER.split(tool["name"]) if word)
    return f"{words}. {tool['description'] or ''}".strip()


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Read one JSON object a line."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def request_figures(ranked: Sequence[int], relevant: set[int]) -> Figures:
    """Return nDCG@10 (binary gains, discount log2(rank + 1)) and recall@5 of one ranking."""
    discounts = 1 / np.log2(np.arange(2, NDCG_DEPTH + 2))
    gains = np.array([index in relevant for index in ranked[:NDCG_DEPTH]], dtype=float)
    ideal = discounts[: len(relevant)].sum()
    found = relevant.intersection(ranked[:RECALL_DEPTH])
    return Figures(float(gains @ discounts[: len(gains)] / ideal), len(found) / len(relevant))


def evaluate(encode: Encode, folder: Path) -> Figures:
    """Return the figures of an encoder on one data folder."""
    tools, requests = read_jsonl(folder / "tools.jsonl"), read_jsonl(folder / "queries.jsonl")
    index = {tool["id"]: i for i, tool in enumerate(tools)}
    tool_vectors = encode([tool_text(tool) for tool in tools])
    groups: dict[str, list[Figures]] = defaultdict(list)
    for start in range(0, len(requests), REQUESTS_AT_ONCE):
        batch = requests[start : start + REQUESTS_AT_ONCE]
        scores = encode([request["query"] for request in batch]) @ tool_vectors.T
        ranking = np.argsort(-scores, axis=1, kind="stable")[:, :NDCG_DEPTH]
        for request, ranked in zip(batch, ranking.tolist(), strict=True):
            relevant = {index[tool_id] for tool_id in request["relevant"]}
            groups[request.get("group") or ""].append(request_figures(ranked, relevant))
    means = np.array([np.mean(figures, axis=0) for figures in groups.values()])
    return Figures(*(float(value) for value in means.mean(axis=0)))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="nDCG@10 and recall@5 of a model folder on data folders.")
    parser.add_argument("model", type=Path, help="a static model folder, or any sentence-transformers folder")
    parser.add_argument("data", type=Path, nargs="+", help="folders with tools.jsonl and queries.jsonl")
    arguments = parser.parse_args()
    folders = [folder for folder in arguments.data if (folder / "queries.jsonl").exists()]
    if not folders:
        print("none of the data folders holds queries.jsonl", file=sys.stderr)
        return 2
    encode = load_encoder(arguments.model)
    print(f"{'set':24} {'nDCG@10':>8} {'recall@5':>9}")
    table = []
    for folder in folders:
        figures = evaluate(encode, folder)
        table.append(figures)
        print(f"{folder.parent.name + '/' + folder.name:24} {figures.ndcg:8.3f} {figures.recall:9.3f}", flush=True)
    mean = Figures(*(float(value) for value in np.mean(table, axis=0)))
    print(f"{f'mean of {len(table)} sets':24} {mean.ndcg:8.3f} {mean.recall:9.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
