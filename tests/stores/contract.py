"""What every store must do. A store's test module subclasses this and gives a fixture ``store``."""

from __future__ import annotations

import threading
import time

import pytest

from toolsearch_semantic.stores.base import StateStats, StateStore

ODD_IDS = [
    "",
    " ",
    "ünï-日本-🚀",
    "x" * 10_240,
    "../../etc/passwd",
    "'; DROP TABLE threads; --",
    "a\nb\x00c",
    "%*?[]{}:",
]


class StoreContract:
    def test_it_is_a_store(self, store: StateStore) -> None:
        assert isinstance(store, StateStore)
        assert isinstance(store.blocking, bool)

    def test_names_come_back_in_load_order_and_once(self, store: StateStore) -> None:
        assert store.loaded("t") == ()
        assert store.add("t", ["b", "a", "b"]) == ("b", "a")
        assert store.add("t", ["a", "c"]) == ("c",)
        assert store.add("t", ["c", "b"]) == ()
        assert store.loaded("t") == ("b", "a", "c")

    def test_threads_do_not_see_each_other(self, store: StateStore) -> None:
        store.add("one", ["a"])
        store.add("two", ["b"])
        assert (store.loaded("one"), store.loaded("two"), store.loaded("three")) == (("a",), ("b",), ())

    def test_adding_nothing_and_reading_make_no_thread(self, store: StateStore) -> None:
        store.loaded("t")
        assert store.add("t", []) == ()
        store.mark_used("t", ["a"])
        store.remove("t", ["a"])
        assert store.by_last_use("t") == ()
        assert store.stats() == StateStats(0, None)

    def test_removing_unloads_and_keeps_the_order_of_the_rest(self, store: StateStore) -> None:
        store.add("t", ["a", "b", "c"])
        store.remove("t", ["b", "unknown"])
        assert store.loaded("t") == ("a", "c")
        assert store.add("t", ["b"]) == ("b",)
        assert store.loaded("t") == ("a", "c", "b")

    def test_uses_decide_the_order_of_last_use_and_not_the_load_order(self, store: StateStore) -> None:
        store.add("t", ["a", "b", "c"])
        assert store.by_last_use("t") == ("a", "b", "c")
        store.mark_used("t", ["a"])
        store.mark_used("t", ["unknown"])
        assert store.by_last_use("t") == ("b", "c", "a")
        store.add("t", ["b"])
        assert store.by_last_use("t") == ("c", "a", "b")
        assert store.loaded("t") == ("a", "b", "c")

    def test_clearing_forgets_one_thread_or_all(self, store: StateStore) -> None:
        for thread in ("one", "two", "three"):
            store.add(thread, ["a"])
        store.clear("two")
        store.clear("unknown")
        assert [store.loaded(thread) for thread in ("one", "two", "three")] == [("a",), (), ("a",)]
        store.clear_all()
        assert store.stats() == StateStats(0, None)
        assert store.loaded("one") == ()

    def test_stats_count_threads_and_give_the_oldest_use(self, store: StateStore) -> None:
        before = time.time()
        store.add("one", ["a"])
        between = time.time()
        store.add("two", ["a"])
        stats = store.stats()
        assert stats.thread_count == 2
        assert stats.oldest_access_time == pytest.approx(before, abs=between - before + 0.1)

    def test_nothing_is_cleaned_up_that_was_just_used(self, store: StateStore) -> None:
        store.add("one", ["a"])
        assert store.cleanup() == 0
        assert store.loaded("one") == ("a",)

    @pytest.mark.parametrize("thread_id", ODD_IDS, ids=range(len(ODD_IDS)))
    def test_any_string_is_a_thread_id(self, store: StateStore, thread_id: str) -> None:
        store.add(thread_id, ["a", "tool with 'quotes' and ünï"])
        store.add("other", ["b"])
        assert store.loaded(thread_id) == ("a", "tool with 'quotes' and ünï")
        assert store.stats().thread_count == 2
        store.clear(thread_id)
        assert (store.loaded(thread_id), store.loaded("other")) == ((), ("b",))

    def test_ten_thousand_threads_are_kept_apart(self, store: StateStore) -> None:
        for i in range(10_000):
            store.add(f"thread-{i}", [f"tool-{i % 97}"])
        assert store.stats().thread_count == 10_000
        assert all(store.loaded(f"thread-{i}") == (f"tool-{i % 97}",) for i in range(0, 10_000, 13))

    def test_64_threads_loading_at_once_lose_nothing(self, store: StateStore) -> None:
        barrier = threading.Barrier(64)

        def load(number: int) -> None:
            barrier.wait()
            for i in range(20):
                store.add("shared", [f"tool-{number}-{i}", "common"])

        workers = [threading.Thread(target=load, args=(number,)) for number in range(64)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        names = store.loaded("shared")
        assert len(names) == len(set(names)) == 64 * 20 + 1
        for number in range(64):
            own = [name for name in names if name.startswith(f"tool-{number}-")]
            assert own == [f"tool-{number}-{i}" for i in range(20)]
