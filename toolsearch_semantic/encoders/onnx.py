"""A transformer through ONNX Runtime: no torch."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.encoders.base import checked_rows
from toolsearch_semantic.encoders.folder import OnnxManifest, fingerprint_of, read_manifest
from toolsearch_semantic.errors import EncodingError, InvalidOptionError, ModelError
from toolsearch_semantic.scores import Scoring

__all__ = ["OnnxEncoder"]

_BATCH = 32
_MOST_THREADS = 4
_KNOWN_SHARE = 0.5

_LETTERS = r"[^\W\d_]"
_LATIN = r"[A-Za-z\u00AA\u00BA\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02AF\u1E00-\u1EFF\uFF21-\uFF3A\uFF41-\uFF5A]"


class OnnxEncoder:
    """A transformer from a folder with a ``toolsearch.json``; the same encoding for queries and documents.

    The graph takes ``input_ids`` and ``attention_mask``, both int64 of shape (n, tokens), and gives ``vectors``,
    float32 of shape (n, d). What lies beyond the model's ``max_tokens`` is not read. A text of which more than half
    the tokens are unknown is a row of zeros, and so is, where the model is for Latin script alone, a text of which more
    than half the letters are of another: what is left over is not what the text says. Such texts are left to keyword
    search.

    Every run takes one thread; documents are encoded in batches of like length, several at once. No thread is kept,
    so a forked process can go on encoding. Safe to use from many threads. Vectors differ between kinds of
    processors in their third digit or so, since each has its own way to multiply eight-bit numbers.

    Args:
        folder: The model's folder.
        threads: Batches of documents that are encoded at once; by default one a processor, at most four.

    Raises:
        ModelNotFoundError: It is not there.
        ModelError: It is damaged, or not a model of this kind; or onnxruntime is not installed.
        InvalidOptionError: ``threads`` is not a positive integer.
    """

    def __init__(self, folder: str | Path, *, threads: int | None = None) -> None:
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise InvalidOptionError(f"threads must be an integer of at least 1, not {threads!r}.")
        try:
            import onnxruntime
        except ImportError as error:
            raise ModelError(
                f"This model runs on onnxruntime, which cannot be imported: {error}. Install it with "
                'pip install onnxruntime, or take the model that needs none: encoder=BundledEncoder("static").'
            ) from error
        from tokenizers import Tokenizer

        folder = Path(folder)
        manifest = read_manifest(folder)
        if not isinstance(manifest, OnnxManifest):
            raise ModelError(f"The model in {str(folder)!r} is of kind {manifest.kind!r}, not 'onnx'.")
        self._manifest = manifest
        self._threads = threads or min(_MOST_THREADS, os.cpu_count() or 1)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        settings.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                folder / manifest.weights, settings, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = Tokenizer.from_file(str(folder / manifest.tokenizer))
        except Exception as error:  # neither library raises anything narrower
            raise ModelError(f"The model in {str(folder)!r} cannot be read: {error}.") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(manifest.max_tokens)
        self._unknown = self._tokenizer.token_to_id("[UNK]")
        self._fingerprint = fingerprint_of(manifest)

    @property
    def fingerprint(self) -> str:
        """Identify the model by the checksums of its files."""
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """Length d of each vector."""
        return self._manifest.dimension

    @property
    def scoring(self) -> Scoring:
        """The scoring that was fitted to this model."""
        return self._manifest.scoring

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Encode n texts to unit rows of shape (n, d)."""
        return self._encode(texts)

    def encode_documents(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Encode n texts to unit rows of shape (n, d)."""
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        ids = self._token_ids(texts)
        rows = np.zeros((len(texts), self.dimension), np.float32)
        # Of like length, so that little is computed on padding; the longest first, so that threads end together.
        known = [i for i, text in enumerate(texts) if self._knows(text, ids[i])]
        order = sorted(known, key=lambda i: -len(ids[i]))
        batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
        threads = min(self._threads, len(batches))
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                vectors = list(pool.map(lambda batch: self._run([ids[i] for i in batch]), batches))
        else:
            vectors = [self._run([ids[i] for i in batch]) for batch in batches]
        for batch, encoded in zip(batches, vectors, strict=True):
            rows[batch] = encoded
        return checked_rows(rows, count=len(texts), dimension=self.dimension, encoder=self._fingerprint)

    def _knows(self, text: str, ids: Sequence[int]) -> bool:
        """Tell whether the model can make something of a text; two of its tokens are special ones."""
        tokens = len(ids) - 2
        if tokens < 1 or ids.count(self._unknown) > _KNOWN_SHARE * tokens:
            return False
        if not self._manifest.latin_only or text.isascii():
            return True
        letters = len(re.findall(_LETTERS, text))
        return len(re.findall(_LATIN, text)) >= _KNOWN_SHARE * letters

    def _run(self, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        width = max(map(len, ids))
        tokens = np.zeros((len(ids), width), np.int64)
        mask = np.zeros_like(tokens)
        for row, one in enumerate(ids):
            tokens[row, : len(one)] = one
            mask[row, : len(one)] = 1
        try:
            (vectors,) = self._session.run(["vectors"], {"input_ids": tokens, "attention_mask": mask})
        except Exception as error:  # onnxruntime's own errors have no common base but this
            raise EncodingError(f"onnxruntime failed on {len(ids)} texts: {error}") from error
        encoded: NDArray[np.float32] = vectors
        return encoded

    def _token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        try:
            if len(texts) == 1:  # a batch starts threads, which costs more than one query takes
                return [self._tokenizer.encode(texts[0]).ids]
            return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]
        except (TypeError, UnicodeEncodeError) as error:
            raise EncodingError(f"Not all of these texts can be tokenized: {error}") from error
