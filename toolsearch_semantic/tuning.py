"""Scores fitted to one's own requests, in place of those that a model brings."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.encoders.base import Encoder, checked_rows, scoring_of
from toolsearch_semantic.encoders.load import load_encoder
from toolsearch_semantic.errors import EncodingError, ToolSearchError, TuningError
from toolsearch_semantic.fitting import Judged, Quality, fit_lexical, fit_scoring, quality_of
from toolsearch_semantic.formats.read import read_tools
from toolsearch_semantic.indexes.base import Document
from toolsearch_semantic.indexes.lexical import LexicalIndex
from toolsearch_semantic.scores import LEXICAL, ConvexScore, LogisticScore, Scoring
from toolsearch_semantic.text import TEXT_VERSION, searchable_text, text_fields
from toolsearch_semantic.validation import read_json

__all__ = ["FEWEST_REQUESTS", "TunedMode", "Tuning", "TuningReport", "read_labelled", "tune"]

FEWEST_REQUESTS = 20
"""With fewer labelled requests a fit says more about chance than about the catalogue."""

FOLDS = 5
_SEED = 0


@dataclass(frozen=True, slots=True)
class Tuning:
    """What ``ToolSearch(tuning=...)`` takes: scores for one encoder, and what they were fitted on.

    Args:
        encoder: The fingerprint of the encoder whose cosines they are for.
        scoring: The scores of meaning alone and of both.
        lexical: The score of keywords alone.
        requests: How many labelled requests they were fitted on.
        tools: How many tools these were asked of.
    """

    encoder: str
    scoring: Scoring
    lexical: LogisticScore
    requests: int
    tools: int
    text_version: int = TEXT_VERSION
    format_version: Literal[1] = 1

    def save(self, path: str | Path) -> None:
        """Write a JSON file, replacing one that is there in one step.

        Raises:
            OSError: It cannot be written; a file that was there is still whole.
        """
        path = Path(path)
        beside = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            beside.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | Path) -> Tuning:
        """Read what ``save`` wrote.

        Raises:
            TuningError: There is no such file, or it is not a tuning of this version.
        """
        cure = "Make it with `toolsearch tune`."
        try:
            tuning = read_json(cls, Path(path).read_bytes())
        except OSError as error:
            raise TuningError(f"The tuning {str(path)!r} cannot be read: {error}. {cure}") from error
        except ValueError as error:
            raise TuningError(f"{str(path)!r} is not a tuning of format 1: {error}. {cure}") from error
        if tuning.text_version != TEXT_VERSION:
            raise TuningError(
                f"The tuning {str(path)!r} was fitted to searchable text of version {tuning.text_version}; this is "
                f"version {TEXT_VERSION}. {cure}"
            )
        return tuning


@dataclass(frozen=True, slots=True)
class _Labelled:
    query: str
    relevant: list[str]


@dataclass(frozen=True, slots=True)
class TunedMode:
    """A mode before and after, on requests that its scores were not fitted on, and whether the fit was taken."""

    before: Quality
    after: Quality
    taken: bool


@dataclass(frozen=True, slots=True)
class TuningReport:
    """What tuning gave: the tuning, and by mode what cross-validation says it is worth."""

    tuning: Tuning
    modes: Mapping[str, TunedMode]


def tune(
    tools: Mapping[str, Any] | Iterable[Any],
    requests: Sequence[tuple[str, Sequence[str]]],
    *,
    encoder: Encoder | str | Path | None = None,
) -> TuningReport:
    """Fit the weight of meaning against keywords, and what a score is worth, to labelled requests.

    Each mode is judged by five-fold cross-validation: fitted on four fifths of the requests, compared with the
    encoder's own scores on the fifth. A fit is taken where it ranks better there (nDCG@10), or as well and with no
    larger calibration error; otherwise the encoder's own scores are kept. Requests that the encoder makes nothing of
    count for keywords alone.

    Args:
        tools: The catalogue, of any shape that ``as_tools`` reads.
        requests: Pairs of a text and the names (or aliases) of the tools that are right for it.
        encoder: An encoder, or the folder of a local model; by default the bundled model.

    Raises:
        TuningError: Fewer than 20 requests have a right tool, or a request names a tool that is not there.
        UnknownToolShapeError: Something among the tools is not a tool.
        InvalidOptionError: The encoder is not one.
        ModelError: It cannot be loaded.
        EncodingError: It failed.
    """
    used = load_encoder(encoder)
    judged = judge(tools, requests, used)
    shipped, own_lexical = scoring_of(used), LEXICAL
    # What the encoder makes nothing of is answered by keyword in a search, so it says nothing on cosines.
    readable = judged.part([row for row, cosines in enumerate(judged.cosines) if cosines.any()])
    own = _functions(shipped, own_lexical)
    modes: dict[str, TunedMode] = {}
    taken: dict[str, LogisticScore | ConvexScore] = {}
    for names, shown, fit in ((("semantic", "hybrid"), readable, _by_meaning), (("lexical",), judged, _by_keyword)):
        if len(shown) < FEWEST_REQUESTS:
            kept = {name: quality_of(own[name], judged) for name in names}
            modes |= {name: TunedMode(quality, quality, taken=False) for name, quality in kept.items()}
            continue
        folds = np.random.default_rng(_SEED).permutation(len(shown)) % FOLDS
        rest = [shown.part(np.flatnonzero(folds != fold).tolist()) for fold in range(FOLDS)]
        kept_out = [shown.part(np.flatnonzero(folds == fold).tolist()) for fold in range(FOLDS)]
        fits, fitted = [fit(one) for one in rest], fit(shown)
        for name in names:
            before = [quality_of(own[name], one) for one in kept_out]
            after = [quality_of(functions[name], one) for functions, one in zip(fits, kept_out, strict=True)]
            modes[name] = _compared(before, after, fitted[name])
            if modes[name].taken:
                taken[name] = fitted[name]
    lexical = taken.pop("lexical", own_lexical)
    assert isinstance(lexical, LogisticScore)
    tuning = Tuning(
        encoder=str(used.fingerprint),
        scoring=replace(shipped, **taken),
        lexical=lexical,
        requests=len(judged),
        tools=len(judged.right[0]),
    )
    return TuningReport(tuning, {name: modes[name] for name in own})


def read_labelled(path: str | Path) -> list[tuple[str, list[str]]]:
    """Read labelled requests from a file: on each line ``{"query": text, "relevant": [names]}``.

    Raises:
        TuningError: The file cannot be read, or a line is something else.
    """
    try:
        # Not splitlines(): a JSON string may hold other separators, such as U+2028, as they are.
        lines = Path(path).read_bytes().decode("utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        raise TuningError(f"The requests {str(path)!r} cannot be read: {error}") from error
    requests = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                one = read_json(_Labelled, line.encode())
            except ValueError as error:
                raise TuningError(
                    f"{str(path)!r}, line {number}: {error}. Expected "
                    '{"query": "what is asked", "relevant": ["name of a right tool"]}.'
                ) from error
            requests.append((one.query, one.relevant))
    return requests


def judge(
    tools: Mapping[str, Any] | Iterable[Any], requests: Sequence[tuple[str, Sequence[str]]], encoder: Encoder
) -> Judged:
    """Score every tool for every request that has a right tool, by meaning and by keyword.

    A request that the encoder makes nothing of has a cosine of 0 with every tool.
    """
    named = read_tools(tools)
    rows = {tool.name: row for row, tool in enumerate(named.tools)}
    rows |= {alias: rows[name] for alias, name in named.aliases.items()}
    for number, (text, right) in enumerate(requests, 1):
        unknown = [name for name in right if name not in rows]
        if unknown:
            raise TuningError(
                f"Request {number} ({text[:60]!r}) names the tool {unknown[0]!r}, which is not in the catalogue. "
                "Name tools as the catalogue does."
            )
    labelled = [(text, right) for text, right in requests if text.strip() and right]
    if len(labelled) < FEWEST_REQUESTS:
        raise TuningError(
            f"{len(labelled)} requests have a right tool; tuning needs at least {FEWEST_REQUESTS}, or it would fit "
            "chance. Label more requests, or use the scores that the model brings."
        )
    fields = [text_fields(tool) for tool in named.tools]
    index = LexicalIndex(Document(one) for one in fields)
    vectors = _encoded(encoder, encoder.encode_documents, [searchable_text(one) for one in fields])
    queries = _encoded(encoder, encoder.encode_queries, [text for text, _ in labelled])
    marks = []
    for _, right in labelled:
        mark = np.zeros(len(fields), np.bool_)
        mark[[rows[name] for name in right]] = True
        marks.append(mark)
    return Judged(
        [np.clip(vectors @ query, 0.0, 1.0).astype(np.float64) for query in queries],
        [index.shares(text) for text, _ in labelled],
        marks,
    )


def _encoded(
    encoder: Encoder, encode: Callable[[Sequence[str]], NDArray[np.float32]], texts: Sequence[str]
) -> NDArray[np.float32]:
    try:
        rows = encode(texts)
    except ToolSearchError:
        raise
    except Exception as error:  # somebody's own encoder: anything may fail
        raise EncodingError(f"The encoder failed: {error!r}") from error
    return checked_rows(rows, count=len(texts), dimension=int(encoder.dimension), encoder=str(encoder.fingerprint))


def _by_meaning(shown: Judged) -> dict[str, LogisticScore | ConvexScore]:
    scoring = fit_scoring([shown])
    return {"semantic": scoring.semantic, "hybrid": scoring.hybrid}


def _by_keyword(shown: Judged) -> dict[str, LogisticScore | ConvexScore]:
    return {"lexical": fit_lexical([shown])}


def _functions(scoring: Scoring, lexical: LogisticScore) -> dict[str, LogisticScore | ConvexScore]:
    return {"semantic": scoring.semantic, "lexical": lexical, "hybrid": scoring.hybrid}


def _compared(before: Sequence[Quality], after: Sequence[Quality], fitted: LogisticScore | ConvexScore) -> TunedMode:
    old, new = _mean(before), _mean(after)
    says_something = isinstance(fitted, LogisticScore) and fitted.cosine + fitted.lexical > 0
    better = new.ndcg > old.ndcg or (new.ndcg == old.ndcg and new.calibration_error <= old.calibration_error)
    return TunedMode(old, new, taken=says_something and better)


def _mean(folds: Sequence[Quality]) -> Quality:
    values = np.mean([(one.ndcg, one.recall, one.calibration_error) for one in folds], axis=0)
    return Quality(*(float(value) for value in values))
