from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway_operator.memory.claims import GpuClaim, GpuQuota
from headway_operator.memory.memory import Memory
from headway_operator.observe.cluster import Cluster
from headway_operator.observe.engine_metrics.sample import ServiceMetrics
from headway_operator.observe.own_writes import OwnWrites
from headway_operator.observe.polling import POLL_SECONDS, POLLS_A_TICK, Poller
from headway_operator.observe.records import PodRecord, ServiceKey
from headway_operator.observe.relist import Relist
from headway_operator.observe.sidecar_client import SidecarClient
from headway_operator.observe.sidecars import (
    HeldPoint,
    Outcome,
    SidecarReport,
    Sidecars,
    parse_stamp,
)
from headway_operator.observe.trimming import child_record, pod_record, service_record
from headway_operator.observer import Observer
from headway_runtime.policy import Stamp
from tests.unit.operator.fakes import FakeCluster, FakeSidecar
from tests.unit.operator.samples import (
    OPERATOR,
    applied,
    loading_pod,
    pod,
    ready_pod,
    rendered,
    service,
    snapshot,
    spec,
)

DEMO = ServiceKey("team", "demo")


def watched(*pods: Any, services: Any = None, children: Any = ()) -> Cluster:
    cluster = Cluster()
    for record in [service()] if services is None else services:
        cluster.services.put(DEMO, record)
    for child in children:
        cluster.children.put(DEMO, child)
    for each in pods:
        cluster.pods.put(DEMO, each)
    return cluster


def observer(server: FakeCluster, *pods: Any, **more: Any) -> Observer:
    return Observer(watched(*pods, **more), server, Memory(), lambda _: ServiceMetrics())


async def test_snapshot_has_everything_of_one_service() -> None:
    children = [child_record(applied(body)) for body in rendered().values()]
    watching = observer(FakeCluster(), ready_pod("demo-2"), ready_pod("demo-1"), children=children)
    found = await watching.snapshot(DEMO, OPERATOR)
    assert found is not None
    assert [each.name for each in found.pods] == ["demo-1", "demo-2"]
    assert len(found.children) == 5
    assert found.rollout is not None
    assert found.rollout.template is not None


async def test_services_share_gpus_only_where_there_is_a_quota() -> None:
    watching = observer(FakeCluster())
    found = await watching.snapshot(DEMO, OPERATOR)
    assert found is not None
    assert found.quota is None
    other = GpuClaim(ServiceKey("team", "other"), 2, 1, 3, 1)
    watching.memory.claims.put(other.key, other, 8, OPERATOR.epoch)
    found = await watching.snapshot(DEMO, replace(OPERATOR, gpu_quota=8))
    assert found is not None
    assert found.quota == GpuQuota(8, (other,), everybody=(other,))


async def test_a_service_that_is_going_keeps_nobody_waiting() -> None:
    watching = observer(FakeCluster(), services=[replace(service(), deleting=True)])
    await watching.snapshot(DEMO, replace(OPERATOR, gpu_quota=8))
    other = ServiceKey("team", "other")
    assert watching.memory.claims.quota(8, other, 2, OPERATOR.epoch) == GpuQuota(8)


async def test_gpus_of_a_service_that_is_going_are_its_own_until_it_is_gone() -> None:
    watching = observer(FakeCluster(), services=[replace(service(), deleting=True)])
    claims, shared = watching.memory.claims, replace(OPERATOR, gpu_quota=8)
    other = ServiceKey("team", "other")
    claims.put(DEMO, GpuClaim(DEMO, 2, 1, 4, 3), 8, OPERATOR.epoch)
    for _ in range(2):
        await watching.snapshot(DEMO, shared)
        assert claims.quota(8, other, 2, OPERATOR.epoch).others == (GpuClaim(DEMO, 2, 3, 3, 3),)
    watching.cluster.services.drop(service().uid)
    await watching.snapshot(DEMO, shared)
    assert claims.quota(8, other, 1, OPERATOR.epoch).others == ()


async def test_service_that_is_gone_or_going_has_no_snapshot() -> None:
    going = replace(service(), deleting=True)
    assert await observer(FakeCluster(), services=[]).snapshot(DEMO, OPERATOR) is None
    assert await observer(FakeCluster(), services=[going]).snapshot(DEMO, OPERATOR) is None


async def test_answer_to_a_write_does_not_revive_a_service_that_is_gone() -> None:
    watching = observer(FakeCluster(), services=[])
    watching.memory.services.note(DEMO, service())
    assert await watching.snapshot(DEMO, OPERATOR) is None


def test_answer_to_a_write_does_not_revive_an_object_that_was_deleted() -> None:
    writes: OwnWrites[Any] = OwnWrites()
    writes.deleted(DEMO, service().uid)
    writes.note(DEMO, service())
    assert writes.latest(DEMO, None) is None
    another = service(uid="another")
    writes.note(DEMO, another)
    assert writes.latest(DEMO, None) is another


async def test_somebody_elses_unlabelled_object_is_noticed() -> None:
    cluster = FakeCluster()
    metadata = {"namespace": "team", "name": "demo", "uid": "x", "resourceVersion": "5"}
    cluster.objects["Deployment", "team", "demo"] = {"metadata": metadata}
    found = await observer(cluster).snapshot(DEMO, OPERATOR)
    assert found is not None
    assert found.foreign == ("Deployment",)


async def test_object_of_a_previous_service_of_the_name_is_not_ours() -> None:
    old = replace(child_record(applied(rendered()["Service"])), controller_uid="gone")
    found = await observer(FakeCluster(), children=[old]).snapshot(DEMO, OPERATOR)
    assert found is not None
    assert (found.foreign, found.leftovers) == ((), ("Service",))
    assert "Service" not in found.children


async def test_spec_is_parsed_once_per_generation() -> None:
    watching = observer(FakeCluster())
    first, second = [await watching.snapshot(DEMO, OPERATOR) for _ in range(2)]
    assert first is not None
    assert second is not None
    assert first.spec is second.spec


async def test_memory_is_lost_with_the_service() -> None:
    watching = observer(FakeCluster())
    published = snapshot().published
    watching.memory.of(service()).published = published
    watching.memory.forget(DEMO)
    assert watching.memory.of(service()).published is None
    other = replace(service(), uid="another")
    assert watching.memory.of(other).uid == "another"


def test_own_write_is_seen_until_the_watch_has_caught_up() -> None:
    writes: OwnWrites[Any] = OwnWrites()
    old, new = (replace(service(), resource_version=version) for version in (10, 11))
    writes.note(DEMO, new)
    assert writes.latest(DEMO, None) is new
    assert writes.latest(DEMO, old) is new
    assert writes.latest(DEMO, replace(new)) == new
    assert writes.latest(DEMO, None) is None
    writes.note(DEMO, new)
    writes.forget(DEMO)
    assert writes.latest(DEMO, old) is old


def test_unreadable_status_is_as_good_as_none() -> None:
    metadata = {
        "namespace": "n",
        "name": "x",
        "uid": "u",
        "generation": 1,
        "resourceVersion": "1",
    }
    record = service_record({"metadata": metadata, "spec": spec(), "status": {"replicas": "many"}})
    assert record.status.replicas is None


# --- sidecars

STATUS = {"policy": {"stamp": "3.2.1", "mode": "Act"}, "engines": [{"state": "Active"}]}
STOCK = {**STATUS, "engines": [{"state": "Stock", "stockReason": "PipelineParallel"}]}


def test_poll_tells_policy_and_engine() -> None:
    sidecars = Sidecars()
    assert sidecars.polled("p", STATUS)
    assert not sidecars.polled("p", STATUS)
    assert sidecars.report("p") == SidecarReport(Stamp(3, 2, 1), held=HeldPoint(), asked=True)
    assert sidecars.polled("p", STOCK)
    assert sidecars.report("p").stock_reason == "PipelineParallel"


def test_any_answer_is_survived() -> None:
    nested = {"policy": {"stamp": []}, "engines": [1, None]}
    for answer in ({}, {"policy": 1, "engines": 2}, nested):
        sidecars = Sidecars()
        sidecars.polled("p", answer)
        found = sidecars.report("p")
        assert replace(found, held=None) == SidecarReport(asked=True)
        assert found.held in (None, HeldPoint())


def test_a_pod_tells_what_it_was_tuned_to() -> None:
    policy = {
        "stamp": "3.2.1",
        "thetaPpm": 0,
        "tokenBudget": 256,
        "maxBatchSize": None,
        "classLimits": {"batch": 4, "odd": "many", "none": None},
    }
    sidecars = Sidecars()
    sidecars.polled("p", {"policy": policy})
    held = HeldPoint(theta_ppm=0, token_budget=256, class_limits=(("batch", 4),))
    assert sidecars.report("p").held == held
    for odd in (0, -1, True, 1.5, "256", 2**60, [256]):
        sidecars.polled("p", {"policy": {**policy, "tokenBudget": odd, "classLimits": odd}})
        assert sidecars.report("p").held == HeldPoint(theta_ppm=0)


def test_a_pod_that_does_not_answer_was_asked_all_the_same() -> None:
    sidecars = Sidecars()
    assert not sidecars.report("p").asked
    assert sidecars.silent("p")
    assert not sidecars.silent("p")
    assert sidecars.report("p") == SidecarReport(asked=True)


def test_stamp_is_read_strictly() -> None:
    assert parse_stamp("1.2.3") == Stamp(1, 2, 3)
    for text in ("1.2", "1.2.3.4", "a.b.c", "-1.2.3", "1.2.٣", "1.2.", None, 7, "9" * 70 + ".1.1"):
        assert parse_stamp(text) is None


def test_refusal_is_kept_until_the_policy_is_there() -> None:
    sidecars = Sidecars()
    sidecars.pushed("p", Outcome.UNREACHABLE, None)
    assert sidecars.report("p").refusal is Outcome.UNREACHABLE
    sidecars.pushed("p", Outcome.APPLIED, Stamp(1, 1, 1))
    assert sidecars.report("p") == SidecarReport(Stamp(1, 1, 1))
    sidecars.keep_only(["other"])
    assert sidecars.report("p") == SidecarReport()


async def test_thousands_of_sidecars_take_turns_and_new_ones_do_not_wait() -> None:
    asked: list[str] = []

    class Client(SidecarClient):
        async def status(self, pod: PodRecord) -> dict[str, Any] | None:
            asked.append(pod.uid)
            return None

    many = [replace(loading_pod(f"demo-{n}"), uid=f"uid-{n}") for n in range(3 * POLLS_A_TICK)]
    poller = Poller(Client(), Sidecars(), lambda _: None)
    cluster = watched(*many)
    await poller.poll_due(cluster, 0.0)
    assert len(asked) == len(many)
    for tick in range(3):
        asked.clear()
        await poller.poll_due(cluster, POLL_SECONDS + tick)
        assert len(asked) == POLLS_A_TICK
    assert asked[0] == f"uid-{2 * POLLS_A_TICK}"


async def test_every_sidecar_is_polled_twice_a_minute() -> None:
    news: list[ServiceKey] = []
    async with FakeSidecar(STATUS) as sidecar:
        client = SidecarClient(sidecar.port)
        poller = Poller(client, Sidecars(), news.append)
        cluster = watched(replace(loading_pod(), ip="127.0.0.1"), pod("demo-2"))
        await poller.poll_due(cluster, 0.0)
        sidecar.answer = STOCK
        await poller.poll_due(cluster, POLL_SECONDS - 1)
        assert news == [DEMO]
        await poller.poll_due(cluster, POLL_SECONDS)
        assert news == [DEMO, DEMO]
        await client.close()


# --- the store


class Exists:
    def __init__(self, *uids: str) -> None:
        self.uids = set(uids)

    async def list_uids(self) -> set[str]:
        return self.uids


def test_a_pod_is_seen_although_its_node_does_not_tell_since_when_it_runs() -> None:
    metadata = {"namespace": "team", "name": "demo-1", "uid": "u", "resourceVersion": "1"}
    state = {"running": {"startedAt": None}}
    status = {"containerStatuses": [{"name": "engine", "state": state}]}
    record = pod_record({"metadata": metadata, "status": status})
    assert record.containers["engine"].running_since == 0.0


def test_store_follows_its_objects() -> None:
    cluster = watched(pod("demo-1"), pod("demo-2"))
    cluster.pods.put(DEMO, replace(pod("demo-1"), resource_version=31))
    assert sorted(each.resource_version for each in cluster.pods[DEMO]) == [30, 31]
    assert cluster.drop("uid-of-demo-1") == DEMO
    assert cluster.drop("uid-of-demo-1") is None
    assert cluster.drop("uid-of-demo-2") == DEMO
    assert DEMO not in cluster.pods
    assert len(cluster.pods) == 0


async def test_deletion_that_the_watch_missed_is_noticed() -> None:
    missed: list[ServiceKey] = []
    cluster = watched(pod("demo-1"), pod("demo-2"))
    exists = Exists(service().uid, "uid-of-demo-2")
    await Relist(cluster, exists, missed.append).compare()
    assert missed == [DEMO]
    assert [each.name for each in cluster.pods[DEMO]] == ["demo-2"]


async def test_cluster_is_known_when_all_that_existed_at_the_start_is() -> None:
    cluster = watched(pod("demo-1"))
    exists = Exists(*cluster.uids(), "uid-of-demo-2", "soon-gone")
    relist = Relist(cluster, exists, lambda _: None)
    assert not relist.complete
    await relist.compare()
    assert not relist.complete
    exists.uids = {*cluster.uids(), "uid-of-demo-2", "new"}
    await relist.compare()
    assert not relist.complete
    cluster.pods.put(DEMO, pod("demo-2"))
    await relist.compare()
    assert relist.complete
    exists.uids |= {"newer"}
    await relist.compare()
    assert relist.complete


async def test_it_is_counted_how_often_what_existed_at_the_start_was_waited_for_in_vain() -> None:
    cluster = watched(pod("demo-1"))
    exists = Exists(*cluster.uids(), "uid-of-demo-2", "uid-of-demo-3")
    relist = Relist(cluster, exists, lambda _: None)
    for count in (0, 1, 2):
        await relist.compare()
        assert relist.in_vain == count
    cluster.pods.put(DEMO, pod("demo-2"))  # others take their time
    for count in (0, 1):
        await relist.compare()
        assert relist.in_vain == count
    cluster.pods.put(DEMO, pod("demo-3"))
    for _ in range(3):
        await relist.compare()
        assert relist.in_vain == 0


async def test_watch_that_shows_nothing_any_more_is_noticed() -> None:
    cluster = watched(pod("demo-1"))
    exists = Exists(*cluster.uids())
    relist = Relist(cluster, exists, lambda _: None)
    await relist.compare()
    exists.uids |= {"uid-of-demo-2"}
    await relist.compare()
    assert relist.overlooked == 0
    exists.uids |= {"uid-of-demo-3"}
    await relist.compare()
    assert relist.overlooked == 1
    cluster.pods.put(DEMO, pod("demo-2"))
    cluster.pods.put(DEMO, pod("demo-3"))
    await relist.compare()
    assert relist.overlooked == 0


async def test_what_a_watch_that_begins_anew_does_not_show_yet_is_not_held_against_it() -> None:
    cluster = watched(pod("demo-1"))
    exists = Exists(*cluster.uids())
    relist = Relist(cluster, exists, lambda _: None)
    await relist.compare()
    exists.uids |= {"uid-of-demo-2"}
    await relist.compare()
    await relist.drop_missed()
    assert relist.overlooked == 0


def test_newest_service_of_a_name_counts() -> None:
    newer = replace(service(uid="other"), resource_version=99)
    assert watched(services=[newer, service()]).service(DEMO) == newer
