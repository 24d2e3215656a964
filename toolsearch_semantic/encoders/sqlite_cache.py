"""Vectors in a SQLite file, which processes and starts can share."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["SqliteVectorCache"]

logger = logging.getLogger(__name__)

Vector = NDArray[np.float32]


class SqliteVectorCache:
    """In a SQLite file that processes can share; it grows with the texts that it has seen.

    A cache must not stop a search: when the file cannot be read or written (locked for long, disk full), the
    vectors are computed, and one warning is logged. A file that is not a database is set aside under another
    name, with a warning, and begun anew.

    Args:
        path: The file; it is made where it does not exist, in a folder that does.
        timeout: Seconds to wait for another process that writes.
        half: Whether numbers are held in 2 bytes in place of 4; cosines are then off by at most 0.001. One file can
            hold vectors of both kinds, apart.
    """

    _BATCH = 500  # keys in one statement; SQLite allows 999 parameters in old builds

    def __init__(self, path: str | Path, *, timeout: float = 5.0, half: bool = False) -> None:
        self._path = Path(path)
        self._timeout = timeout
        self._warned = False
        self._held = np.dtype(np.float16 if half else np.float32)
        self._table = "vectors_1_half" if half else "vectors_1"
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
                    key: np.frombuffer(blob, self._held).astype(np.float32)
                    for batch in _batches(keys, self._BATCH)
                    for key, blob in connection.execute(
                        f"SELECT key, vector FROM {self._table} WHERE key IN ({','.join('?' * len(batch))})", batch
                    )
                    if len(blob) % self._held.itemsize == 0
                }
        except sqlite3.Error as error:
            self._warn(error)
            return {}

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Remember vectors, all or none."""
        rows = [(key, vector.astype(self._held).tobytes()) for key, vector in vectors.items()]
        try:
            with closing(self._open()) as connection, connection:
                connection.executemany(f"INSERT OR IGNORE INTO {self._table} VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            self._warn(error)

    def _open(self) -> sqlite3.Connection:
        # A connection for each call: cheap beside the encoding that it saves, and safe across threads and forks.
        connection = sqlite3.connect(self._path, timeout=self._timeout)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
            )
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
