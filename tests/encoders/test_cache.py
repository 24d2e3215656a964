from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from toolsearch_semantic import EncodingError, InvalidOptionError
from toolsearch_semantic.encoders.cache import (
    MemoryVectorCache,
    VectorCache,
    cache_key,
    encode_documents,
)
from toolsearch_semantic.encoders.sqlite_cache import SqliteVectorCache


class CountingEncoder:
    """Encodes a text as its length and a constant, and remembers what it was asked."""

    fingerprint = "counting-1"
    dimension = 2

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        return self.encode_documents(texts)

    def encode_documents(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        self.asked.extend(texts)
        return np.array([[len(text), 1.0] for text in texts], np.float32).reshape(-1, 2)


@pytest.fixture(params=["memory", "sqlite"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> VectorCache:
    return MemoryVectorCache() if request.param == "memory" else SqliteVectorCache(tmp_path / "vectors.sqlite")


def test_what_was_put_is_given_back_and_nothing_else(cache: VectorCache) -> None:
    vectors = {cache_key("m", f"text {i}"): np.array([i, 0.5, -1], np.float32) for i in range(1_200)}
    cache.put(vectors)
    found = cache.get([*vectors, cache_key("m", "unknown"), cache_key("other", "text 1")])
    assert found.keys() == vectors.keys()
    for key, vector in vectors.items():
        np.testing.assert_array_equal(found[key], vector)
    assert dict(cache.get([])) == {}


def test_nothing_is_encoded_twice(cache: VectorCache) -> None:
    encoder = CountingEncoder()
    rows = encode_documents(encoder, ["one", "three", "one"], cache)
    np.testing.assert_allclose(rows[:2], [[3 / 10**0.5, 1 / 10**0.5], [5 / 26**0.5, 1 / 26**0.5]], atol=1e-6)
    np.testing.assert_array_equal(rows[0], rows[2])
    again = encode_documents(encoder, ["three", "four"], cache)
    np.testing.assert_array_equal(again[0], rows[1])
    assert encoder.asked == ["one", "three", "four"]


def test_another_encoder_or_dimension_does_not_get_these_vectors(cache: VectorCache) -> None:
    encode_documents(CountingEncoder(), ["one"], cache)
    other = CountingEncoder()
    other.fingerprint = "counting-2"
    encode_documents(other, ["one"], cache)
    assert other.asked == ["one"]
    cache.put({cache_key("counting-1", "short"): np.zeros(7, np.float32)})
    third = CountingEncoder()
    assert encode_documents(third, ["short"], cache).shape == (1, 2)
    assert third.asked == ["short"]


def test_threads_share_a_cache(cache: VectorCache) -> None:
    def work(number: int) -> None:
        for i in range(50):
            text = f"{number % 4}-{i}"
            rows = encode_documents(CountingEncoder(), [text], cache)
            if not np.allclose(rows[0], np.array([len(text), 1]) / np.hypot(len(text), 1)):
                wrong.append(text)

    wrong: list[str] = []
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(cache.get([cache_key("counting-1", f"{n}-{i}") for n in range(4) for i in range(50)])) == 200


def test_the_memory_cache_forgets_what_was_used_longest_ago() -> None:
    cache = MemoryVectorCache(max_bytes=3 * 8)
    keys = [cache_key("m", text) for text in "abcd"]
    for key in keys[:3]:
        cache.put({key: np.zeros(2, np.float32)})
    cache.get([keys[0]])
    cache.put({keys[3]: np.zeros(2, np.float32)})
    assert list(cache.get(keys)) == [keys[0], keys[2], keys[3]]
    assert len(cache) == 3


def test_a_cached_vector_cannot_be_changed_by_its_reader() -> None:
    cache = MemoryVectorCache()
    key = cache_key("m", "a")
    cache.put({key: np.zeros(2, np.float32)})
    with pytest.raises(ValueError, match="read-only"):
        cache.get([key])[key][0] = 1


def test_a_vector_that_is_larger_than_the_bound_drives_nothing_out() -> None:
    cache = MemoryVectorCache(max_bytes=32)
    cache.put({cache_key("m", "small"): np.zeros(2, np.float32)})
    cache.put({cache_key("m", "large"): np.zeros(100, np.float32)})
    assert list(cache.get([cache_key("m", "small"), cache_key("m", "large")])) == [cache_key("m", "small")]


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [3.0, 4.0], [np.inf, 0.0]])
def test_what_is_no_unit_vector_in_a_cache_is_computed_again(bad: list[float], cache: VectorCache) -> None:
    cache.put({cache_key("counting-1", "one"): np.array(bad, np.float32)})
    encoder = CountingEncoder()
    rows = encode_documents(encoder, ["one"], cache)
    np.testing.assert_allclose(rows[0], [3 / 10**0.5, 1 / 10**0.5], atol=1e-6)
    assert encoder.asked == ["one"]


def test_a_cache_that_raises_is_gone_without(caplog: pytest.LogCaptureFixture) -> None:
    class Down:
        def get(self, keys: Sequence[bytes]) -> Any:
            raise ConnectionError("no route")

        put = get

    encoder = CountingEncoder()
    assert encode_documents(encoder, ["one"], Down()).shape == (1, 2)
    assert caplog.text.count("no route") == 2


@pytest.mark.parametrize("bound", [-1, 1.5, "1", True])
def test_a_bound_that_is_none_is_refused(bound: Any) -> None:
    with pytest.raises(InvalidOptionError, match="max_bytes"):
        MemoryVectorCache(max_bytes=bound)


FILL = """
import sys
import numpy as np
from toolsearch_semantic.encoders.cache import cache_key
from toolsearch_semantic.encoders.sqlite_cache import SqliteVectorCache
path, number = sys.argv[1], int(sys.argv[2])
cache = SqliteVectorCache(path, timeout=60)
for i in range(100):
    cache.put({cache_key("m", f"{number}-{i}"): np.array([number, i], np.float32)})
"""


def test_processes_share_a_sqlite_file(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    workers = [subprocess.Popen([sys.executable, "-c", FILL, str(path), str(number)]) for number in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    cache = SqliteVectorCache(path)
    keys = {cache_key("m", f"{n}-{i}"): [n, i] for n in range(3) for i in range(100)}
    assert {key: vector.tolist() for key, vector in cache.get(list(keys)).items()} == keys


def test_a_file_that_is_no_database_is_set_aside_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "vectors.sqlite"
    path.write_bytes(b"this is not a database at all" * 100)
    with caplog.at_level(logging.WARNING):
        cache = SqliteVectorCache(path)
    assert "set aside" in caplog.text
    assert [p.read_bytes()[:8] for p in tmp_path.glob("vectors.sqlite.damaged-*")] == [b"this is "]
    cache.put({cache_key("m", "a"): np.ones(2, np.float32)})
    assert len(SqliteVectorCache(path).get([cache_key("m", "a")])) == 1


def test_a_cache_that_cannot_be_used_is_gone_without_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = CountingEncoder()
    with caplog.at_level(logging.WARNING):
        cache = SqliteVectorCache(tmp_path / "no such folder" / "vectors.sqlite")
        encode_documents(encoder, ["one"], cache)
        encode_documents(encoder, ["one"], cache)
    assert encoder.asked == ["one", "one"]
    assert len([r for r in caplog.records if "does not work" in r.message]) == 1


def test_a_locked_file_is_waited_for_and_then_gone_without(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "vectors.sqlite"
    cache = SqliteVectorCache(path, timeout=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with caplog.at_level(logging.WARNING):
        cache.put({cache_key("m", "a"): np.ones(2, np.float32)})
    assert "locked" in caplog.text
    other.execute("ROLLBACK")
    other.close()
    cache.put({cache_key("m", "a"): np.ones(2, np.float32)})
    assert len(cache.get([cache_key("m", "a")])) == 1


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (np.ones((1, 3), np.float32), r"shape \(1, 3\)"),
        (np.ones(2, np.float32), r"shape \(2,\)"),
        (np.array([[np.nan, 1]], np.float32), "NaN"),
        (np.array([["a", "b"]]), "returned <U1"),
    ],
)
def test_what_an_encoder_should_not_return_is_refused(rows: Any, reason: str) -> None:
    class Wrong(CountingEncoder):
        def encode_documents(self, texts: Sequence[str], /) -> NDArray[np.float32]:
            return rows

    cache = MemoryVectorCache()
    with pytest.raises(EncodingError, match=reason):
        encode_documents(Wrong(), ["one"], cache)
    assert len(cache) == 0


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_half_the_bytes_hold_nearly_the_same_vectors(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    half: VectorCache = MemoryVectorCache(half=True) if kind == "memory" else SqliteVectorCache(path, half=True)
    row = np.random.default_rng(0).normal(size=256).astype(np.float32)
    row /= np.linalg.norm(row)
    half.put({b"k" * 32: row})
    found = half.get([b"k" * 32])[b"k" * 32]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, row.astype(np.float16).astype(np.float32))
    encoder = CountingEncoder()
    encode_documents(encoder, ["three"], half)
    rows = encode_documents(encoder, ["three"], half)
    assert encoder.asked == ["three"]
    np.testing.assert_allclose(rows, [[5 / 26**0.5, 1 / 26**0.5]], atol=1e-3)
    if kind == "sqlite":
        assert not SqliteVectorCache(path).get([b"k" * 32])  # whole and half ones are kept apart
