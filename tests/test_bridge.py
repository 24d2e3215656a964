from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from toolsearch_semantic.bridge import run_sync

user = contextvars.ContextVar("user", default="nobody")


async def who() -> str:
    return user.get()


async def which_loop() -> int:
    return id(asyncio.get_running_loop())


def test_a_call_sees_its_callers_context_and_not_the_first_ones() -> None:
    seen = []
    for name in ("alice", "bob", "carol"):
        token = user.set(name)
        seen.append(run_sync(who))
        user.reset(token)
    assert [*seen, run_sync(who)] == ["alice", "bob", "carol", "nobody"]


def test_what_a_call_sets_in_its_context_stays_in_it() -> None:
    async def change() -> None:
        user.set("mallory")

    run_sync(change)
    assert run_sync(who) == user.get() == "nobody"


def test_all_calls_of_a_thread_share_a_loop_and_threads_do_not() -> None:
    mine = {run_sync(which_loop) for _ in range(3)}
    theirs: list[int] = []
    held: list[object] = []

    def work() -> None:
        theirs.append(run_sync(which_loop))
        held.append(run_sync(lambda: asyncio.sleep(0, asyncio.get_running_loop())))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(mine) == 1
    assert mine.isdisjoint(theirs)
    assert held[0].is_closed()  # type: ignore[attr-defined]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts file descriptors through /proc")
def test_threads_that_end_leave_no_file_open_and_no_thread() -> None:
    async def in_executor() -> int:
        return await asyncio.get_running_loop().run_in_executor(None, lambda: 1)

    def count() -> tuple[int, int]:
        gc.collect()
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    run_sync(in_executor)
    before = count()
    for _ in range(40):
        thread = threading.Thread(target=lambda: run_sync(in_executor))
        thread.start()
        thread.join()
    files, threads = count()
    assert files <= before[0] + 3
    assert threads <= before[1] + 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
@pytest.mark.parametrize("in_child", ["pass", "run_sync(answer)", "run_sync(answer); gc.collect()"])
def test_a_forked_process_that_exits_leaves_the_parents_loop_alone(in_child: str) -> None:
    code = f"""
import asyncio, gc, os, sys
from toolsearch_semantic.bridge import run_sync

async def answer():
    return await asyncio.get_running_loop().run_in_executor(None, lambda: 42)

run_sync(answer)
child = os.fork()
if not child:
    {in_child}
    sys.exit(0)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), run_sync(answer), run_sync(answer))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["0", "42", "42"]
