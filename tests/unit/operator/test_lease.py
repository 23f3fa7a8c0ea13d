from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import pytest

from headway_operator.act import lease
from headway_operator.act.lease import LEASE_NAME, LEASE_SECONDS, Leadership, NotLeaderError
from tests.unit.operator.fakes import FakeCluster, api_error

KEY = ("Lease", "ns", LEASE_NAME)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Candidate:
    """One process that wants to lead."""

    def __init__(self, cluster: Any, clock: Clock, identity: str) -> None:
        self.acquired = 0
        self.leadership = Leadership(cluster, "ns", identity, self._on_acquired, clock)

    def _on_acquired(self) -> None:
        self.acquired += 1

    async def turn(self) -> int | None:
        await self.leadership.acquire_or_renew()
        return self.leadership.epoch


@pytest.fixture(autouse=True)
def _early_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terms are counted from 1, as if it were 1970."""
    monkeypatch.setattr(lease, "_minutes_since_1970", lambda: 0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


async def test_first_term_is_above_the_baseline(cluster: FakeCluster, clock: Clock) -> None:
    assert await Candidate(cluster, clock, "a").turn() == 1


async def test_only_one_leads(cluster: FakeCluster, clock: Clock) -> None:
    first, second = Candidate(cluster, clock, "a"), Candidate(cluster, clock, "b")
    assert await first.turn() == 1
    assert await second.turn() is None
    with pytest.raises(NotLeaderError):
        second.leadership.require()


async def test_renewal_keeps_the_term(cluster: FakeCluster, clock: Clock) -> None:
    candidate = Candidate(cluster, clock, "a")
    for _ in range(3):
        assert await candidate.turn() == 1
        clock.now += 3
    assert candidate.acquired == 1


async def test_expired_lease_is_taken_in_a_new_term(cluster: FakeCluster, clock: Clock) -> None:
    first, second = Candidate(cluster, clock, "a"), Candidate(cluster, clock, "b")
    await first.turn()
    await second.turn()
    clock.now += LEASE_SECONDS
    assert await second.turn() == 2


async def test_leader_stops_before_anybody_may_take_over(
    cluster: FakeCluster, clock: Clock
) -> None:
    first, second = Candidate(cluster, clock, "a"), Candidate(cluster, clock, "b")
    await first.turn()
    await second.turn()
    for _ in range(2 * LEASE_SECONDS):
        clock.now += 1
        if await second.turn() is not None:
            assert first.leadership.epoch is None
            return
    pytest.fail("never taken over")


async def test_leader_that_lost_the_lease_stops_at_once(cluster: FakeCluster, clock: Clock) -> None:
    candidate = Candidate(cluster, clock, "a")
    await candidate.turn()
    cluster.objects[KEY]["spec"]["holderIdentity"] = "b"
    assert await candidate.turn() is None


async def test_race_for_the_lease_is_won_once(cluster: FakeCluster, clock: Clock) -> None:
    candidate = Candidate(cluster, clock, "a")
    await candidate.turn()
    cluster.fails = [api_error(409)]
    with pytest.raises(Exception, match="409"):
        await candidate.turn()
    clock.now += 11
    assert candidate.leadership.epoch is None


async def test_deleted_lease_never_lowers_the_term(cluster: FakeCluster, clock: Clock) -> None:
    candidate = Candidate(cluster, clock, "a")
    await candidate.turn()
    cluster.objects.clear()
    assert await candidate.turn() == 2
    assert candidate.acquired == 2


async def test_deleted_lease_never_lowers_the_term_of_another_process(
    cluster: FakeCluster, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    term = await Candidate(cluster, clock, "a").turn()
    cluster.objects.clear()
    a_minute_later = time.time() + 60
    monkeypatch.setattr(time, "time", lambda: a_minute_later)
    later = await Candidate(cluster, clock, "b").turn()
    assert term is not None
    assert later is not None
    assert term < later < 2**31


async def test_lease_is_handed_back_when_stopped(cluster: FakeCluster, clock: Clock) -> None:
    first, second = Candidate(cluster, clock, "a"), Candidate(cluster, clock, "b")
    task = asyncio.create_task(first.leadership.run())
    for _ in range(10):
        await asyncio.sleep(0)
    assert first.leadership.epoch == 1
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert first.leadership.epoch is None
    assert await second.turn() == 2


async def test_api_server_in_trouble_is_survived(cluster: FakeCluster, clock: Clock) -> None:
    cluster.fails = [api_error(500), TimeoutError()]
    candidate = Candidate(cluster, clock, "a")
    for _ in range(2):
        await candidate.leadership._try_once()
        assert candidate.leadership.epoch is None
    await candidate.leadership._try_once()
    assert candidate.leadership.epoch == 1
