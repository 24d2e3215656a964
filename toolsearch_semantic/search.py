"""One door to a searchable catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.catalogue import Catalogue, is_selection
from toolsearch_semantic.embedding import Embedder
from toolsearch_semantic.encoders.base import Encoder
from toolsearch_semantic.encoders.cache import MemoryVectorCache, VectorCache
from toolsearch_semantic.errors import InvalidOptionError, SavedIndexError, ToolSearchError
from toolsearch_semantic.formats.read import NamedTools, as_tools, read_tools
from toolsearch_semantic.formats.record import to_record
from toolsearch_semantic.hits import SearchHit
from toolsearch_semantic.indexes.base import Document, Index, Query, Ranking
from toolsearch_semantic.indexes.hybrid import HybridIndex
from toolsearch_semantic.indexes.lexical import LexicalIndex
from toolsearch_semantic.indexes.semantic import SemanticIndex
from toolsearch_semantic.locks import ForkSafeLock
from toolsearch_semantic.options import Mode, Precision, SearchOptions
from toolsearch_semantic.saved import REBUILD, SavedIndex, read_saved, write_saved
from toolsearch_semantic.scores import LEXICAL
from toolsearch_semantic.text import QUERY_LIMIT, clean, query_words, searchable_text, text_fields
from toolsearch_semantic.tool import Tool
from toolsearch_semantic.tuning import Tuning

__all__ = ["ToolSearch"]


@dataclass(frozen=True, slots=True)
class _State:
    """A catalogue with its indexes, whose rows follow it; replaced as a whole."""

    catalogue: Catalogue
    lexical: LexicalIndex
    semantic: SemanticIndex | None


class ToolSearch:
    """Searches a catalogue of tools by meaning, by keyword, or by both.

    Safe to use from many threads: a search sees the catalogue as it was before or after a change, never between.

    Where the encoder cannot be loaded or fails, the lexical index answers instead, and one warning is logged; it also
    answers hybrid queries in a script that the encoder does not know. Such hits say ``source="lexical"``. An encoder
    that failed on tools is tried again by later searches, at most every five seconds.

    Args:
        tools: A mapping of key → tool or an iterable of tools, of any shape that ``as_tools`` reads.
        mode: ``"semantic"``, ``"lexical"`` (which loads no encoder) or ``"hybrid"``.
        encoder: An encoder, or the folder of a local model; by default the bundled model.
        fallback: False raises what the encoder raised, in place of answering by keyword.
        cache: Where vectors are kept by content; by default in this object's memory, at most 64 MiB.
        tuning: Scores fitted to one's own requests (``toolsearch tune``), or the file that holds them; by default
            those that the encoder brings.
        precision: How each number of a vector is held, ``"float32"``, ``"float16"`` or ``"int8"``: in 4, 2 or 1 bytes;
            cosines are off by less than 0.001 and, as a rule, by less than 0.012.

    Raises:
        UnknownToolShapeError: Something among the tools is not a tool.
        ToolNameConflictError: Two different tools have one name.
        InvalidOptionError: The mode, the encoder or the precision is not one.
        ModelError: The encoder cannot be loaded, with ``fallback=False``.
        EncodingError: The encoder failed, with ``fallback=False``.
        TuningError: The tuning cannot be read, or was made for another encoder.
    """

    def __init__(
        self,
        tools: Mapping[str, Any] | Iterable[Any] = (),
        *,
        mode: Mode = "hybrid",
        encoder: Encoder | str | Path | None = None,
        fallback: bool = True,
        cache: VectorCache | None = None,
        tuning: Tuning | str | Path | None = None,
        precision: Precision = "float32",
    ) -> None:
        if mode not in get_args(Mode):
            raise InvalidOptionError(f"mode must be one of {', '.join(map(repr, get_args(Mode)))}, not {mode!r}.")
        if precision not in get_args(Precision):
            names = ", ".join(map(repr, get_args(Precision)))
            raise InvalidOptionError(f"precision must be one of {names}, not {precision!r}.")
        self._mode: Mode = mode
        self._precision: Precision = precision
        self._changing = ForkSafeLock()
        self._embedder: Embedder | None = None
        tuned = Tuning.load(tuning) if isinstance(tuning, str | Path) else tuning
        if not isinstance(tuned, Tuning | None):
            raise InvalidOptionError(f"tuning must be a Tuning or the path of one, not {tuning!r}.")
        self._tuning, self._lexical_score = tuned, LEXICAL if tuned is None else tuned.lexical
        if mode != "lexical":
            kept = MemoryVectorCache() if cache is None else cache
            if not (callable(getattr(kept, "get", None)) and callable(getattr(kept, "put", None))):
                raise InvalidOptionError(f"cache must have get and put, as VectorCache says, not {cache!r}.")
            self._embedder = Embedder(encoder, cache=kept, fallback=fallback, tuning=tuned)
        empty = None if self._embedder is None else self._embedder.empty_index(self._precision)
        self._state = _State(Catalogue(), LexicalIndex(score=self._lexical_score), empty)
        self.add(tools)

    @property
    def mode(self) -> Mode:
        """The ranking that was asked for."""
        return self._mode

    @property
    def active_mode(self) -> Mode:
        """The ranking that answers now: ``"lexical"`` where it fell back."""
        return "lexical" if self._state.semantic is None else self._mode

    @property
    def failures(self) -> int:
        """How often the encoder has failed; what was found meanwhile was found by keyword."""
        return 0 if self._embedder is None else self._embedder.failures

    @property
    def encoder(self) -> Encoder | None:
        """The encoder; None in lexical mode, and where it could not be loaded."""
        return None if self._embedder is None else self._embedder.encoder

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The catalogue, in its order."""
        return self._state.catalogue.tools

    @property
    def aliases(self) -> Mapping[str, str]:
        """Key → name, for tools that were given under a key other than their name."""
        return dict(self._state.catalogue.aliases)

    def __len__(self) -> int:
        """Count the tools."""
        return len(self.tools)

    def __contains__(self, name: object) -> bool:
        """Tell whether a name or an alias is in the catalogue."""
        return isinstance(name, str) and self.get(name) is not None

    def get(self, name: str) -> Tool | None:
        """Give the tool of a name or an alias; None where there is none."""
        catalogue = self._state.catalogue
        row = catalogue.row(name)
        return None if row is None else catalogue.tools[row]

    def search(self, query: str | Sequence[str], *, top_k: int = 5, min_score: float = 0.0) -> list[SearchHit]:
        """Find tools, best first; equal scores keep catalogue order.

        A query that is a tool's name (case, spaces, ``_``, ``-`` and ``.`` aside) puts that tool first with
        score 1.0. A query ``select:name1,name2`` gives just the tools of these names. Of several queries, a
        tool's score is its best. A blank query finds nothing; of a long one, the first 4,000 characters are
        searched for.

        Args:
            query: What is needed, in words; or several such texts.
            top_k: The most hits, at least 1.
            min_score: The lowest score of a hit, in 0..1.

        Raises:
            InvalidOptionError: A query is not text, or an option is not allowed.
            EncodingError: The encoder failed, with ``fallback=False``.
        """
        options = SearchOptions(top_k=top_k, min_score=min_score)
        queries = _read_queries(query)
        if not queries or not self._state.catalogue.tools:
            return []
        state = self._current()
        best: dict[int, SearchHit] = {}
        ranked = list(self._rankers([text for text in queries if not is_selection(text)], state))
        for source, index, one in ranked:
            for row, hit in _hits(index.search(one, options.top_k), one, source, state):
                if row not in best or best[row].score < hit.score:
                    best[row] = hit
        by_default: Mode = ranked[0][0] if ranked else "lexical" if state.semantic is None else self._mode
        named = dict.fromkeys(row for text in queries for row in state.catalogue.named_in(text))
        exact = [
            replace(best.get(row) or SearchHit(state.catalogue.tools[row], 1.0, by_default), score=1.0, by_name=True)
            for row in named
        ]
        others = sorted((row for row in best if row not in named), key=lambda row: (-best[row].score, row))
        return [*exact, *(best[row] for row in others if best[row].score >= options.min_score)][: options.top_k]

    def is_weak(self, hit: SearchHit) -> bool:
        """Tell whether a hit of this search scores so low that hardly any right tool does."""
        if hit.source == "lexical" or self._embedder is None:
            return hit.score < self._lexical_score.weak_below
        scoring = self._embedder.scoring
        bound = scoring.semantic.weak_below if hit.source == "semantic" else scoring.hybrid.weak_below
        return hit.score < bound

    def add(self, tools: Mapping[str, Any] | Iterable[Any]) -> None:
        """Add tools at the end of the catalogue; one that is there already is passed over.

        Raises:
            UnknownToolShapeError: Something among them is not a tool; nothing is added.
            ToolNameConflictError: A different tool has the name already; nothing is added.
            EncodingError: The encoder failed, with ``fallback=False``; nothing is added.
        """
        new = read_tools(tools)
        with self._changing:
            self._add(new, {})

    def remove(self, names: Iterable[str]) -> None:
        """Remove tools by name or alias, with all their aliases.

        Raises:
            ToolNotFoundError: A name is not in the catalogue; nothing is removed.
            InvalidOptionError: One string was given in place of several.
        """
        with self._changing:
            old = self._state
            catalogue, gone = old.catalogue.without(names)
            semantic = None if old.semantic is None else old.semantic.without(gone)
            self._state = _State(catalogue, old.lexical.without(gone), semantic)

    def extended(self, tools: Mapping[str, Any] | Iterable[Any], *, without: Iterable[str] = ()) -> Self:
        """Return a search over these tools and this one's, which stays as it is; encoder and vectors are shared.

        Args:
            tools: Tools to add at the end.
            without: Names to leave out first.

        Raises:
            UnknownToolShapeError: Something among the tools is not a tool.
            ToolNameConflictError: A different tool has one of their names.
            ToolNotFoundError: A name to leave out is not in the catalogue.
        """
        new = copy(self)
        new._changing = ForkSafeLock()
        names = list(without)
        if names:
            new.remove(names)
        new.add(tools)
        return new

    def save(self, path: str | Path) -> None:
        """Save definitions, aliases and vectors to a folder, replacing an index that is there in one step.

        What cannot be written as JSON is left out: executors and source objects. Give them to ``load`` again.

        Raises:
            SavedIndexError: The folder holds something else; or the vectors are missing, since the encoder failed.
            OSError: It cannot be written; an index that was there is still whole.
        """
        state = self._state
        if self._mode != "lexical" and state.semantic is None:
            raise SavedIndexError(
                "This catalogue has no vectors to save, since its encoder failed (see the log). Mend the encoder, "
                "or save a catalogue with mode='lexical'."
            )
        write_saved(
            Path(path),
            SavedIndex(
                mode=self._mode,
                records=[to_record(tool) for tool in state.catalogue.tools],
                aliases=state.catalogue.aliases,
                encoder=None if state.semantic is None or self._embedder is None else self._embedder.fingerprint,
                vectors=None if state.semantic is None else state.semantic.vectors,
                tuning=self._tuning,
            ),
        )

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        tools: Mapping[str, Any] | Iterable[Any] | None = None,
        encoder: Encoder | str | Path | None = None,
        fallback: bool = True,
        cache: VectorCache | None = None,
        tuning: Tuning | str | Path | None = None,
        precision: Precision = "float32",
    ) -> Self:
        """Load what ``save`` wrote; it ranks as it did then.

        Args:
            path: The folder.
            tools: The catalogue, with executors; a vector is computed only where a definition is new. By default
                the saved definitions, which cannot be executed.
            encoder: The encoder that the vectors were made with; by default the bundled model that made them.
            fallback: As for the constructor; a saved index that does not match is refused all the same.
            cache: As for the constructor.
            tuning: As for the constructor; by default what it was saved with.
            precision: As for the constructor.

        Raises:
            SavedIndexError: It is missing, damaged, of another version, or made by another encoder.
            TuningError: As for the constructor.
        """
        saved = read_saved(Path(path))
        rest: dict[str, Any] = {"mode": saved.mode, "fallback": fallback, "cache": cache, "precision": precision}
        if encoder is None and (saved.encoder or "").startswith("static-"):
            encoder = "static"
        search = cls(encoder=encoder, tuning=tuning, **rest)
        made_by = None if search.encoder is None or search._embedder is None else search._embedder.fingerprint
        if made_by is not None and made_by != saved.encoder:
            raise SavedIndexError(
                f"The index in {str(path)!r} was made by another encoder ({saved.encoder}) than the one given "
                f"({made_by}). Give that encoder, or build the index again with this one."
            )
        if saved.tuning is not None and tuning is None:
            search = cls(encoder=search.encoder or encoder, tuning=saved.tuning, **rest)
        try:
            saved_tools = as_tools(saved.records)
            Catalogue(tuple(saved_tools), saved.aliases)
        except ToolSearchError as error:
            raise SavedIndexError(f"The index in {str(path)!r} is damaged: {error} {REBUILD}") from error
        known: dict[str, NDArray[np.float32]] = {}
        if saved.vectors is not None:
            texts = (searchable_text(text_fields(tool)) for tool in saved_tools)
            known = dict(zip(texts, saved.vectors, strict=True))
        named = NamedTools(tuple(saved_tools), saved.aliases) if tools is None else read_tools(tools)
        with search._changing:
            search._add(named, known)
        return search

    def _add(self, new: NamedTools, known: Mapping[str, NDArray[np.float32]]) -> None:
        old = self._state
        catalogue = old.catalogue.with_added(new)
        tools = catalogue.tools[len(old.catalogue.tools) :]
        if self._embedder is None:
            added = [Document(text_fields(tool)) for tool in tools]
            self._state = _State(catalogue, old.lexical.with_added(added), None)
            return
        added = self._embedder.documents(tools, known)
        semantic, to_hold = old.semantic, added
        if semantic is None:  # it failed before; it may work by now
            semantic = self._embedder.empty_index(self._precision)
            to_hold = [*self._embedder.documents(old.catalogue.tools, known), *added]
        if semantic is not None:
            whole = all(document.vector is not None for document in to_hold)
            semantic = semantic.with_added(to_hold) if whole else None
        lexical = old.lexical.with_added(added) if added else old.lexical
        self._state = _State(catalogue, lexical, semantic)

    def _rankers(self, texts: Sequence[str], state: _State) -> Iterator[tuple[Mode, Index, Query]]:
        """Give each query with the index that answers it, and that index's name."""
        semantic = state.semantic
        rows = self._embedder.queries(texts) if texts and semantic is not None and self._embedder is not None else None
        if rows is None or semantic is None or self._embedder is None:
            yield from (("lexical", state.lexical, Query(text)) for text in texts)
            return
        hybrid = HybridIndex(semantic, state.lexical, score=self._embedder.scoring.hybrid)
        for text, row in zip(texts, rows, strict=True):
            if self._mode == "semantic":
                yield "semantic", semantic, Query(text, row)
            elif row.any():
                yield "hybrid", hybrid, Query(text, row)
            else:  # a text without meaning to the encoder, as in a script that it does not know
                yield "lexical", state.lexical, Query(text)

    def _current(self) -> _State:
        """Give the state to search in; where the encoder failed on it, try again first, now and then."""
        if self._state.semantic is None and self._embedder is not None and self._embedder.may_retry():
            with self._changing:
                if self._state.semantic is None:
                    self._add(NamedTools((), {}), {})
        return self._state


def _read_queries(query: object) -> list[str]:
    several = [query] if isinstance(query, str) else query
    if (
        isinstance(several, bytes)
        or not isinstance(several, Sequence)
        or not all(isinstance(text, str) for text in several)
    ):
        raise InvalidOptionError(f"A query must be a string or a sequence of strings, not {query!r}.")
    return [text for text in (clean(text[: 4 * QUERY_LIMIT])[:QUERY_LIMIT] for text in several) if text]


def _hits(ranking: Ranking, query: Query, source: Mode, state: _State) -> Iterator[tuple[int, SearchHit]]:
    columns = (ranking.rows.tolist(), ranking.scores.tolist(), ranking.cosines.tolist(), ranking.lexical.tolist())
    words = query_words(query.text)
    for row, score, cosine, lexical in zip(*columns, strict=True):
        yield (
            row,
            SearchHit(
                tool=state.catalogue.tools[row],
                score=score,
                source=source,
                cosine=None if math.isnan(cosine) else cosine,
                lexical=None if math.isnan(lexical) else lexical,
                words=state.lexical.matched_words(words, row),
            ),
        )
