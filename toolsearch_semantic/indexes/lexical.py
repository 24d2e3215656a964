"""Keyword search: BM25 over a tool's fields, as a share of what the query could reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.indexes.base import DECIMALS, Document, Query, Ranking, select_top
from toolsearch_semantic.scores import LEXICAL, ScoreFunction
from toolsearch_semantic.text import STOP_WORDS, TextFields, query_words, tokenize

__all__ = ["K1", "FieldWeight", "LexicalIndex", "term_weights"]


@dataclass(frozen=True, slots=True)
class FieldWeight:
    """How a field counts: its weight, its usual length in terms, how much length matters (b of BM25).

    Stop words count where the field is not prose: in the name ``who_am_i`` they are all that there is.
    """

    weight: float
    usual_length: float
    b: float
    prose: bool


K1 = 1.2
UNKNOWN_TERM_SHARE = 0.3

# Usual lengths are constants and not the catalogue's means: a tool's weight for a term must not change when
# another tool is added. Chosen on the training sets: models/README.md has the figures.
FIELDS: Mapping[str, FieldWeight] = {
    "name": FieldWeight(3.0, 4.0, 0.75, False),
    "namespace": FieldWeight(2.0, 2.0, 0.75, False),
    "description": FieldWeight(1.0, 16.0, 0.75, True),
    "parameter_names": FieldWeight(0.5, 8.0, 0.75, False),
    "parameter_descriptions": FieldWeight(0.3, 24.0, 0.75, True),
}


def term_weights(fields: TextFields) -> dict[str, float]:
    """Give each term of a tool its saturated weight in [0, 1): ``f / (k1 + f)``.

    ``f`` is the term's count, summed over the fields after each was weighted and normalised by its length:
    "simple BM25F" (Robertson, Zaragoza and Taylor, "Simple BM25 extension to multiple weighted fields", 2004),
    with constant usual lengths in place of the collection's means. Stop words of prose are not counted.
    """
    frequencies: dict[str, float] = {}
    for field, how in FIELDS.items():
        terms = tokenize(getattr(fields, field), without=STOP_WORDS if how.prose else frozenset())
        if not terms:
            continue
        share = how.weight / (1.0 - how.b + how.b * len(terms) / how.usual_length)
        for term in terms:
            frequencies[term] = frequencies.get(term, 0.0) + share
    return {term: f / (K1 + f) for term, f in frequencies.items()}


class LexicalIndex:
    """BM25F as a share in [0, 1) of what the query could reach, which compares across queries and catalogues.

    A row's share is the sum of idf times term weight over the query's terms, divided by the sum of their idf, which
    no row can reach; repeats in the query count once. A term that the catalogue does not know weighs 0.3 of the
    highest idf in that sum, so a query that is mostly unknown scores low whatever it hits.

    Args:
        documents: What to search in.
        score: From that share to a score.
    """

    def __init__(self, documents: Iterable[Document] = (), *, score: ScoreFunction = LEXICAL) -> None:
        self._score = score
        self._vocabulary: dict[str, int] = {}
        rows = list(self._rows(documents))
        self._assemble(rows)

    def _rows(self, documents: Iterable[Document]) -> Iterator[tuple[NDArray[np.int32], NDArray[np.float64]]]:
        vocabulary = self._vocabulary
        for document in documents:
            weights = term_weights(document.fields)
            terms = np.fromiter((vocabulary.setdefault(t, len(vocabulary)) for t in weights), np.int32, len(weights))
            yield terms, np.fromiter(weights.values(), np.float64, len(weights))

    def _assemble(self, rows: list[tuple[NDArray[np.int32], NDArray[np.float64]]]) -> None:
        """Turn rows of terms into postings: for each term the rows that have it, ascending, and its weights."""
        self._by_row = rows
        lengths = np.fromiter((len(terms) for terms, _ in rows), np.int64, len(rows))
        terms = np.concatenate([terms for terms, _ in rows]) if rows else np.empty(0, np.int32)
        weights = np.concatenate([weights for _, weights in rows]) if rows else np.empty(0)
        order = np.argsort(terms, kind="stable")
        self._posting_rows = np.repeat(np.arange(len(rows)), lengths)[order]
        self._posting_weights = weights[order]
        counts = np.bincount(terms, minlength=len(self._vocabulary))
        self._starts = np.concatenate(([0], np.cumsum(counts)))

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._by_row)

    def with_added(self, documents: Sequence[Document]) -> Self:
        """Return an index with these documents as its last rows."""
        new = type(self)(score=self._score)
        new._vocabulary = dict(self._vocabulary)
        new._assemble([*self._by_row, *new._rows(documents)])
        return new

    def without(self, rows: Sequence[int]) -> Self:
        """Return an index without these rows."""
        gone = set(rows)
        kept = [row for i, row in enumerate(self._by_row) if i not in gone]
        # Terms are numbered anew, or a catalogue that changes for long would remember every word it ever had.
        used = np.unique(np.concatenate([terms for terms, _ in kept])) if kept else np.empty(0, np.int32)
        spelt = list(self._vocabulary)
        new = type(self)(score=self._score)
        new._vocabulary = {spelt[term]: number for number, term in enumerate(used.tolist())}
        new._assemble([(np.searchsorted(used, terms).astype(np.int32), weights) for terms, weights in kept])
        return new

    def shares(self, text: str) -> NDArray[np.float64]:
        """Give every row's share for a query text. Shape (n,), in [0, 1)."""
        totals = np.zeros(len(self))
        reachable = 0.0
        for term in dict.fromkeys(term for terms in query_words(text).values() for term in terms):
            start, end = self._postings(term)
            if start == end:
                reachable += UNKNOWN_TERM_SHARE * self._idf(1)
                continue
            idf = self._idf(end - start)
            reachable += idf
            totals[self._posting_rows[start:end]] += idf * self._posting_weights[start:end]
        return np.round(totals / reachable, DECIMALS) if reachable else totals

    def search(self, query: Query, k: int) -> Ranking:
        """Rank the ``k`` best rows that share a term with the query's text."""
        shares = self.shares(query.text)
        return select_top(np.arange(len(self)), self._score(np.zeros_like(shares), shares), k, lexical=shares)

    def matched_words(self, words: Mapping[str, Sequence[str]], row: int) -> tuple[str, ...]:
        """Name the words of a query (`query_words`) of which a row has a term."""
        held = set(self._by_row[row][0].tolist())
        return tuple(w for w, terms in words.items() if any(self._vocabulary.get(term, -1) in held for term in terms))

    def _postings(self, term: str) -> tuple[int, int]:
        identity = self._vocabulary.get(term, len(self._starts))
        if identity + 1 >= len(self._starts):
            return 0, 0
        return int(self._starts[identity]), int(self._starts[identity + 1])

    def _idf(self, rows_with_term: int) -> float:
        """Inverse document frequency as in Lucene's BM25: positive for every term."""
        return math.log1p((len(self) - rows_with_term + 0.5) / (rows_with_term + 0.5))
