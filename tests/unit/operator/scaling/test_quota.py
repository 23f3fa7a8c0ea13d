"""Services that share GPUs, tick after tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway_operator.api import ConditionType
from headway_operator.decide import decide
from headway_operator.decide.notices import decide_scaling_notices
from headway_operator.decide.scaling import claim_of, decide_scaling, quota
from headway_operator.decide.scaling.sharing import divide
from headway_operator.memory.claims import Claims, GpuClaim
from headway_operator.memory.scaling import Scaling
from headway_operator.observe.engine_metrics.sample import ServiceMetrics
from headway_operator.observe.instant import Instant
from headway_operator.observe.records import ServiceKey
from headway_operator.render.resources import gpus_of
from headway_operator.snapshot import Snapshot
from tests.unit.operator.samples import later, service, snapshot, spec
from tests.unit.operator.scaling.test_scaling import (
    CLASSES,
    OPERATOR_EPOCH,
    TICK_SECONDS,
    Told,
    many,
    metrics_of,
)

ROOM = 0.6
"""Of an engine, by what pods tell here."""


PODS = many(20)


def declared(gpus: int = 1, **scaling: Any) -> dict[str, Any]:
    wanted = {"mode": "Operator", "minReplicas": 1, "maxReplicas": 20, "stabilizationSeconds": 20}
    engine = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}, "tensorParallelSize": gpus}
    return spec(scaling={**wanted, "forecastSeconds": 0, **scaling}, classes=CLASSES, engine=engine)


class Cluster:
    """Services whose pods are there as soon as they are decided on, looked at one by one."""

    def __init__(self, gpus: int, **services: Mapping[str, Any]) -> None:
        self.gpus = gpus
        self.claims = Claims()
        self.ticks = 0
        self.seen: dict[str, Snapshot] = {}
        self.scaling: dict[str, Scaling | None] = {}
        self.events: list[tuple[str, str]] = []
        self.used: list[int] = []
        self.bases = {
            name: snapshot(replace(service(fields), key=ServiceKey("team", name)))
            for name, fields in services.items()
        }

    @property
    def now(self) -> Instant:
        return later(self.ticks * TICK_SECONDS)

    def look_at(self, name: str, pods: float | None) -> GpuClaim | None:
        """A service brings work for so many pods; None: it has no news."""
        base, known = self.bases[name], self.scaling.get(name)
        there = PODS[: known.replicas if known else 1]
        quota = self.claims.quota(self.gpus, base.service.key, len(self.bases), OPERATOR_EPOCH)
        metrics = ServiceMetrics()
        if pods is not None:
            load = ROOM * (pods - 0.5)
            metrics = metrics_of(self.ticks, self.now.unix, there, load, Told())
        seen = replace(base, pods=tuple(there), metrics=metrics, scaling=known, quota=quota)
        assert seen.spec is not None
        scaled = decide_scaling(seen, seen.spec, self.now)
        claim = claim_of(base.service.key, seen.spec, scaled)
        self.claims.put(base.service.key, claim, self.gpus, OPERATOR_EPOCH)
        self.seen[name], self.scaling[name] = seen, scaled.memory
        self.events += [(each.reason, each.message) for each in decide_scaling_notices(scaled)]
        return claim

    def tick(self, **pods: float | None) -> dict[str, int]:
        """Each brings work for so many pods, or has no news."""
        self.ticks += 1
        for name, needed in pods.items():
            self.look_at(name, needed)
            self.used.append(self.gpus_used())
        return {name: self.replicas(name) for name in pods}

    def replicas(self, name: str) -> int:
        scaling = self.scaling[name]
        assert scaling is not None
        return scaling.replicas

    def gpus_used(self) -> int:
        """Of those whose number the operator decides on."""
        specs = {name: base.spec for name, base in self.bases.items()}
        running = ((specs[name], known) for name, known in self.scaling.items())
        return sum(
            gpus_of(fields.engine) * known.replicas for fields, known in running if fields and known
        )

    def limited(self, name: str) -> tuple[str, str, str]:
        """The condition, by what was seen last."""
        conditions = decide(self.seen[name], self.now).status.conditions
        (found,) = (each for each in conditions if each.type == ConditionType.SCALING_LIMITED)
        return found.status, found.reason, found.message


def test_without_a_quota_everybody_gets_what_it_needs() -> None:
    made = snapshot(service(declared()), *many(1))
    assert made.quota is None
    assert decide(made, later(0)).claim == GpuClaim(made.service.key, 1, 1, 1, 1)


def test_who_needs_more_than_there_is_is_told_by_numbers() -> None:
    cluster = Cluster(3, chat=declared(gpus=1), other=declared())
    for _ in range(5):
        found = cluster.tick(chat=4, other=1)
    assert found == {"chat": 2, "other": 1}
    text = (
        "More pods are needed than the 2 that run: it gets 2 of the 3 GPUs that services may use "
        "together (gpuQuota), the others have 1"
    )
    assert cluster.limited("chat") == ("True", "GpuQuota", text)
    assert cluster.limited("other")[:2] == ("False", "WithinBounds")


def test_pods_that_are_added_as_far_as_they_may_are_one_event() -> None:
    cluster = Cluster(3, chat=declared())
    for _ in range(8):
        cluster.tick(chat=5)
    ((reason, message),) = cluster.events
    assert reason == "ScaledUp"
    assert message.startswith("Replicas 1 -> 3: More work")
    assert message.endswith(
        "it gets 3 of the 3 GPUs that services may use together (gpuQuota), the others have 0"
    )


def test_a_higher_priority_takes_pods_of_a_lower_one_down_to_its_least() -> None:
    cluster = Cluster(6, low=declared(minReplicas=2), high=declared(priority=5))
    for _ in range(8):
        cluster.tick(low=8, high=1)
    assert [cluster.replicas(name) for name in ("low", "high")] == [5, 1]
    for _ in range(10):
        cluster.tick(low=8, high=9)
    assert [cluster.replicas(name) for name in ("low", "high")] == [2, 4]
    assert max(cluster.used) == 6
    assert cluster.limited("low")[1] == cluster.limited("high")[1] == "GpuQuota"


def test_what_a_service_gives_back_goes_to_who_was_limited() -> None:
    cluster = Cluster(6, one=declared(), other=declared())
    for _ in range(8):
        cluster.tick(one=6, other=6)
    assert [cluster.replicas(name) for name in ("one", "other")] == [3, 3]
    for _ in range(30):
        cluster.tick(one=6, other=1)
    assert [cluster.replicas(name) for name in ("one", "other")] == [5, 1]
    assert cluster.limited("one")[1] == "GpuQuota"


def test_without_news_what_was_needed_is_still_needed_and_nobody_loses_a_pod() -> None:
    cluster = Cluster(6, one=declared(), other=declared())
    for _ in range(8):
        cluster.tick(one=6, other=6)
    for _ in range(5):
        assert cluster.tick(one=None, other=6) == {"one": 3, "other": 3}
        assert cluster.limited("one")[:2] == ("True", "GpuQuota")


def test_a_moment_in_which_less_is_needed_changes_nothing() -> None:
    cluster = Cluster(6, one=declared(), other=declared())
    for _ in range(8):
        cluster.tick(one=6, other=6)
    for _ in range(3):  # pods are kept for 20 s
        assert cluster.tick(one=2, other=6) == {"one": 3, "other": 3}
        assert cluster.limited("one")[:2] == ("True", "GpuQuota")


def test_nobody_gets_more_before_all_others_have_told() -> None:
    cluster = Cluster(8, one=declared(), silent=declared())
    for _ in range(6):
        assert cluster.tick(one=4) == {"one": 1}
    cluster.tick(silent=3)
    assert cluster.tick(one=4) == {"one": 4}


def test_pods_that_others_decide_on_count_and_are_not_touched() -> None:
    cluster = Cluster(6, ours=declared(), theirs=spec(replicas=4, engine=declared()["engine"]))
    for _ in range(8):
        claim = cluster.look_at("theirs", None)
        assert claim is not None
        assert (claim.least, claim.wanted, claim.running) == (4, 4, 4)
        cluster.tick(ours=5)
    assert cluster.replicas("ours") == 2


def test_services_without_gpus_are_not_limited() -> None:
    fields = declared()
    del fields["engine"]["resources"]
    cluster = Cluster(0, chat={**fields, "engine": {**fields["engine"], "tensorParallelSize": 1}})
    for _ in range(5):
        cluster.tick(chat=3)
    assert cluster.replicas("chat") == 3
    assert cluster.look_at("chat", 3) is None


def test_gpus_are_divided_once_while_nobody_claims_anything_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    divided: list[int] = []

    def counting(gpus: int, claims: Sequence[GpuClaim]) -> dict[ServiceKey, int]:
        divided.append(gpus)
        return divide(gpus, claims)

    monkeypatch.setattr(quota, "divide", counting)
    names = [f"s{number}" for number in range(8)]
    cluster = Cluster(12, **{name: declared() for name in names})
    for _ in range(12):
        found = cluster.tick(**dict.fromkeys(names, 3.0))
    assert sum(found.values()) == 12
    divided.clear()
    for _ in range(5):
        assert cluster.tick(**dict.fromkeys(names, 3.0)) == found
    assert len(divided) <= 1
    cluster.tick(**dict.fromkeys(names, 4.0))
    assert len(divided) <= 1 + 2 * len(names)  # once for each that claims more, once for the others


def test_what_was_divided_for_others_claims_is_not_taken_for_new_ones() -> None:
    claims, one, other = Claims(), ServiceKey("team", "a"), ServiceKey("team", "b")
    memo = claims.quota(8, one, 2, epoch=1).memo
    claims.put(one, GpuClaim(one, 1, 1, 3, 3), 8, epoch=1)
    known = claims.quota(8, one, 2, epoch=1)
    assert known.own in known.everybody
    assert claims.quota(8, other, 2, epoch=1).everybody is known.everybody
    claims.put(other, GpuClaim(other, 1, 1, 6, 1), 8, epoch=1)
    after = claims.quota(8, one, 2, epoch=1)
    assert {each.key for each in after.everybody} == {one, other}
    assert after.memo is known.memo is memo
    claims.drop(other)
    assert claims.quota(8, one, 2, epoch=1).everybody == known.everybody
    assert claims.quota(8, one, 2, epoch=2).everybody == ()


def test_claims_of_an_earlier_term_are_forgotten() -> None:
    claims, key = Claims(), ServiceKey("team", "a")
    claims.put(key, GpuClaim(key, 1, 1, 3, 3), 8, epoch=1)
    assert claims.quota(8, ServiceKey("team", "b"), 2, epoch=1).others
    anew = claims.quota(8, ServiceKey("team", "b"), 2, epoch=2)
    assert not anew.others
    assert not anew.is_complete


def test_it_is_news_for_others_only_where_there_is_not_enough_for_all() -> None:
    claims, key = Claims(), ServiceKey("team", "a")
    wanted = [claims.put(key, GpuClaim(key, 2, 1, pods, 1), 8, 1) for pods in (3, 4, 5, 5, 4, 3)]
    assert wanted == [False, False, True, False, True, False]


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)), min_size=4, max_size=40
    ),
    st.integers(4, 16),
)
@settings(max_examples=30, deadline=None)
def test_there_are_never_more_gpus_in_use_than_the_quota(
    needed: list[tuple[int, int, int]], gpus: int
) -> None:
    cluster = Cluster(gpus, a=declared(), b=declared(gpus=2), c=declared(priority=1, minReplicas=1))
    for a, b, c in needed:
        found = cluster.tick(a=a, b=b, c=c)
        assert min(found.values()) >= 1
    assert max(cluster.used) <= gpus


@given(st.lists(st.integers(-1, 1), min_size=20, max_size=40))
@settings(max_examples=20, deadline=None)
def test_equals_whose_needs_go_up_and_down_a_little_keep_their_pods(steps: list[int]) -> None:
    cluster = Cluster(8, one=declared(), other=declared())
    for _ in range(8):
        cluster.tick(one=7, other=7)
    assert [cluster.replicas(name) for name in ("one", "other")] == [4, 4]
    for step in steps:
        assert cluster.tick(one=7 + step, other=7 - step) == {"one": 4, "other": 4}
