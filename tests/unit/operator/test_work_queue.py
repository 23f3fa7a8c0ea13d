from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from hypothesis import given
from hypothesis import strategies as st

from headway_operator.work_queue import WorkQueue, backoff_seconds


@asynccontextmanager
async def working(
    queue: WorkQueue[str], work: Callable[[str], Awaitable[None]], workers: int = 2
) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run(work, workers))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def passed() -> None:
    """Let everything that is due happen."""
    for _ in range(30):
        await asyncio.sleep(0)


async def test_many_reasons_make_one_look() -> None:
    seen: list[str] = []

    async def work(key: str) -> None:
        seen.append(key)

    queue: WorkQueue[str] = WorkQueue()
    for key in "aabab":
        queue.add(key)
    async with working(queue, work):
        await passed()
    assert sorted(seen) == ["a", "b"]


async def test_change_during_a_look_makes_another_one_afterwards() -> None:
    running, most, looks = 0, 0, 0
    gate = asyncio.Event()

    async def work(_key: str) -> None:
        nonlocal running, most, looks
        running, looks = running + 1, looks + 1
        most = max(most, running)
        await gate.wait()
        running -= 1

    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    async with working(queue, work):
        await passed()
        queue.add("a")
        queue.add("a")
        gate.set()
        await passed()
    assert (most, looks) == (1, 2)


async def test_what_has_changed_goes_before_what_is_only_looked_at_again() -> None:
    seen: list[str] = []

    async def work(key: str) -> None:
        seen.append(key)

    queue: WorkQueue[str] = WorkQueue()
    queue.add_idle("abc")
    queue.add("c")
    queue.add_idle("c")
    async with working(queue, work, workers=1):
        await passed()
    assert seen == ["c", "a", "b"]


async def test_failure_is_tried_again_later_and_stops_nobody() -> None:
    seen: list[str] = []

    async def work(key: str) -> None:
        seen.append(key)
        if key == "bad":
            raise ValueError(key)

    queue: WorkQueue[str] = WorkQueue()
    queue.add("bad")
    queue.add("good")
    async with working(queue, work, workers=1):
        await passed()
        queue.add_idle(["bad", "good"])
        await passed()
        assert seen == ["bad", "good", "good"]
        queue.add("bad")
        await passed()
        assert seen[-1] == "bad"
        queue._retry("bad")
        await passed()
        assert seen.count("bad") == 3


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_backoff_grows_and_is_bounded(failures: int, jitter: float) -> None:
    delay = backoff_seconds(failures, jitter)
    assert 0.25 <= delay <= 60
    assert backoff_seconds(failures + 1, jitter) >= delay
