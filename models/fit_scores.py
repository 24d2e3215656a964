"""Fit how a model's cosines and the lexical score become one score, and write it into the model's folder.

    python models/fit_scores.py models/toolsearch-static ../shared/data/train --report ../shared/data/dev

Each folder below the data folder holds `tools.jsonl` and `queries.jsonl`. Two things are fitted, on these sets alone:
the weight of the cosine beside the square root of the lexical score, with the share of meaning alone, and for each of
the semantic and the hybrid score a logistic curve (by Newton's method, sets weighing the same) that estimates the
probability that the first hit answers the request, where half of all requests have no right tool: each is asked twice,
with its right tools and without. `weak_below` is the score that one right tool in ten does not reach. Weight and share
are the highest that cost at most 0.002 of mean nDCG@10 over the sets: template-made requests repeat their tool's words
more than people do, so where the sets hardly tell weights apart, meaning gets the benefit. Every figure that is
printed for a set comes from a fit on the other sets; the sets of `--report` take no part in it. It takes about a
minute.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from evaluate import read_jsonl

from toolsearch_semantic import Tool
from toolsearch_semantic.encoders.folder import MANIFEST
from toolsearch_semantic.encoders.static import StaticEncoder
from toolsearch_semantic.indexes.base import Document, best_rows
from toolsearch_semantic.indexes.lexical import LexicalIndex
from toolsearch_semantic.scores import FusedScore, LogisticScore
from toolsearch_semantic.text import TEXT_VERSION, searchable_text, text_fields

Floats = npt.NDArray[np.float64]
Ranker = Callable[[Floats, Floats], Floats]

# Sets whose labels do not say which tool is right: intents without descriptions, and models of one topic.
LEFT_OUT = {"clinc", "apibench"}
REQUESTS_PER_SET = 500
DEPTH = 10
WEIGHTS = np.round(np.arange(0.05, 1.0, 0.05), 2)
BINS = 10
WITHIN = 0.002
CONVERGED = 1e-10
FEWEST_SETS = 3
WEAK_SHARE = 0.1
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
SEED = 0


@dataclass(frozen=True)
class Sample:
    """The requests of one set: for each, both parts of every tool's score, and which tools are right."""

    name: str
    cosines: list[Floats]
    lexical: list[Floats]
    relevant: list[npt.NDArray[np.bool_]]

    def first_hits(self, ranker: Ranker) -> tuple[Floats, Floats, Floats]:
        """Give the first hit of each request as cosines, lexical scores and labels, with the right tools and without.

        Without them, the first hit is wrong whatever it is: so half of all cases have no right tool.
        """
        columns: list[list[float]] = [[], [], []]
        for cosine, lexical, relevant in zip(self.cosines, self.lexical, self.relevant, strict=True):
            evidence = ranker(cosine, lexical)
            for allowed in (np.ones_like(relevant), ~relevant):
                row = int(np.argmax(np.where(allowed, evidence, -1.0)))
                values = (cosine[row], lexical[row], relevant[row] and allowed[row])
                for column, value in zip(columns, values, strict=True):
                    column.append(float(value))
        return np.array(columns[0]), np.array(columns[1]), np.array(columns[2])

    def ndcg(self, ranker: Ranker) -> float:
        """Rank by a function of both parts: mean nDCG@10, binary gains."""
        discounts = 1 / np.log2(np.arange(2, DEPTH + 2))
        values = []
        for cosine, lexical, relevant in zip(self.cosines, self.lexical, self.relevant, strict=True):
            gains = relevant[best_rows(ranker(cosine, lexical), DEPTH)]
            values.append(gains @ discounts[: len(gains)] / discounts[: relevant.sum()].sum())
        return float(np.mean(values))


def by_keyword(cosines: Floats, lexical: Floats) -> Floats:
    """Rank by the lexical score alone."""
    return lexical


def by_meaning(cosines: Floats, lexical: Floats) -> Floats:
    """Rank by the cosine alone."""
    return cosines


def mixed(weight: float, cosines: Floats, lexical: Floats) -> Floats:
    """Give the evidence that ranks: what `LogisticScore` sums, up to scale."""
    return weight * cosines + (1 - weight) * np.sqrt(lexical)


def read_sample(folder: Path, encoder: StaticEncoder) -> Sample:
    """Score the requests of a set, or a fixed random part of them, with both rankings."""
    tools, requests = read_jsonl(folder / "tools.jsonl"), read_jsonl(folder / "queries.jsonl")
    if len(requests) > REQUESTS_PER_SET:
        chosen = np.random.default_rng(SEED).choice(len(requests), REQUESTS_PER_SET, replace=False)
        requests = [requests[i] for i in sorted(chosen)]
    fields = [text_fields(Tool(t["name"] or t["id"], t["description"] or "", t["parameters"] or {})) for t in tools]
    lexical = LexicalIndex(Document(one) for one in fields)
    vectors = encoder.encode_documents([searchable_text(one) for one in fields])
    queries = encoder.encode_queries([request["query"] for request in requests])
    ids = np.array([tool["id"] for tool in tools])
    return Sample(
        folder.name,
        [np.maximum(vectors @ query, 0).astype(np.float64) for query in queries],
        [lexical.scores(request["query"]) for request in requests],
        [np.isin(ids, request["relevant"]) for request in requests],
    )


def fit_curve(groups: list[tuple[Floats, Floats]]) -> tuple[float, float]:
    """Fit intercept and slope of a logistic curve to groups of (evidence, label), each group weighing the same."""
    evidence = np.concatenate([values for values, _ in groups])
    labels = np.concatenate([values for _, values in groups])
    share = np.concatenate([np.full(len(values), 1 / len(values)) for values, _ in groups])
    design = np.stack([np.ones_like(evidence), evidence], axis=1)
    parameters = np.zeros(2)
    for _ in range(50):
        probability = 1 / (1 + np.exp(-design @ parameters))
        gradient = design.T @ (share * (labels - probability))
        curvature = (design * (share * probability * (1 - probability))[:, np.newaxis]).T @ design
        step = np.linalg.solve(curvature, gradient)
        parameters += step
        if np.abs(step).max() < CONVERGED:
            break
    return float(parameters[0]), float(parameters[1])


def fit_semantic(samples: list[Sample]) -> LogisticScore:
    """Fit the curve of the cosine alone."""
    hits = [sample.first_hits(by_meaning) for sample in samples]
    intercept, slope = fit_curve([(cosines, labels) for cosines, _, labels in hits])
    curve = LogisticScore(round(intercept, 4), round(slope, 4), 0.0)
    return replace(curve, weak_below=weak_bound(curve, samples))


def fit_hybrid(samples: list[Sample]) -> FusedScore:
    """Choose the weight by ranking, fit the curve of the weighted sum, then choose the share of meaning alone."""

    def weighing(weight: float) -> Ranker:
        return lambda cosines, lexical: mixed(weight, cosines, lexical)

    means = {weight: mean_ndcg(samples, weighing(weight)) for weight in WEIGHTS.tolist()}
    weight = max(w for w, mean in means.items() if mean >= max(means.values()) - WITHIN)
    hits = [sample.first_hits(weighing(weight)) for sample in samples]
    intercept, slope = fit_curve([(mixed(weight, cosines, lexical), labels) for cosines, lexical, labels in hits])
    curve = LogisticScore(round(intercept, 4), round(slope * weight, 4), round(slope * (1 - weight), 4))
    alone = fit_semantic(samples)
    fused = {share: FusedScore(curve, alone, share, 0.0) for share in SHARES}
    chosen = max(s for s, score in fused.items() if s == 0 or mean_ndcg(samples, score) >= means[weight] - WITHIN)
    return replace(fused[chosen], weak_below=weak_bound(fused[chosen], samples))


def mean_ndcg(samples: list[Sample], ranker: Ranker) -> float:
    """Average over the sets."""
    return float(np.mean([sample.ndcg(ranker) for sample in samples]))


def weak_bound(score: Ranker, samples: list[Sample]) -> float:
    """Find the score that one right tool in ten does not reach."""
    right = [
        score(cosine[relevant], lexical[relevant]).max()
        for sample in samples
        for cosine, lexical, relevant in zip(sample.cosines, sample.lexical, sample.relevant, strict=True)
    ]
    return round(float(np.quantile(right, WEAK_SHARE)), 3)


def calibration(score: FusedScore, sample: Sample) -> tuple[float, float, float]:
    """Judge first hits: expected calibration error (ten bins of equal width), mean score, and share that is right."""
    cosines, lexical, labels = sample.first_hits(score)
    scores = score(cosines, lexical)
    bins = np.minimum((scores * BINS).astype(int), BINS - 1)
    gaps = [abs(scores[bins == b].mean() - labels[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins)]
    return float(np.sum(gaps)), float(scores.mean()), float(labels.mean())


def labelled_sets(folder: Path) -> list[Path]:
    """Find the sets of a data folder whose labels say which tool is right."""
    return [f for f in sorted(folder.iterdir()) if (f / "queries.jsonl").is_file() and f.name not in LEFT_OUT]


def print_row(sample: Sample, score: FusedScore) -> None:
    """Print how the three rankings do on a set, and what the hybrid score of a first hit is worth."""
    error, mean, right = calibration(score, sample)
    weighted = score.weighted
    weight = weighted.cosine / (weighted.cosine + weighted.lexical)
    rankings = (sample.ndcg(ranker) for ranker in (by_keyword, by_meaning, score))
    print(f"{sample.name:16}", *(f"{ndcg:8.3f}" for ndcg in rankings), end=" ")
    print(f"{weight:8.2f} {score.share:8.2f} {error:8.3f} {mean:8.2f} {right:8.2f}", flush=True)


def main() -> int:
    """Fit, print what each set makes of a fit on the others, and write the fit on all."""
    parser = argparse.ArgumentParser(description="Fit a static model's scoring on labelled requests.")
    parser.add_argument("model", type=Path, help="the model's folder, which is changed")
    parser.add_argument("data", type=Path, help="a folder of sets, each with tools.jsonl and queries.jsonl")
    parser.add_argument("--report", type=Path, help="another such folder, whose sets are scored with the final fit")
    arguments = parser.parse_args()
    folders = labelled_sets(arguments.data)
    if len(folders) < FEWEST_SETS:
        print(
            f"{arguments.data} holds {len(folders)} labelled sets; at least {FEWEST_SETS} are needed", file=sys.stderr
        )
        return 2
    encoder = StaticEncoder(arguments.model)
    samples = [read_sample(folder, encoder) for folder in folders]
    print(
        f"{'set':16} {'lexical':>8} {'semantic':>8} {'hybrid':>8} {'weight':>7} {'error':>7} {'mean':>6} {'right':>6}"
    )
    for sample in samples:
        print_row(sample, fit_hybrid([other for other in samples if other is not sample]))
    semantic, hybrid = fit_semantic(samples), fit_hybrid(samples)
    path = arguments.model / MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["scoring"] = {
        "semantic": asdict(semantic),
        "hybrid": asdict(hybrid),
        "provenance": {
            "recipe": "models/fit_scores.py",
            "text_version": TEXT_VERSION,
            "sets": [sample.name for sample in samples],
            "requests": sum(len(sample.relevant) for sample in samples),
        },
    }
    path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {path}: {semantic}, {hybrid}")
    for folder in labelled_sets(arguments.report) if arguments.report else []:
        print_row(read_sample(folder, encoder), hybrid)
    return 0


if __name__ == "__main__":
    sys.exit(main())
