"""What holds of the ladder whatever happens to a service, and in whatever order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headway_operator.api.degradation import Step
from headway_operator.api.status import TakenStep
from headway_operator.decide import Plan
from headway_operator.decide.degradation.ladder import DEFAULT_LADDER, RULES
from tests.unit.operator.degradation.world import (
    CALM,
    CLASSES,
    PRESSED,
    MakePod,
    World,
    found,
    heard,
    killed,
    loading_pod,
    pending,
    ready_pod,
)
from tests.unit.operator.samples import condition, spec

LADDER = [
    *(each.to_kubernetes() for each in DEFAULT_LADDER),
    {"step": "FallbackModel", "model": {"uri": "pvc://models/tinier"}},
]
PODS = st.sampled_from(
    (
        *(ready_pod, ready_pod, killed, pending, loading_pod),
        *(found("EngineOutOfMemory"), found("KVCacheTooSmall")),
    )
)
EVENTS = st.lists(
    st.tuples(
        st.lists(PODS, max_size=4),
        st.sampled_from([None, CALM, CALM, PRESSED, PRESSED]),
        st.integers(0, 1),
        st.sampled_from([5, 5, 40, 130, 700]),
        st.integers(1, 7),
    ),
    min_size=1,
    max_size=6,
)
"""Pods, what they tell, older pods that answer, seconds between looks, and looks in all."""

Happenings = list[tuple[list[MakePod], Any, int, int, int]]


def declared(**changes: Any) -> dict[str, Any]:
    return spec(replicas=3, classes=CLASSES, degradation=LADDER, **changes)


def states(happenings: Happenings) -> tuple[World, list[tuple[TakenStep, ...]], list[Plan]]:
    """A service to which all of that happens, and its steps before and after each look."""
    world = World(declared())
    seen, plans = [world.steps], []
    for makes, load, old, after_s, count in happenings:
        for _ in range(count):
            plans.append(world.look(*makes, load=load, old=old, after_s=after_s))
            seen.append(world.steps)
    return world, seen, plans


def names(steps: tuple[TakenStep, ...]) -> list[Step]:
    return [each.step for each in steps]


@settings(max_examples=30, deadline=None)
@given(EVENTS)
def test_one_step_at_a_time_each_with_a_reason_and_an_event(happenings: Happenings) -> None:
    _, seen, plans = states(happenings)
    for (before, after), plan in zip(pairwise(seen), plans, strict=True):
        changed = {each.step for each in {*before} ^ {*after}} if before != after else set()
        assert len(changed) <= 1
        entered, left = {*names(after)} - {*names(before)}, {*names(before)} - {*names(after)}
        told = [each.reason for each in heard([plan])]
        if entered or left:
            assert told == (["Degraded"] if entered else ["Recovered"])
        assert len(told) <= 1
        assert (condition(plan, "Degraded")[0] == "True") == bool(after)
        for step in after:
            assert step.reason
            assert step.reason in condition(plan, "Degraded")[2]


@settings(max_examples=30, deadline=None)
@given(EVENTS)
def test_the_order_of_the_ladder_is_kept(happenings: Happenings) -> None:
    _, seen, _ = states(happenings)
    order = [each.step for each in DEFAULT_LADDER] + [Step.FALLBACK_MODEL]
    for steps in seen:
        assert names(steps) == sorted(names(steps), key=order.index)
        if Step.LOWER_LIMITS in names(steps):
            assert Step.SHED_CLASSES in names(steps)


@settings(max_examples=30, deadline=None)
@given(EVENTS)
def test_some_pod_is_always_to_run(happenings: Happenings) -> None:
    world, seen, _ = states(happenings)
    for steps in seen:
        assert all(each.replicas is None or each.replicas >= 1 for each in steps)
    for plan in world.plans:
        for each in plan.applications:
            if each.kind == "Deployment":
                assert 1 <= each.body["spec"]["replicas"] <= 3


@settings(max_examples=30, deadline=None)
@given(EVENTS)
def test_engines_are_restarted_a_bounded_number_of_times(happenings: Happenings) -> None:
    world, seen, _ = states(happenings)
    templates = [
        each.body["spec"]["template"]["metadata"]["labels"]["headway.dev/template"]
        for plan in world.plans
        for each in plan.applications
        if each.kind == "Deployment"
    ]
    runs = [each for at, each in enumerate(templates) if at == 0 or each != templates[at - 1]]
    assert len(runs) == len(set(runs)) <= 5
    restarting = [tuple(each for each in steps if RULES[each.step].restarts) for steps in seen]
    for before, after in pairwise(restarting):
        assert {*names(before)} <= {*names(after)}


@settings(max_examples=20, deadline=None)
@given(EVENTS)
def test_another_operator_changes_nothing(happenings: Happenings) -> None:
    world, _, _ = states(happenings)
    makes, load, old, _, _ = happenings[-1]
    world.look(*makes, load=load, old=old)
    world.look(loading_pod, old=1, after_s=0)
    before = (world.steps, world.hash, world.deployment)
    world.restart_operator()
    # It knows nothing of what came before, and so takes no step on the strength of it.
    plan = world.look(loading_pod, old=1, after_s=0)
    assert {*names(before[0])} == {*names(world.steps)}
    assert (world.hash, world.deployment["replicas"]) == (before[1], before[2]["replicas"])
    assert heard([plan]) == []


@settings(max_examples=20, deadline=None)
@given(EVENTS)
def test_everything_can_be_taken_back(happenings: Happenings) -> None:
    world, _, _ = states(happenings)
    world.change(replicas=3, classes=CLASSES, degradation=LADDER, engine={"args": ["--dtype=half"]})
    world.looks(30, ready_pod, ready_pod, ready_pod, load=CALM, after_s=60)
    assert world.steps == ()
    assert world.deployment["replicas"] == 3
    plan = world.plans[-1]
    assert condition(plan, "Degraded")[:2] == ("False", "AsDeclared")
    assert plan.rung == 0


@settings(max_examples=20, deadline=None)
@given(EVENTS, PODS, st.sampled_from([None, CALM, PRESSED]))
def test_what_stays_as_it_is_leads_to_an_end(
    happenings: Happenings, make: MakePod, load: Any
) -> None:
    """Under a situation that lasts, steps come to rest; only trying for all pods goes on."""
    world, _, _ = states(happenings)
    world.looks(40, make, ready_pod, load=load, after_s=120)
    before = len(world.plans)
    world.looks(40, make, ready_pod, load=load, after_s=120)
    assert heard(world.plans[before:]) == []
