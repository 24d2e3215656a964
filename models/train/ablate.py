"""What the choices behind the embedded text, the lexical score and the fusion are worth on labelled sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from toolsearch_semantic.encoders.base import Encoder
from toolsearch_semantic.fitting import Judged, fit_lexical, fit_scoring, quality_of
from toolsearch_semantic.indexes import lexical
from toolsearch_semantic.scores import ScoreFunction
from toolsearch_semantic.text import TextFields, searchable_text

from .data import held_out, read_sets
from .fit import LEFT_OUT, judged

__all__ = ["ablate"]

SHIPPED_FIELDS, SHIPPED_K1 = dict(lexical.FIELDS), lexical.K1
PROSE_LIMIT = 300


def lexical_variants() -> dict[str, tuple[float, dict[str, lexical.FieldWeight]]]:
    """Name the variants of the lexical score: k1 and the fields."""
    variants = {"as shipped": (SHIPPED_K1, SHIPPED_FIELDS)}
    variants |= {f"k1 {k1}": (k1, SHIPPED_FIELDS) for k1 in (0.6, 0.9, 1.8, 3.0)}
    for field, weights in {
        "name": (1.0, 2.0, 5.0),
        "parameter_names": (0.0, 0.25, 1.0),
        "parameter_descriptions": (0.0, 0.15, 0.6, 1.0),
    }.items():
        for weight in weights:
            changed = {**SHIPPED_FIELDS, field: replace(SHIPPED_FIELDS[field], weight=weight)}
            variants[f"{field.replace('_', ' ')} weigh {weight}"] = (SHIPPED_K1, changed)
    for b in (0.0, 0.25, 0.5, 1.0):
        variants[f"b {b}"] = (SHIPPED_K1, {name: replace(how, b=b) for name, how in SHIPPED_FIELDS.items()})
    return variants


TEXTS: dict[str, Callable[[TextFields], str]] = {
    "as shipped": searchable_text,
    "without parameters": lambda fields: searchable_text(replace(fields, parameter_names="")),
    "with parameter descriptions": lambda fields: f"{searchable_text(fields)}. {fields.parameter_descriptions}",
    "description cut to 300": lambda fields: searchable_text(
        replace(fields, description=fields.description[:PROSE_LIMIT])
    ),
}


def _mean(sets: list[Judged], score: ScoreFunction) -> float:
    return float(np.mean([quality_of(score, one).ndcg for one in sets]))


def ablate(encoder: Encoder, data: Path, *, only_held_out: bool) -> Iterator[tuple[str, str, float]]:
    """Change one choice at a time: kind, what is changed, and mean nDCG@10 over the sets."""
    sets = [one for one in read_sets(data) if one.requests and one.name not in LEFT_OUT]
    if only_held_out:
        sets = [replace(one, requests=[r for r in one.requests if held_out(r.relevant)]) for one in sets]
    shown = [(one, judged(one, one.requests, encoder)) for one in sets]
    sets, plain = [one for one, judgement in shown if len(judgement)], [one for _, one in shown if len(one)]
    scoring, keywords = fit_scoring(plain), fit_lexical(plain)
    yield "hybrid", "as fitted", _mean(plain, scoring.hybrid)
    for weight in np.arange(0.1, 1.0, 0.1):
        yield "hybrid", f"cosine weighs {weight:.1f}", _mean(plain, _root_mixed(float(weight)))
    for weight in np.arange(0.1, 1.0, 0.1):
        yield "hybrid", f"cosine weighs {weight:.1f}, no root", _mean(plain, _mixed(float(weight)))
    for name, text in TEXTS.items():
        rewritten = [judged(one, one.requests, encoder, text=text) for one in sets]
        yield "semantic", name, _mean(rewritten, scoring.semantic)
    try:
        for name, (k1, fields) in lexical_variants().items():
            lexical.K1, lexical.FIELDS = k1, fields
            yield "lexical", name, _mean([judged(one, one.requests, encoder) for one in sets], keywords)
    finally:
        lexical.K1, lexical.FIELDS = SHIPPED_K1, SHIPPED_FIELDS


def _root_mixed(weight: float) -> ScoreFunction:
    return lambda cosines, shares, /: weight * cosines + (1.0 - weight) * np.sqrt(shares)


def _mixed(weight: float) -> ScoreFunction:
    return lambda cosines, shares, /: weight * cosines + (1.0 - weight) * shares
