"""kopf's own loop against an API server that is in trouble for longer than kopf would wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import kopf
import pytest

from headway_operator import operator, patience
from headway_operator.act.signing import KeyRing
from headway_operator.api import GROUP
from headway_operator.environment import Environment
from headway_operator.observe.cluster import Cluster
from headway_operator.observe.records import ServiceKey
from headway_operator.observe.relist import Relist
from headway_operator.operator import Operator
from headway_operator.patience import Pauses
from headway_operator.watching import (
    CHILDREN,
    LEASES,
    PODS,
    Listener,
    watch_registry,
    watch_settings,
)
from tests.unit.operator.api_server import ApiServer
from tests.unit.operator.fakes import FakeCluster, api_error
from tests.unit.operator.samples import service
from tests.unit.operator.test_start import VARIABLES, write_key

KOPFS_TRIES = len(kopf.OperatorSettings().networking.error_backoffs) + 1  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in life, but faster."""
    monkeypatch.setattr(patience, "FIRST_PAUSES_SECONDS", (0.001, 0.002))
    monkeypatch.setattr(patience, "LAST_PAUSE_SECONDS", 0.005)
    monkeypatch.setattr(patience, "LOGIN_PAUSE_SECONDS", 0.02)


@pytest.fixture
async def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        monkeypatch.setenv("KUBECONFIG", server.kubeconfig(tmp_path))
        yield server


def nothing(*_: object) -> None:
    pass


@asynccontextmanager
async def watching(
    cluster: Cluster, relisted: Callable[[], None] = nothing
) -> AsyncIterator[asyncio.Task[None]]:
    """Kopf as the operator runs it."""
    listener = Listener(nothing, nothing, nothing, nothing, nothing, relisted)
    stop = asyncio.Event()
    task = asyncio.create_task(
        kopf.operator(
            registry=watch_registry(cluster, listener, ()),
            settings=watch_settings("headway-operator"),
            clusterwide=True,
            standalone=True,
            stop_flag=stop,
        )
    )
    try:
        yield task
    finally:
        stop.set()
        await asyncio.wait([task])


async def becomes(task: asyncio.Task[None], holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            assert not task.done(), "kopf has ended"
            await asyncio.sleep(0.005)


def sees(cluster: Cluster, *names: str) -> Callable[[], bool]:
    return lambda: set(cluster.services) == {ServiceKey("team", name) for name in names}


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503, 504])
async def test_an_api_server_in_trouble_is_waited_for_and_what_happened_is_seen(
    api: ApiServer, status: int
) -> None:
    cluster = Cluster()
    api.put("before")
    async with watching(cluster) as task:
        await becomes(task, sees(cluster, "before"))
        api.answers(status)
        api.put("meanwhile")
        await becomes(task, lambda: max(api.asked.values(), default=0) > 3 * KOPFS_TRIES)
        assert sees(cluster, "before")()
        api.answers(200)
        await becomes(task, sees(cluster, "before", "meanwhile"))
        api.put("after")
        await becomes(task, sees(cluster, "before", "meanwhile", "after"))


@pytest.mark.parametrize("status", [401, 403, 503])
async def test_one_that_is_in_trouble_when_the_operator_starts_is_waited_for_too(
    api: ApiServer, status: int
) -> None:
    cluster = Cluster()
    api.put("before")
    api.answers(status)
    async with watching(cluster) as task:
        await becomes(task, lambda: max(api.asked.values(), default=0) > 3 * KOPFS_TRIES)
        api.answers(200)
        await becomes(task, sees(cluster, "before"))


async def test_what_the_watch_says_is_broken_ends_it_and_the_next_one_sees_all(
    api: ApiServer,
) -> None:
    api.put("before")
    cluster = Cluster()
    async with watching(cluster) as task:
        await becomes(task, sees(cluster, "before"))
        api.tell({"type": "ERROR", "object": {"kind": "Status", "code": 500}})
        await asyncio.wait([task], timeout=30)
        assert task.exception() is not None
    again = Cluster()
    async with watching(again) as task:
        await becomes(task, sees(again, "before"))


async def test_a_kind_that_is_not_served_when_kopf_looks_is_never_watched_and_that_is_noticed(
    api: ApiServer, tmp_path: Path
) -> None:
    write_key(tmp_path)
    led = Operator(Environment.read(VARIABLES), FakeCluster(), KeyRing(tmp_path))  # type: ignore[arg-type]
    api.put("before")

    async def list_uids() -> set[str]:
        return {"uid-of-before"}

    led.relist = Relist(led.cluster, SimpleNamespace(list_uids=list_uids), nothing)
    api.unserved.add(GROUP)
    async with watching(led.cluster) as task:
        await becomes(task, lambda: len(api.watches) == len((LEASES, PODS, *CHILDREN)))
        api.unserved.clear()
        for _ in range(operator.LOOKS_IN_VAIN + 1):
            await led.relist.compare()
            led.check()
        await led.relist.compare()
        with pytest.raises(RuntimeError, match="what existed at the start"):
            led.check()
    async with watching(led.cluster) as task:  # begun again it knows all
        await becomes(task, sees(led.cluster, "before"))
        await led.relist.compare()
        led.check()
        assert led.relist.complete


async def test_one_that_is_not_served_and_has_nothing_at_the_start_is_noticed_before_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_key(tmp_path)
    led = Operator(Environment.read(VARIABLES), FakeCluster(), KeyRing(tmp_path))  # type: ignore[arg-type]
    exists, pauses = set[str](), list[float]()

    async def list_uids() -> set[str]:
        return set(exists)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        exists.add("uid-of-one-that-no-watch-shows")
        if led.relist.overlooked:
            raise asyncio.CancelledError

    monkeypatch.setattr(led.relist, "_lister", SimpleNamespace(list_uids=list_uids))
    monkeypatch.setattr(operator, "asyncio", SimpleNamespace(sleep=sleep))
    with pytest.raises(asyncio.CancelledError):
        await led.compare()
    assert pauses[:2] == [operator.RELIST_SECONDS, operator.UNSEEN_SECONDS]
    with pytest.raises(RuntimeError, match="do not show 1 objects"):
        led.check()
    exists.clear()
    await led.relist.compare()
    assert not led.relist.is_unsure


async def test_a_watch_that_begins_anew_is_told_of_as_it_misses_what_was_deleted(
    api: ApiServer,
) -> None:
    cluster, lists = Cluster(), list[bool]()
    api.put("before")
    async with watching(cluster, lambda: lists.append(True)) as task:
        await becomes(task, sees(cluster, "before"))
        lists.clear()
        del api.services["before"]
        api.put("after")
        await becomes(task, sees(cluster, "before", "after"))
        assert lists == []
        api.tell({"type": "ERROR", "object": {"kind": "Status", "code": 410}})
        await becomes(task, lambda: bool(lists))
        assert sees(cluster, "before", "after")()


async def test_what_was_deleted_while_a_watch_was_not_there_is_looked_for_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_key(tmp_path)
    led = Operator(Environment.read(VARIABLES), FakeCluster(), KeyRing(tmp_path))  # type: ignore[arg-type]
    fails = [True]

    async def list_uids() -> set[str]:
        if fails[0]:
            raise api_error(403)
        return set()

    monkeypatch.setattr(led.relist, "_lister", SimpleNamespace(list_uids=list_uids))
    monkeypatch.setattr(operator, "MISSED_SECONDS", 0.0)
    led.begun_anew()
    assert not led.relisted.is_set()  # all is being listed for the first time
    fails[0] = False
    await led.relist.compare()
    gone = service()
    led.cluster.services.put(gone.key, gone)
    looking = asyncio.create_task(led.look_for_missed())
    fails[0] = True
    led.begun_anew()
    await asyncio.sleep(0.02)
    assert not looking.done()
    assert gone.key in led.cluster.services
    fails[0] = False
    await becomes(looking, lambda: gone.key not in led.cluster.services)
    looking.cancel()


async def test_who_may_not_list_what_there_is_does_not_show_as_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_key(tmp_path)
    led = Operator(Environment.read(VARIABLES), FakeCluster(), KeyRing(tmp_path))  # type: ignore[arg-type]
    fails = [False]

    async def list_uids() -> set[str]:
        if fails[0]:
            raise api_error(403)
        return set()

    monkeypatch.setattr(led.relist, "_lister", SimpleNamespace(list_uids=list_uids))
    monkeypatch.setattr(operator, "backoff_seconds", lambda *_, **__: 0.0)
    monkeypatch.setattr(operator, "RELIST_SECONDS", 0.0)
    assert not led.sees_cluster
    comparing = asyncio.create_task(led.compare())
    await becomes(comparing, lambda: led.sees_cluster)
    fails[0] = True
    await becomes(comparing, lambda: not led.sees_cluster)
    assert led.failed_comparisons >= operator.BLIND_AFTER
    fails[0] = False
    await becomes(comparing, lambda: led.sees_cluster)
    comparing.cancel()


def test_pauses_grow_have_a_most_and_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    pauses = Pauses()
    for _ in range(2):  # each request begins anew
        first = list(islice(pauses, 100))
        assert first == sorted(first)
        assert (first[0], first[-1]) == (1.0, 10.0)
