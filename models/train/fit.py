"""Fit a model's scores on labelled requests that it was not trained on, and write them into its folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from toolsearch_semantic.encoders.base import Encoder
from toolsearch_semantic.encoders.folder import MANIFEST
from toolsearch_semantic.fitting import Judged, Quality, fit_lexical, fit_scoring, quality_of
from toolsearch_semantic.indexes.base import Document
from toolsearch_semantic.indexes.lexical import LexicalIndex
from toolsearch_semantic.scores import LogisticScore, Scoring
from toolsearch_semantic.text import TEXT_VERSION, TextFields, searchable_text

from .data import Request, ToolSet, held_out, read_sets

__all__ = ["FitRow", "fit_folder", "judged", "write_scoring"]

LEFT_OUT = frozenset({"clinc", "apibench"})
"""Sets whose labels do not say which tool is right: intents without descriptions, and models of one topic."""

REQUESTS_PER_SET = 500
FEWEST_SETS = 3


def judged(
    one: ToolSet,
    requests: Sequence[Request],
    encoder: Encoder,
    *,
    text: Callable[[TextFields], str] = searchable_text,
) -> Judged:
    """Score the requests of a set that have a right tool, or a fixed random part of them, in both ways.

    Requests that the encoder can make nothing of take no part: they are left to keyword search.
    """
    requests = [request for request in requests if request.relevant]
    if len(requests) > REQUESTS_PER_SET:
        chosen = np.random.default_rng(0).choice(len(requests), REQUESTS_PER_SET, replace=False)
        requests = [requests[i] for i in sorted(chosen)]
    index = LexicalIndex(Document(fields) for fields in one.tools.values())
    vectors = encoder.encode_documents([text(fields) for fields in one.tools.values()])
    queries = encoder.encode_queries([request.query for request in requests])
    ids = np.array(list(one.tools))
    known = queries.any(axis=1)
    kept = np.flatnonzero(known).tolist()
    return Judged(
        [np.clip(vectors @ queries[i], 0.0, 1.0).astype(np.float64) for i in kept],
        [index.shares(requests[i].query) for i in kept],
        [np.isin(ids, requests[i].relevant) for i in kept],
    )


class FitRow:
    """What a fit on the other sets makes of one set: the quality of each kind of score."""

    def __init__(self, name: str, one: Judged, scoring: Scoring, lexical: LogisticScore) -> None:
        self.name, self.requests = name, len(one)
        scores = {"lexical": lexical, "semantic": scoring.semantic, "hybrid": scoring.hybrid}
        self.qualities: dict[str, Quality] = {kind: quality_of(score, one) for kind, score in scores.items()}

    def __str__(self) -> str:
        """Print nDCG@10 and the calibration error of each kind."""
        cells = (f"{one.ndcg:8.3f} {one.calibration_error:6.3f}" for one in self.qualities.values())
        return f"{self.name:16} {self.requests:5d} " + "  ".join(cells)


def fit_folder(
    encoder: Encoder, data: Path, *, only_held_out: bool, say: Callable[[str], None] = print
) -> tuple[Scoring, LogisticScore, list[tuple[str, int]]]:
    """Fit on every labelled set of a folder; print what each set makes of a fit on the other sets.

    Args:
        encoder: The model.
        data: A folder of sets.
        only_held_out: Whether only requests for tools that training held out take part.
        say: Prints a line.

    Raises:
        ValueError: Fewer than three sets have requests that take part.
    """
    sets: dict[str, Judged] = {}
    for one in read_sets(data):
        if one.requests and one.name not in LEFT_OUT:
            requests = [r for r in one.requests if held_out(r.relevant)] if only_held_out else one.requests
            shown = judged(one, requests, encoder)
            if len(shown):
                sets[one.name] = shown
    if len(sets) < FEWEST_SETS:
        raise ValueError(
            f"{data} holds {len(sets)} sets with requests that take part; at least {FEWEST_SETS} are needed"
        )
    say(f"{'set':16} {'asked':>5} {'lexical':>15} {'semantic':>17} {'hybrid':>15}   (nDCG@10, calibration error)")
    for name, shown in sets.items():
        rest = [other for key, other in sets.items() if key != name]
        say(str(FitRow(name, shown, fit_scoring(rest), fit_lexical(rest))))
    fitted = list(sets.values())
    return fit_scoring(fitted), fit_lexical(fitted), [(name, len(one)) for name, one in sets.items()]


def write_scoring(folder: Path, scoring: Scoring, sets: Sequence[tuple[str, int]]) -> None:
    """Put the scoring and where it comes from into a model's manifest."""
    path = folder / MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["scoring"] = {
        "semantic": asdict(scoring.semantic),
        "hybrid": asdict(scoring.hybrid),
        "provenance": {
            "recipe": "python -m models.train fit",
            "text_version": TEXT_VERSION,
            "sets": dict(sets),
        },
    }
    path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
