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
        # What replaced pods is tried without, and left, together.
        assert len(changed) <= 1 or all(RULES[each].restarts for each in changed)
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
    restarting = [tuple(each for each in steps if RULES[each.step].restarts) for steps in seen]
    serves = [
        old > 0 or ready_pod in makes
        for makes, _, old, _, count in happenings
        for _ in range(count)
    ]
    tries = 0
    for (before, after), served in zip(pairwise(restarting), serves, strict=True):
        is_left = {*names(before)} - {*names(after)}
        assert not is_left or all(each.retrying for each in before)
        began = any(each.retrying for each in {*after} - {*before})
        # Where somebody serves, what is declared comes back only if less of it has no room.
        assert not (began and served) or after[0].least_memory_percent == 100
        tries += began
    # The declared one, three times less, as often one back, the fallback model; and what a try
    # goes through: the declared one, less, and the fallback model.
    assert len(runs) <= 8 + 3 * tries


@settings(max_examples=5, deadline=None)
@given(EVENTS, PODS)
def test_tries_where_nobody_serves_become_rare(happenings: Happenings, make: MakePod) -> None:
    world, _, _ = states(happenings)
    world.looks(72, make, after_s=300)
    began = 0
    for _ in range(72):
        before = world.steps
        world.look(make, after_s=300)
        began += any(each.retrying for each in {*world.steps} - {*before})
    assert began <= 7


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
