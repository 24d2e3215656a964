"""An encoder with its cache, and what happens when it fails."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.encoders.base import Encoder, checked_rows, scoring_of
from toolsearch_semantic.encoders.cache import VectorCache, encode_documents
from toolsearch_semantic.encoders.load import load_encoder
from toolsearch_semantic.errors import EncodingError, InvalidOptionError, ToolSearchError, TuningError
from toolsearch_semantic.indexes.base import Document
from toolsearch_semantic.indexes.semantic import SemanticIndex
from toolsearch_semantic.options import Precision
from toolsearch_semantic.scores import Scoring
from toolsearch_semantic.text import searchable_text, text_fields
from toolsearch_semantic.tool import Tool
from toolsearch_semantic.tuning import Tuning

__all__ = ["Embedder"]

logger = logging.getLogger(__name__)

_RETRY_AFTER = 5.0  # seconds before an encoder that failed on documents is tried again by a search

Vectors = NDArray[np.float32]


class Embedder:
    """Embeds tools and queries; what cannot be embedded is said in the log, once, and is None here.

    Args:
        encoder: An encoder, the folder of a local model, or None for the bundled one.
        cache: Where documents' vectors are kept.
        fallback: Whether failing is allowed; otherwise it raises.
        tuning: Scores in place of those that the encoder brings.

    Raises:
        InvalidOptionError: The encoder is neither.
        ToolSearchError: It cannot be loaded, with ``fallback=False``.
        TuningError: The tuning was made for another encoder.
    """

    def __init__(
        self,
        encoder: Encoder | str | Path | None,
        *,
        cache: VectorCache,
        fallback: bool,
        tuning: Tuning | None = None,
    ) -> None:
        self._cache = cache
        self._fallback = fallback
        self._warned = False
        self._retry_at = 0.0
        self.failures = 0
        self.encoder: Encoder | None = None
        try:
            loaded = load_encoder(encoder)
            self.dimension, self.fingerprint = int(loaded.dimension), str(loaded.fingerprint)
            self.scoring: Scoring = scoring_of(loaded)
        except InvalidOptionError:
            raise
        except Exception as error:  # a model's files, its libraries or somebody's own encoder: anything may fail
            self._failed(error)
        else:
            self.encoder = loaded
            if tuning is not None:
                if tuning.encoder != self.fingerprint:
                    raise TuningError(
                        f"The tuning was made for another encoder ({tuning.encoder}) than the one given "
                        f"({self.fingerprint}). Tune again with this one: `toolsearch tune`."
                    )
                self.scoring = tuning.scoring

    def empty_index(self, precision: Precision) -> SemanticIndex | None:
        """Make an index for this encoder's vectors; None where there is no encoder."""
        if self.encoder is None:
            return None
        return SemanticIndex(self.dimension, score=self.scoring.semantic, precision=precision)

    def documents(self, tools: Sequence[Tool], known: Mapping[str, Vectors]) -> list[Document]:
        """Read the tools' fields and embed them; documents without vectors where the encoder fails.

        Args:
            tools: The tools.
            known: Vectors by searchable text, which are not computed.
        """
        fields = [text_fields(tool) for tool in tools]
        if self.encoder is None:
            return [Document(one) for one in fields]
        texts = [searchable_text(one) for one in fields]
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        try:
            rows = encode_documents(self.encoder, missing, self._cache)
        except Exception as error:  # as in the constructor
            self._retry_at = time.monotonic() + _RETRY_AFTER
            self._failed(error)
            return [Document(one) for one in fields]
        new = dict(zip(missing, rows, strict=True))
        return [
            Document(one, known[text] if text in known else new[text]) for one, text in zip(fields, texts, strict=True)
        ]

    def queries(self, texts: Sequence[str]) -> Vectors | None:
        """Embed queries to unit rows of shape (n, d); None where there is no encoder, or it fails."""
        if self.encoder is None:
            return None
        try:
            rows = self.encoder.encode_queries(texts)
            return checked_rows(rows, count=len(texts), dimension=self.dimension, encoder=self.fingerprint)
        except Exception as error:  # as in the constructor
            self._failed(error)
            return None

    def may_retry(self) -> bool:
        """Tell whether an encoder that failed on documents should be tried again now."""
        return self.encoder is not None and time.monotonic() >= self._retry_at

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        if not self._fallback:
            if isinstance(error, ToolSearchError):
                raise error
            raise EncodingError(f"The encoder failed: {error!r}") from error
        if not self._warned:
            self._warned = True
            logger.warning(
                "Searching by keyword only, because the encoder failed: %s. Hits say source='lexical'; "
                "ToolSearch(fallback=False) raises instead.",
                str(error).rstrip(".") or repr(error),
                extra={"event": "fallback", "thread_id": None},  # of a catalogue, not of one thread
            )
