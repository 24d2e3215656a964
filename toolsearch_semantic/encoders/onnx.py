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
from toolsearch_semantic.locks import ForkSafeLock
from toolsearch_semantic.scores import Scoring

__all__ = ["OnnxEncoder", "is_latin"]

_FEWEST_A_THREAD = 4  # texts for which starting a thread is worth it
_MOST_THREADS = 4
_KNOWN_SHARE = 0.5
_ENGLISH = "english"
_ENGLISH_SHARE = 0.85

_LETTERS = r"[^\W\d_]"
_LATIN = r"[A-Za-z\u00AA\u00BA\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02AF\u1E00-\u1EFF\uFF21-\uFF3A\uFF41-\uFF5A]"


class OnnxEncoder:
    """A transformer from a folder with a ``toolsearch.json``; the same encoding for queries and documents.

    The graph takes ``input_ids`` and ``attention_mask``, both int64 of shape (n, tokens), and gives ``vectors``,
    float32 of shape (n, d). What lies beyond the model's ``max_tokens`` is not read. A text of which more than half
    the tokens are unknown is a row of zeros, and so is, where the model is for Latin script alone, a text of which more
    than half the letters are of another: what is left over is not what the text says. Such texts are left to keyword
    search.

    A model of English may have a partner for other languages, a folder beside its own, with vectors in the same space.
    Texts that are mostly in another script, or whose tokens on the whole are no sign of English, are then the
    partner's, which is read from disk with the first of them.

    Every text runs alone on one thread, several at once. No thread is kept, so a forked process can go on encoding.
    Safe to use from many threads. Vectors differ between kinds of processors in their third digit or so, since each has
    its own way to multiply eight-bit numbers.

    Args:
        folder: The model's folder.
        threads: Texts that are encoded at once; by default one a processor, at most four.

    Raises:
        ModelNotFoundError: It is not there, or its partner is not.
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
        self._partner = _Partner(folder.parent / manifest.partner, self._threads) if manifest.partner else None
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        settings.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                folder / manifest.weights, settings, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = Tokenizer.from_file(str(folder / manifest.tokenizer))
            self._english = _sign_of_english(folder / manifest.english) if manifest.english else None
        except Exception as error:  # neither library raises anything narrower
            raise ModelError(f"The model in {str(folder)!r} cannot be read: {error}.") from error
        self._tokenizer.no_padding()
        self._special = self._tokenizer.num_special_tokens_to_add(False)
        given = self._session.get_outputs()[0].shape[-1]
        if given != manifest.dimension or manifest.max_tokens <= self._special:
            raise ModelError(
                f"The manifest in {str(folder)!r} says {manifest.dimension} dimensions, {manifest.max_tokens} tokens; "
                f"the graph gives {given}, and {self._special} tokens of each text are special. Copy the folder again."
            )
        self._tokenizer.enable_truncation(manifest.max_tokens)
        vocabulary = self._tokenizer.get_vocab_size()
        if self._english is not None and self._english.shape != (vocabulary,):
            raise ModelError(
                f"The weights of tokens in {str(folder)!r} have shape {self._english.shape}; its tokenizer has "
                f"{vocabulary} tokens. The files belong to different models: copy the folder again."
            )
        self._unknown = {self._tokenizer.token_to_id(name) for name in ("[UNK]", "<unk>")} - {None}
        self._fingerprint = fingerprint_of(manifest)
        if self._partner is not None:
            self._fingerprint += f"+{self._partner.fingerprint}"

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
        own = [i for i, text in enumerate(texts) if self._partner is None or self._is_english(text, ids[i])]
        if self._partner is not None and len(own) < len(texts):
            others = sorted(set(range(len(texts))).difference(own))
            rows[others] = self._partner.model.encode_documents([texts[i] for i in others])
        # One at a time: activations are quantised by the range of all that runs together, so a text's vector would
        # depend on its neighbours; and a batch is no faster on a CPU. The longest first, so that threads end together.
        known = sorted((i for i in own if self._knows(texts[i], ids[i])), key=lambda i: -len(ids[i]))
        threads = min(self._threads, len(known) // _FEWEST_A_THREAD)
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                vectors = list(pool.map(lambda i: self._run(ids[i]), known))
        else:
            vectors = [self._run(ids[i]) for i in known]
        for i, vector in zip(known, vectors, strict=True):
            rows[i] = vector
        return checked_rows(rows, count=len(texts), dimension=self.dimension, encoder=self._fingerprint)

    def _is_english(self, text: str, ids: Sequence[int]) -> bool:
        """Tell whether a text is this model's: in Latin script, and of tokens that on the whole speak for English.

        A tool that is described in Chinese often has an English name and parameters, so few other letters decide.
        """
        if not is_latin(text, _ENGLISH_SHARE):
            return False
        return self._english is None or len(ids) <= self._special or float(self._english[ids].sum()) >= 0.0

    def _knows(self, text: str, ids: Sequence[int]) -> bool:
        """Tell whether the model can make something of a text."""
        tokens = len(ids) - self._special
        unknown = sum(one in self._unknown for one in ids)
        if tokens < 1 or unknown > _KNOWN_SHARE * tokens:
            return False
        return not self._manifest.latin_only or is_latin(text)

    def _run(self, ids: Sequence[int]) -> NDArray[np.float32]:
        tokens = np.array([ids], np.int64)
        try:
            (vectors,) = self._session.run(["vectors"], {"input_ids": tokens, "attention_mask": np.ones_like(tokens)})
        except Exception as error:  # onnxruntime's own errors have no common base but this
            raise EncodingError(f"onnxruntime failed on {len(ids)} tokens: {error}") from error
        vector: NDArray[np.float32] = vectors[0]
        return vector

    def _token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        try:
            if len(texts) == 1:  # a batch starts threads, which costs more than one query takes
                return [self._tokenizer.encode(texts[0]).ids]
            return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]
        except (TypeError, UnicodeEncodeError) as error:
            raise EncodingError(f"Not all of these texts can be tokenized: {error}") from error


class _Partner:
    """The model for what is not English; read when the first such text comes."""

    def __init__(self, folder: Path, threads: int) -> None:
        self.fingerprint = fingerprint_of(read_manifest(folder, check_files=False))
        self._folder, self._threads = folder, threads
        self._lock = ForkSafeLock()
        self._model: OnnxEncoder | None = None

    @property
    def model(self) -> OnnxEncoder:
        if self._model is None:
            with self._lock:
                if self._model is None:
                    self._model = OnnxEncoder(self._folder, threads=self._threads)
        return self._model


def _sign_of_english(path: Path) -> NDArray[np.float32]:
    """Read each token's weight; positive sums are English. The special tokens' are 0."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as tensors:
        weights: NDArray[np.float32] = tensors.get_tensor(_ENGLISH).astype(np.float32)
    return weights


def is_latin(text: str, share: float = _KNOWN_SHARE) -> bool:
    """Tell whether at least half of a text's letters, or another share of them, are Latin."""
    if text.isascii():
        return True
    return len(re.findall(_LATIN, text)) >= share * len(re.findall(_LETTERS, text))
