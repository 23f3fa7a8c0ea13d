"""Decisions on the number of pods, tick after tick."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway_operator.api import ConditionType
from headway_operator.decide import decide
from headway_operator.decide.notices import decide_scaling_notices
from headway_operator.decide.plan import Plan
from headway_operator.decide.scaling import decide_scaling
from headway_operator.decide.scaling.missed import TICKS_TO_ADD, TICKS_TO_SETTLE
from headway_operator.decide.scaling.replicas import TICKS_TO_RISE
from headway_operator.memory.scaling import LoadPoint, Scaling
from headway_operator.observe.engine_metrics.sample import (
    ClassSample,
    EngineSample,
    ServiceMetrics,
    Source,
)
from headway_operator.observe.records import PodRecord
from headway_operator.snapshot import Snapshot
from tests.unit.operator.samples import (
    NOW,
    condition,
    later,
    pod,
    ready_pod,
    service,
    settled,
    snapshot,
    spec,
)

TICK_SECONDS = 5
OPERATOR_EPOCH = 7
OPERATOR = {"mode": "Operator", "minReplicas": 1, "maxReplicas": 20, "stabilizationSeconds": 60}
CLASSES = [{"name": "chat", "ttftMilliseconds": 1000}]


def fields(**changes: Any) -> dict[str, Any]:
    return spec(scaling={**OPERATOR, **changes}, classes=CLASSES)


@dataclass(frozen=True)
class Told:
    """What each pod tells beside its load: its steps' overhead, class chat's TTFT ratio."""

    overhead: float = 0.2
    ttft: float | None = 0.5
    silent: int = 0
    """The last so many pods tell nothing."""


def sample(at: float, load: float | None, told: Told) -> EngineSample:
    return EngineSample(
        at,
        *[0.0] * 12,
        token_load=load,
        step_overhead=None if load is None else told.overhead,
        classes={"chat": ClassSample(0.0, 0.0, ttft_ratio=told.ttft)},
    )


def metrics_of(
    collection: int, at: float, pods: Sequence[PodRecord], load: float | None, told: Told
) -> ServiceMetrics:
    """All pods together tell this load."""
    telling = [each for each in pods if each.ready][: len(pods) - told.silent]
    share = None if load is None else load / len(telling)
    samples = {each.uid: (sample(at, share, told),) for each in telling}
    return ServiceMetrics(collection, samples, Source.PROMETHEUS)


def many(count: int) -> list[PodRecord]:
    return [replace(ready_pod(), uid=f"pod-{n}", name=f"p-{n}") for n in range(count)]


class Service:
    """A service whose pods are there as soon as they are decided on."""

    def __init__(self, **scaling: Any) -> None:
        self.now = NOW
        self.ticks = 0
        self.scaling: Scaling | None = None
        self.events: list[str] = []
        self.wanted: int | None = None
        self.before = snapshot(service(fields(**scaling)))
        self.pods: list[PodRecord] = []

    @property
    def replicas(self) -> int:
        return self.scaling.replicas if self.scaling else 1

    def tick(
        self, load: float | None, *, metrics: ServiceMetrics | None = None, **told: Any
    ) -> int:
        """A tick in which all pods together tell this load."""
        self.ticks += 1
        self.now = later(self.ticks * TICK_SECONDS)
        pods = self.pods or many(self.replicas)
        if metrics is None:
            metrics = metrics_of(self.ticks, self.now.unix, pods, load, Told(**told))
        now = replace(self.before, pods=tuple(pods), metrics=metrics, scaling=self.scaling)
        assert now.spec is not None
        scaled = decide_scaling(now, now.spec, self.now)
        self.scaling, self.wanted = scaled.memory, scaled.wanted
        self.events += [each.message for each in decide_scaling_notices(scaled)]
        return self.replicas

    def ticks_of(self, loads: Iterable[float], **more: Any) -> list[int]:
        return [self.tick(each, **more) for each in loads]


def limited(plan: Plan) -> tuple[str, str]:
    (found,) = (
        each for each in plan.status.conditions if each.type == ConditionType.SCALING_LIMITED
    )
    return found.status, found.reason


def replicas_of(plan_of: Snapshot) -> int:
    plan = decide(plan_of, NOW)
    (deployment,) = (each.body for each in plan.applications if each.kind == "Deployment")
    replicas: int = deployment["spec"]["replicas"]
    return replicas


def test_in_mode_external_the_spec_decides() -> None:
    made = snapshot(service(spec(replicas=3)), children={})
    assert replicas_of(made) == 3
    plan = decide(made, NOW)
    assert plan.scaling is None
    assert limited(plan) == ("False", "External")


def test_in_mode_operator_a_service_begins_with_the_least() -> None:
    assert replicas_of(snapshot(service(fields(minReplicas=2)), children={})) == 2


def test_work_for_two_gets_two_and_says_why() -> None:
    chat = Service()
    assert chat.ticks_of([1.0] * 6) == [1, 1, 1, 2, 2, 2]
    (told,) = chat.events
    assert told == (
        "Replicas 1 -> 2: More work: requests bring 1.00 engine-seconds of work a second, and an "
        "engine has room for 0.60"
    )
    assert chat.wanted == 2


def test_one_tick_is_chance() -> None:
    assert Service().ticks_of([0.5, 5.0, 0.5, 5.0, 0.5]) == [1] * 5


def test_load_that_grows_is_met_before_it_is_there() -> None:
    chat = Service()
    # 0.6 is what one engine has room for.
    found = chat.ticks_of([0.1 + 0.02 * tick for tick in range(20)])
    assert found[-1] == 2
    assert "soon if it goes on growing" in chat.events[0]


def test_pods_go_when_they_were_not_needed_for_a_while() -> None:
    chat = Service()
    chat.ticks_of([2.0] * 4)
    assert chat.replicas == 4
    fell = chat.ticks_of([0.2] * 60)
    # 60 s are 12 ticks, and the load of four is seen for 4 more.
    assert fell[:10] == [4] * 10
    assert fell[-1] == 1
    assert chat.events[1].startswith("Replicas 4 -> 3: No more needed for 60 s: ")


def test_pods_go_one_after_the_other_or_a_quarter_at_once() -> None:
    chat = Service(stabilizationSeconds=0, forecastSeconds=60)
    chat.ticks_of([5.0] * 4)
    assert chat.replicas == 9
    # 60 s are 12 ticks; seven is a quarter less than nine.
    fell = chat.ticks_of([0.1] * 72)
    assert fell[:61:12] == [7, 6, 5, 4, 3, 2]
    assert fell[-1] == 2
    assert [*dict.fromkeys(fell)] == [7, 6, 5, 4, 3, 2]


def test_growth_that_did_not_go_on_keeps_no_pods() -> None:
    chat = Service(stabilizationSeconds=60)
    # Up to 1.0 within a minute, and there it stays: two pods do, with caution.
    chat.ticks_of([0.3 + 0.7 * tick / 12 for tick in range(13)])
    assert chat.replicas > 2
    # The growth is seen for two minutes, and what was needed since for one.
    assert chat.ticks_of([1.0] * 24)[-1] == 2


def test_pods_stay_that_growing_load_will_need() -> None:
    chat = Service()
    ramp = tuple(LoadPoint(NOW.unix - 55 + 5 * tick, 0.1 + 0.03 * tick) for tick in range(12))
    chat.scaling = Scaling(3, NOW.unix - 1000, OPERATOR_EPOCH, loads=ramp)
    # One pod is enough for 0.46, and 0.82 in a minute takes two.
    assert chat.tick(0.46) == 2


def test_load_that_swings_around_a_boundary_does_not_flap() -> None:
    chat = Service()
    chat.ticks_of([0.55, 0.65] * 50)
    assert len(chat.events) <= 1


def test_pods_that_load_are_counted() -> None:
    chat = Service()
    chat.ticks_of([2.0] * 2)
    assert chat.replicas == 4
    loading = [replace(pod(ready=False), uid=f"new-{n}", name=f"n-{n}") for n in range(3)]
    old = replace(ready_pod(), uid="pod-0", name="p-0")
    chat.pods = [old, *loading]
    # The one that is ready has all of the work.
    assert chat.ticks_of([2.0] * 30) == [4] * 30


def test_without_metrics_all_pods_stay() -> None:
    chat = Service(minReplicas=1)
    chat.ticks_of([2.0] * 30)
    before = chat.replicas
    silent = ServiceMetrics(99)
    for _ in range(60):
        assert chat.tick(None, metrics=silent) == before
    # Nor is what is told too little when some pods tell nothing.
    assert chat.ticks_of([0.1] * 60, silent=1) == [before] * 60


def test_pods_that_drain_and_tell_nothing_keep_no_others() -> None:
    chat = Service()
    chat.ticks_of([2.0] * 4)
    draining = [
        replace(each, uid=f"old-{each.uid}", name=f"old-{each.name}", deleting=True)
        for each in many(2)
    ]
    for _ in range(20):
        told = metrics_of(chat.ticks + 1, later(chat.ticks * 5 + 5).unix, many(4), 0.2, Told())
        chat.pods = [*many(chat.replicas), *draining]
        chat.tick(None, metrics=told)
    assert chat.replicas < 4


def test_the_same_collection_is_decided_about_once() -> None:
    chat = Service()
    chat.tick(5.0)
    again = metrics_of(1, NOW.unix, many(1), 5.0, Told())
    assert chat.tick(None, metrics=again) == 1


def test_an_operator_that_starts_anew_takes_over_what_runs_and_removes_nothing_at_once() -> None:
    made = settled(snapshot(service(fields(minReplicas=4))))
    deployment = made.children["Deployment"]
    assert deployment.rollout is not None
    assert deployment.rollout.wanted == 4
    chat = Service(stabilizationSeconds=60)
    chat.before = made
    assert chat.ticks_of([0.1] * 11) == [4] * 11


def test_a_pod_that_had_nothing_to_do_yet_is_no_reason_to_wait() -> None:
    chat = Service()
    chat.ticks_of([2.0] * 2)
    assert chat.replicas == 4
    for _ in range(30):
        chat.ticks += 1
        told = metrics_of(chat.ticks, later(chat.ticks * 5).unix, many(4), 0.4, Told())
        fresh = replace(told.pods["pod-3"][-1], token_load=0.0, step_overhead=None)
        chat.ticks -= 1
        chat.tick(None, metrics=replace(told, pods={**told.pods, "pod-3": (fresh,)}))
    assert chat.replicas < 4


def test_another_term_forgets() -> None:
    chat = Service()
    chat.ticks_of([2.0] * 2)
    chat.before = replace(chat.before, operator=replace(chat.before.operator, epoch=8))
    assert chat.scaling is not None
    assert chat.tick(2.0) == 1  # as the Deployment says
    assert chat.scaling.epoch == 8


@pytest.mark.parametrize(("bounds", "replicas"), [((3, 9), 3), ((1, 2), 2)])
def test_bounds_are_kept_at_once_also_without_metrics(
    bounds: tuple[int, int], replicas: int
) -> None:
    chat = Service()
    chat.ticks_of([1.4] * 2 if bounds[1] < 3 else [0.1] * 2)
    chat.before = snapshot(service(fields(minReplicas=bounds[0], maxReplicas=bounds[1])))
    assert chat.tick(None, metrics=ServiceMetrics(99)) == replicas


def test_more_than_allowed_is_told() -> None:
    allowed = snapshot(service(fields(maxReplicas=2)), *many(1))
    made = replace(allowed, scaling=Scaling(1, NOW.unix, OPERATOR_EPOCH, rising=TICKS_TO_RISE - 1))
    for load, found in ((5.0, ("True", "AtMaxReplicas")), (1.0, ("False", "WithinBounds"))):
        told = metrics_of(1, NOW.unix, many(1), load, Told())
        plan = decide(replace(made, metrics=told), NOW)
        assert limited(plan) == found
        assert [each.reason for each in plan.notices if each.reason.startswith("Scaled")] == [
            "ScaledUp"
        ]
        assert ("AtMaxReplicas" in [each.reason for each in plan.notices]) == (load > 1)
        assert plan.scaling is not None
        assert plan.scaling.replicas == 2


def test_pods_that_are_added_for_load_and_cannot_start_are_told_and_take_no_readiness() -> None:
    pending = pod(
        "demo-2",
        scheduled=(
            "False",
            "Unschedulable",
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
        ),
    )
    made = snapshot(service(fields()), *many(1), pending)
    told = metrics_of(1, NOW.unix, many(1), 1.0, Told())
    scaling = Scaling(2, NOW.unix, OPERATOR_EPOCH)
    plan = decide(replace(made, metrics=told, scaling=scaling), NOW)
    assert limited(plan) == ("True", "InsufficientGPU")
    assert condition(plan, "Ready")[:2] == ("True", "PodsReady")
    assert condition(plan, "Ready")[2] == "1 of 2 pods answer requests"
    assert condition(plan, "ModelLoaded")[0] == "True"
    assert condition(plan, "Progressing")[0] == "True"


def test_objectives_that_are_missed_by_full_engines_get_another_pod_and_it_gets_time() -> None:
    chat = Service()
    found = chat.ticks_of([0.5] * (TICKS_TO_ADD + TICKS_TO_SETTLE), ttft=1.4)
    assert found == [1] * (TICKS_TO_ADD - 1) + [2] * (TICKS_TO_SETTLE + 1)
    assert chat.events[0].startswith("Replicas 1 -> 2: Objectives are missed although")
    # What was learnt keeps the pod when objectives are kept again.
    assert chat.ticks_of([0.5] * 40) == [2] * 40
    assert chat.ticks_of([0.1] * 40)[-1] == 1


def test_what_waited_for_a_burst_that_is_over_is_held_against_the_burst() -> None:
    chat = Service()
    chat.ticks_of([0.58] * 2)
    assert chat.ticks_of([0.31] * 4, ttft=1.4)[-1] == 2
    assert chat.scaling is not None
    # 0.58 were too much for one pod with room for 0.6: that is no reason to count 0.31 twice.
    assert chat.scaling.correction < 1.05


def test_pods_that_work_off_a_burst_do_not_speak_for_those_that_came_for_it() -> None:
    chat = Service()
    chat.ticks_of([3.0] * 2)
    assert chat.ticks_of([2.0] * 7)[-1] == 5
    for _ in range(TICKS_TO_ADD):
        at = later((chat.ticks + 1) * TICK_SECONDS).unix
        told = metrics_of(chat.ticks + 1, at, many(5), 2.0, Told())
        late = {uid: (sample(at, 0.4, Told(ttft=9.0)),) for uid in ("pod-0", "pod-1")}
        chat.tick(None, metrics=replace(told, pods={**told.pods, **late}))
    # They do get a pod, but 2.0 does not count as the 3.0 that five have room for.
    assert chat.replicas == 6
    assert chat.scaling is not None
    assert chat.scaling.correction == 1.0


def test_idle_engines_that_miss_objectives_get_no_help_from_more() -> None:
    assert Service().ticks_of([0.1] * 40, ttft=3.0) == [1] * 40


def test_engines_that_cannot_tell_leave_everything_as_it_is() -> None:
    assert Service(minReplicas=2).ticks_of([None] * 5) == [2] * 5  # type: ignore[list-item]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1), st.booleans()), min_size=1, max_size=60),
    st.integers(1, 5),
    st.integers(0, 15),
)
def test_whatever_is_told_pods_are_within_bounds_and_each_change_is_told(
    told: list[tuple[float, float, bool]], least: int, more: int
) -> None:
    chat = Service(minReplicas=least, maxReplicas=least + more)
    before = None
    for load, overhead, missed in told:
        events = len(chat.events)
        after = chat.tick(load, overhead=overhead, ttft=2.0 if missed else 0.5)
        assert least <= after <= least + more
        if before is not None:
            assert (after != before) == (len(chat.events) > events)
        before = after


def test_a_service_without_a_readable_spec_forgets_nothing() -> None:
    chat = Service()
    chat.ticks_of([2.0] * 2)
    broken = replace(chat.before, spec=None, spec_problem="no", scaling=chat.scaling)
    assert decide(broken, chat.now).scaling == chat.scaling
