"""Static embeddings: a text is the mean of its tokens' rows. No transformer runs, and no torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.encoders.base import checked_rows
from toolsearch_semantic.encoders.folder import StaticManifest, fingerprint_of, read_manifest
from toolsearch_semantic.errors import EncodingError, ModelError
from toolsearch_semantic.scores import Scoring

__all__ = ["StaticEncoder"]

_KNOWN_SHARE = 0.5
_SCALES = "weights"
"""A tensor of one number a token, which its row is multiplied by; the name is model2vec's."""

_BATCH = 128  # texts whose token rows are gathered at once: about 13 MB at 100 tokens and 256 dimensions


class StaticEncoder:
    """A static model from a folder with a ``toolsearch.json``; the same encoding for queries and documents.

    All tokens count, however long the text; order does not. A text of which more than half the tokens are unknown
    (rows of zeros in the table) is a row of zeros: what a few left-over tokens say is not what the text says. So
    texts in a script that the model does not know are left to keyword search.
    Safe to use from many threads.

    Args:
        folder: The model's folder.

    Raises:
        ModelNotFoundError: It is not there.
        ModelError: It is damaged, or not a static model.
    """

    def __init__(self, folder: str | Path) -> None:
        from safetensors import safe_open
        from tokenizers import Tokenizer

        folder = Path(folder)
        manifest = read_manifest(folder)
        if not isinstance(manifest, StaticManifest):
            raise ModelError(f"The model in {str(folder)!r} is of kind {manifest.kind!r}, not 'static'.")
        self._manifest = manifest
        try:
            with safe_open(folder / self._manifest.weights, framework="numpy") as tensors:
                table = tensors.get_tensor(self._manifest.tensor)
                if _SCALES in tensors.keys():  # noqa: SIM118 - what safe_open gives cannot be iterated
                    table = table.astype(np.float32) * tensors.get_tensor(_SCALES)[:, np.newaxis]
            self._tokenizer = Tokenizer.from_file(str(folder / self._manifest.tokenizer))
        except Exception as error:  # tokenizers raises nothing narrower
            raise ModelError(f"The model in {str(folder)!r} cannot be read: {error}.") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        expected = (self._tokenizer.get_vocab_size(), self._manifest.dimension)
        if table.shape != expected:
            raise ModelError(
                f"The weights in {str(folder)!r} have shape {table.shape}; its tokenizer and manifest say {expected}. "
                "The files belong to different models: copy the folder again."
            )
        self._table: NDArray[np.float32] = table.astype(np.float32)
        self._unknown: NDArray[np.int64] = (~self._table.any(axis=1)).astype(np.int64)  # tokens with rows of zeros
        self._fingerprint = fingerprint_of(self._manifest)

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
        sums = np.zeros((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), _BATCH):
            ids = self._token_ids(texts[start : start + _BATCH])
            lengths = np.fromiter(map(len, ids), np.int64, len(ids))
            known = np.flatnonzero(lengths)  # reduceat cannot sum an empty run
            if len(known):
                starts = np.cumsum(lengths[known]) - lengths[known]
                flat = np.concatenate([ids[i] for i in known])
                rows = self._table[flat]
                sums[start + known] = np.add.reduceat(rows, starts, axis=0)
                strange = np.add.reduceat(self._unknown[flat], starts) > _KNOWN_SHARE * lengths[known]
                sums[start + known[strange]] = 0.0
        return checked_rows(sums, count=len(texts), dimension=self.dimension, encoder=self._fingerprint)

    def _token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        try:
            if len(texts) == 1:  # a batch starts threads, which costs more than one query takes
                return [self._tokenizer.encode(texts[0], add_special_tokens=False).ids]
            return [e.ids for e in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
        except (TypeError, UnicodeEncodeError) as error:
            raise EncodingError(f"Not all of these texts can be tokenized: {error}") from error
