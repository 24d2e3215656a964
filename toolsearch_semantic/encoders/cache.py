"""Vectors that were computed before, by what they were computed from.

The key is made of the encoder's fingerprint, the version of the searchable text, and the text; so caches can be
shared by catalogues, users and processes. Whoever can write a cache decides what is found with it: share it only with
those whom you trust. What is no finite unit vector is passed over.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.encoders.base import Encoder, checked_rows
from toolsearch_semantic.errors import InvalidOptionError
from toolsearch_semantic.locks import ForkHeldLock
from toolsearch_semantic.text import TEXT_VERSION

__all__ = ["MemoryVectorCache", "VectorCache", "cache_key", "encode_documents"]

logger = logging.getLogger(__name__)

Vector = NDArray[np.float32]
_TOLERANCE = 1e-3


class VectorCache(Protocol):
    """Keeps vectors of shape (d,), float32, under 32-byte keys. May forget; must not mix up. Thread-safe."""

    def get(self, keys: Sequence[bytes]) -> Mapping[bytes, Vector]:
        """Give the vectors that are known, by key."""
        ...

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Remember vectors."""
        ...


def cache_key(fingerprint: str, text: str) -> bytes:
    """Hash what a document's vector depends on, to 32 bytes (SHA-256)."""
    identity = f"{fingerprint}\0{TEXT_VERSION}\0{text}"
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()


def encode_documents(encoder: Encoder, texts: Sequence[str], cache: VectorCache) -> Vector:
    """Encode n texts to unit rows of shape (n, d); only what the cache does not know, and each text once.

    Raises:
        EncodingError: The encoder failed or returned other rows than it should.
    """
    keys = [cache_key(encoder.fingerprint, text) for text in texts]
    known = {
        key: vector
        for key, vector in _kept(cache, list(dict.fromkeys(keys))).items()
        if vector.shape == (encoder.dimension,) and _is_unit(vector)
    }
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    if missing:
        rows = checked_rows(
            encoder.encode_documents(list(missing.values())),
            count=len(missing),
            dimension=encoder.dimension,
            encoder=encoder.fingerprint,
        )
        new = dict(zip(missing, rows, strict=True))
        try:
            cache.put(new)
        except Exception as error:  # a cache of any kind; without it the vectors are there all the same
            logger.warning("Vectors could not be kept: the cache failed with %r.", error)
        known.update(new)
    return np.stack([known[key] for key in keys]) if keys else np.zeros((0, encoder.dimension), np.float32)


def _kept(cache: VectorCache, keys: Sequence[bytes]) -> Mapping[bytes, Vector]:
    try:
        return cache.get(keys)
    except Exception as error:  # a cache of any kind must not stop a search
        logger.warning("Vectors are computed again: the cache failed with %r.", error)
        return {}


def _is_unit(vector: Vector) -> bool:
    length = float(vector @ vector)
    return length == 0.0 or abs(length - 1.0) < _TOLERANCE  # NaN is neither


class MemoryVectorCache:
    """In memory, bounded, the least recently used first out.

    Args:
        max_bytes: How much the vectors may take together; one that is larger by itself is not kept.
        half: Whether numbers are held in 2 bytes in place of 4; cosines are then off by at most 0.001.

    Raises:
        InvalidOptionError: The bound is not an integer of 0 or more.
    """

    def __init__(self, *, max_bytes: int = 64 * 2**20, half: bool = False) -> None:
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 0:
            raise InvalidOptionError(f"max_bytes must be an integer of 0 or more, not {max_bytes!r}.")
        self._max_bytes = max_bytes
        self._bytes = 0
        self._held = np.float16 if half else np.float32
        self._vectors: OrderedDict[bytes, NDArray[Any]] = OrderedDict()
        self._lock = ForkHeldLock()

    def __len__(self) -> int:
        """Count the vectors."""
        return len(self._vectors)

    def get(self, keys: Sequence[bytes]) -> Mapping[bytes, Vector]:
        """Give the vectors that are known, by key."""
        with self._lock:
            found = {key: self._vectors[key].astype(np.float32, copy=False) for key in keys if key in self._vectors}
            for key in found:
                self._vectors.move_to_end(key)
        return found

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Remember vectors, and forget the least recently used ones beyond the bound."""
        with self._lock:
            for key, vector in vectors.items():
                own = vector.astype(self._held)  # a copy: a row of a batch would keep the whole batch alive
                if own.nbytes > self._max_bytes:
                    continue
                if key not in self._vectors:
                    own.setflags(write=False)
                    self._vectors[key] = own
                    self._bytes += own.nbytes
                self._vectors.move_to_end(key)
            while self._bytes > self._max_bytes:
                _, oldest = self._vectors.popitem(last=False)
                self._bytes -= oldest.nbytes
