"""Which events are told, and how often."""

from __future__ import annotations

from dataclasses import replace

from headway_operator.decide import applied_notices, decide
from headway_operator.decide.plan import Plan
from tests.unit.operator.samples import (
    CRASHING,
    NOW,
    STALLING,
    carried_out,
    ended,
    pod,
    ready_pod,
    snapshot,
)


def reasons(plan: Plan) -> list[tuple[str, bool]]:
    return [(notice.reason, notice.warning) for notice in plan.notices]


def test_events_follow_a_service_through_its_life() -> None:
    start = snapshot(children={})
    plan = decide(start, NOW)
    assert reasons(plan) == []
    (told,) = applied_notices(plan.applications)
    assert (told.reason, told.warning) == ("Applied", False)
    broken = replace(carried_out(start, plan), pods=(CRASHING,))
    plan = decide(broken, NOW)
    assert reasons(plan) == [("EngineCrashed", True)]
    healed = replace(carried_out(broken, plan), pods=(ready_pod(),))
    plan = decide(healed, NOW)
    assert reasons(plan) == [("PodsReady", False)]
    plan = decide(carried_out(healed, plan), NOW)
    assert reasons(plan) == [("PolicyApplied", False)]


def test_that_a_crash_will_not_heal_is_told_once_and_after_the_crash_itself() -> None:
    first = snapshot(None, CRASHING)
    plan = decide(first, NOW)
    assert ("EngineCrashed", True) in reasons(plan)
    again = replace(carried_out(first, plan), pods=(pod(engine=ended("Error", 1, restartCount=3)),))
    plan = decide(again, NOW)
    assert reasons(plan) == [("Stalled", True)]
    assert plan.notices[0].message.startswith("EngineCrashed: The engine exited with code 1")
    assert reasons(decide(carried_out(again, plan), NOW)) == []


def test_what_stalls_from_the_first_moment_is_one_event() -> None:
    plan = decide(snapshot(None, STALLING), NOW)
    assert [each for each in reasons(plan) if each[1]] == [("InvalidImageName", True)]
