from __future__ import annotations

import gc
import math
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from tests.stores.contract import StoreContract
from toolsearch_semantic import InvalidOptionError
from toolsearch_semantic.stores.base import StateStats
from toolsearch_semantic.stores.in_memory import InMemoryStore


class TestInMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> InMemoryStore:
        return InMemoryStore()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_thread_that_was_idle_longer_than_its_ttl_is_forgotten_when_read() -> None:
    clock = Clock()
    store = InMemoryStore(ttl=10, clock=clock)
    store.add("t", ["a"])
    clock.now += 10
    assert store.loaded("t") == ("a",)
    clock.now += 10.01
    assert store.stats() == StateStats(0, None)
    assert store.loaded("t") == ()


def test_only_a_use_keeps_a_thread() -> None:
    clock = Clock()
    store = InMemoryStore(ttl=10, clock=clock)
    store.add("used", ["a"])
    store.add("read", ["a"])
    clock.now += 6
    store.loaded("used")
    store.loaded("read", touch=False)
    store.by_last_use("read")
    store.stats()
    clock.now += 6
    assert store.cleanup() == 1
    assert (store.loaded("used"), store.loaded("read")) == (("a",), ())


def test_a_ttl_of_0_is_never() -> None:
    clock = Clock()
    store = InMemoryStore(ttl=0, clock=clock)
    store.add("t", ["a"])
    clock.now += 1e9
    assert store.cleanup() == 0
    assert store.loaded("t") == ("a",)


def test_idle_threads_are_swept_without_being_read() -> None:
    store = InMemoryStore(ttl=0.1)
    store.add("t", ["a"])
    deadline = time.monotonic() + 5
    while store._threads and time.monotonic() < deadline:
        time.sleep(0.02)
    assert store._threads == {}


def test_the_sweeper_ends_with_its_store() -> None:
    store = InMemoryStore(ttl=0.1)
    store.add("t", ["a"])
    [sweeper] = [t for t in threading.enumerate() if t.name == "toolsearch-sweeper" and t.is_alive()][-1:]
    del store
    gc.collect()
    sweeper.join(timeout=5)
    assert not sweeper.is_alive()


def test_the_sweeper_does_not_keep_the_process_alive() -> None:
    code = (
        "from toolsearch_semantic.stores.in_memory import InMemoryStore\n"
        "store = InMemoryStore(ttl=3600)\n"
        "store.add('t', ['a'])\n"
        "print('end')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "end\n"


def test_the_least_recently_used_thread_makes_room() -> None:
    store = InMemoryStore(max_threads=2)
    store.add("one", ["a"])
    store.add("two", ["a"])
    store.loaded("one")
    store.add("three", ["a"])
    assert [store.loaded(thread) for thread in ("one", "two", "three")] == [("a",), (), ("a",)]


@pytest.mark.parametrize("ttl", [-1, math.nan, math.inf, "1", None, True])
def test_a_ttl_that_is_none_is_refused(ttl: Any) -> None:
    with pytest.raises(InvalidOptionError, match="ttl must be a number of seconds"):
        InMemoryStore(ttl=ttl)


@pytest.mark.parametrize("bound", [0, -1, 1.5, "1", True])
def test_a_bound_on_threads_that_is_none_is_refused(bound: Any) -> None:
    with pytest.raises(InvalidOptionError, match="max_threads"):
        InMemoryStore(max_threads=bound)
