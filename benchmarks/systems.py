"""What is compared. A system reads a catalogue once and then scores every tool for a query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic import Tool
from toolsearch_semantic.encoders.base import Encoder, scoring_of
from toolsearch_semantic.indexes.base import Document
from toolsearch_semantic.indexes.lexical import LexicalIndex
from toolsearch_semantic.scores import LEXICAL
from toolsearch_semantic.text import STOP_WORDS, searchable_text, text_fields, tokenize

__all__ = ["Bm25s", "Dense", "Fused", "Ours", "Remembering", "System"]

Floats = NDArray[np.float64]

_WORD = r"[^\W_]+"


class System(Protocol):
    """One way to find tools."""

    def read(self, tools: Sequence[dict[str, Any]], queries: Sequence[str]) -> None:
        """Prepare a catalogue, and the queries that will be asked of it."""
        ...

    def scores(self, number: int) -> Floats:
        """Score every tool for the query of this number: shape (tools,)."""
        ...


def tool_of(record: dict[str, Any]) -> Tool:
    """Read a record of `tools.jsonl`."""
    return Tool(record.get("name") or record["id"], record.get("description") or "", record.get("parameters") or {})


class Remembering:
    """An encoder that keeps what it encoded last, documents and queries: modes are compared on the same vectors."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._kept: dict[str, tuple[list[str], NDArray[np.float32]]] = {}
        self.fingerprint, self.dimension, self.scoring = encoder.fingerprint, encoder.dimension, scoring_of(encoder)

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Encode queries."""
        return self._encoded("queries", texts)

    def encode_documents(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Encode documents."""
        return self._encoded("documents", texts)

    def _encoded(self, kind: str, texts: Sequence[str]) -> NDArray[np.float32]:
        if kind not in self._kept or self._kept[kind][0] != list(texts):
            encode = self._encoder.encode_queries if kind == "queries" else self._encoder.encode_documents
            self._kept[kind] = (list(texts), encode(texts))
        return self._kept[kind][1]


class Ours:
    """This library, in one of its three modes."""

    def __init__(self, mode: str, encoder: Encoder) -> None:
        self._mode, self._encoder, self._scoring = mode, encoder, scoring_of(encoder)

    def read(self, tools: Sequence[dict[str, Any]], queries: Sequence[str]) -> None:
        """Build what `ToolSearch` would build."""
        fields = [text_fields(tool_of(record)) for record in tools]
        self._lexical = LexicalIndex(Document(one) for one in fields)
        self._texts = list(queries)
        if self._mode != "lexical":
            self._rows = self._encoder.encode_documents([searchable_text(one) for one in fields])
            self._queries = self._encoder.encode_queries(self._texts)

    def scores(self, number: int) -> Floats:
        """Score as the mode does."""
        if self._mode == "lexical" or (self._mode == "hybrid" and not self._queries[number].any()):
            shares = self._lexical.shares(self._texts[number])
            return LEXICAL(np.zeros_like(shares), shares)
        cosines = np.clip(self._rows @ self._queries[number], 0, 1).astype(np.float64)
        if self._mode == "semantic":
            return self._scoring.semantic(cosines, np.zeros_like(cosines))
        return self._scoring.hybrid(cosines, self._lexical.shares(self._texts[number]))


class Bm25s:
    """bm25s, Lucene's variant, over name, description and parameters, with the library's own tokens."""

    def read(self, tools: Sequence[dict[str, Any]], queries: Sequence[str]) -> None:
        """Index the catalogue."""
        import bm25s

        self._model = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        texts = []
        for record in tools:
            fields = text_fields(tool_of(record))
            texts.append(
                tokenize(f"{searchable_text(fields)} {fields.parameter_descriptions}", without=STOP_WORDS) or [""]
            )
        self._model.index(texts, show_progress=False)
        self._queries = [tokenize(query, without=STOP_WORDS) for query in queries]

    def scores(self, number: int) -> Floats:
        """Score by BM25."""
        tokens = [token for token in self._queries[number] if token in self._model.vocab_dict]
        if not tokens:
            return np.zeros(self._model.scores["num_docs"])
        scores: Floats = self._model.get_scores(tokens).astype(np.float64)
        return scores


class Dense:
    """A sentence-transformers model as it is, by cosine over the words of the name and the description."""

    def __init__(self, folder: Path) -> None:
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(folder), device="cpu", local_files_only=True).float()

    def read(self, tools: Sequence[dict[str, Any]], queries: Sequence[str]) -> None:
        """Encode catalogue and queries."""
        texts = [f"{' '.join(re.findall(_WORD, t['name'] or ''))}. {t['description'] or ''}" for t in tools]
        self._rows = self._model.encode(texts, batch_size=64, normalize_embeddings=True)
        self._queries = self._model.encode(list(queries), batch_size=64, normalize_embeddings=True)

    def scores(self, number: int) -> Floats:
        """Give the cosines."""
        cosines: Floats = (self._rows @ self._queries[number]).astype(np.float64)
        return cosines


class Fused:
    """Reciprocal-rank fusion of two systems that were read already (Cormack, Clarke and Buettcher, 2009)."""

    def __init__(self, first: System, second: System, constant: int = 60) -> None:
        self._systems, self._constant = (first, second), constant

    def read(self, tools: Sequence[dict[str, Any]], queries: Sequence[str]) -> None:
        """Nothing is left to read."""

    def scores(self, number: int) -> Floats:
        """Sum 1 / (constant + rank) over both; what one does not find gets nothing from it."""
        total = 0.0
        for system in self._systems:
            scores = system.scores(number)
            ranks = np.empty(len(scores))
            ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
            total = total + np.where(scores > 0, 1 / (self._constant + ranks), 0.0)
        return np.asarray(total)
