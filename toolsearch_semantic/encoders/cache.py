"""Vectors that were computed before, by what they were computed from.

The key is made of the encoder's fingerprint, the version of the searchable text, and the text; so caches can be
shared by catalogues, users and processes. Whoever can write a cache decides what is found with it: share it only with
those whom you trust. What is no finite unit vector is passed over.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.encoders.base import Encoder, checked_rows
from toolsearch_semantic.errors import InvalidOptionError
from toolsearch_semantic.text import TEXT_VERSION

__all__ = ["MemoryVectorCache", "SqliteVectorCache", "VectorCache", "cache_key", "encode_documents"]

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

    Raises:
        InvalidOptionError: The bound is not an integer of 0 or more.
    """

    def __init__(self, *, max_bytes: int = 64 * 2**20) -> None:
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 0:
            raise InvalidOptionError(f"max_bytes must be an integer of 0 or more, not {max_bytes!r}.")
        self._max_bytes = max_bytes
        self._bytes = 0
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Count the vectors."""
        return len(self._vectors)

    def get(self, keys: Sequence[bytes]) -> Mapping[bytes, Vector]:
        """Give the vectors that are known, by key."""
        with self._lock:
            found = {key: self._vectors[key] for key in keys if key in self._vectors}
            for key in found:
                self._vectors.move_to_end(key)
        return found

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Remember vectors, and forget the least recently used ones beyond the bound."""
        with self._lock:
            for key, vector in vectors.items():
                if vector.nbytes > self._max_bytes:
                    continue
                if key not in self._vectors:
                    own = vector.copy()  # a row of a batch would keep the whole batch alive
                    own.setflags(write=False)
                    self._vectors[key] = own
                    self._bytes += own.nbytes
                self._vectors.move_to_end(key)
            while self._bytes > self._max_bytes:
                _, oldest = self._vectors.popitem(last=False)
                self._bytes -= oldest.nbytes


class SqliteVectorCache:
    """In a SQLite file that processes can share; it grows with the texts that it has seen.

    A cache must not stop a search: when the file cannot be read or written (locked for long, disk full), the
    vectors are computed, and one warning is logged. A file that is not a database is set aside under another
    name, with a warning, and begun anew.

    Args:
        path: The file; it is made where it does not exist, in a folder that does.
        timeout: Seconds to wait for another process that writes.
    """

    _SCHEMA = "CREATE TABLE IF NOT EXISTS vectors_1 (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
    _BATCH = 500  # keys in one statement; SQLite allows 999 parameters in old builds

    def __init__(self, path: str | Path, *, timeout: float = 5.0) -> None:
        self._path = Path(path)
        self._timeout = timeout
        self._warned = False
        try:
            self._open().close()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                self._warn(error)
            else:
                self._set_aside(error)

    def get(self, keys: Sequence[bytes]) -> Mapping[bytes, Vector]:
        """Give the vectors that are known, by key."""
        try:
            with closing(self._open()) as connection:
                return {
                    key: np.frombuffer(blob, np.float32)
                    for batch in _batches(keys, self._BATCH)
                    for key, blob in connection.execute(
                        f"SELECT key, vector FROM vectors_1 WHERE key IN ({','.join('?' * len(batch))})", batch
                    )
                    if len(blob) % np.dtype(np.float32).itemsize == 0
                }
        except sqlite3.Error as error:
            self._warn(error)
            return {}

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Remember vectors, all or none."""
        rows = [(key, np.ascontiguousarray(vector, np.float32).tobytes()) for key, vector in vectors.items()]
        try:
            with closing(self._open()) as connection, connection:
                connection.executemany("INSERT OR IGNORE INTO vectors_1 VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            self._warn(error)

    def _open(self) -> sqlite3.Connection:
        # A connection for each call: cheap beside the encoding that it saves, and safe across threads and forks.
        connection = sqlite3.connect(self._path, timeout=self._timeout)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(self._SCHEMA)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _set_aside(self, error: sqlite3.Error) -> None:
        aside = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
        try:
            self._path.rename(aside)
            self._open().close()
        except (OSError, sqlite3.Error) as failure:  # another process was first, or has the file open
            logger.warning(
                "The vector cache %s is damaged (%s) and cannot be set aside: %s.", self._path, error, failure
            )
            return
        logger.warning(
            "The vector cache %s is damaged (%s). It was set aside as %s, and a new one begun.",
            self._path,
            error,
            aside,
        )

    def _warn(self, error: sqlite3.Error) -> None:
        if not self._warned:
            self._warned = True
            logger.warning(
                "The vector cache %s does not work (%s). Vectors are computed again instead; check the file, its "
                "folder's permissions and the space on the disk.",
                self._path,
                error,
            )


def _batches(keys: Sequence[bytes], size: int) -> Iterable[Sequence[bytes]]:
    return (keys[i : i + size] for i in range(0, len(keys), size))
