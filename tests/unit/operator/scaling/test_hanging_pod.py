"""A pod that neither gets ready nor ends, after its Deployment was once complete."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway_operator.api.labels import ENGINE
from headway_operator.decide import decide
from headway_operator.observe.activators import ActivatorReport
from headway_operator.observe.records import PodRecord
from headway_operator.observe.trimming import pod_record
from tests.unit.operator.samples import (
    NOW,
    condition,
    ended,
    later,
    loading_pod,
    pod,
    pod_body,
    ready_pod,
    running,
    snapshot,
)
from tests.unit.operator.scaling.zero_world import SLOW, START_SECONDS, TICK_SECONDS, World, asleep


def unready_for(seconds: float, name: str = "demo-1") -> PodRecord:
    return replace(loading_pod(name), unready_since=NOW.unix - seconds)


def woken(unready: PodRecord | None = None) -> World:
    """A service that was at zero, for which somebody waits, and whose pod hangs."""
    world = asleep(SLOW)
    began = world.now

    def hanging(name: str, *, template: str) -> PodRecord:
        hung = unready or loading_pod(name)
        return replace(hung, name=name, template=template, unready_since=began)

    world.starts, world.unready = 10**9, hanging
    world.report = ActivatorReport(1, 0, world.now)
    world.events.clear()
    return world


def test_a_woken_pod_that_hangs_is_told_once_with_the_remedy() -> None:
    world = woken()
    world.tick(START_SECONDS // TICK_SECONDS - 1)
    assert world.condition("Stalled")[0] == "False"
    assert world.condition("Ready") == ("False", "PodsStarting")
    world.tick(2)
    assert world.condition("Stalled") == ("True", "ProgressDeadlineExceeded")
    assert world.condition("Progressing") == ("False", "ProgressDeadlineExceeded")
    world.tick(START_SECONDS // TICK_SECONDS)
    (told,) = world.told("ProgressDeadlineExceeded", "Stalled")
    assert told.startswith(f"Pod demo-0 has not got ready for {START_SECONDS} s")
    assert f"`kubectl logs demo-0 -c {ENGINE}` says what" in told
    assert "raise engine.startupTimeoutSeconds" in told
    assert "Delete a pod that hangs" in told
    assert world.replicas == 1  # somebody waits for it still


def test_one_that_gets_ready_after_all_is_not_stalled_any_more() -> None:
    world = woken()
    world.tick(2 * START_SECONDS // TICK_SECONDS)
    world.starts = 0
    world.tick()
    assert world.condition("Ready") == ("True", "PodsReady")
    assert world.condition("Stalled")[0] == "False"


def test_it_is_said_at_zero_too_and_forgotten_when_a_pod_is_tried_again() -> None:
    world = woken()
    world.tick()
    world.report = ActivatorReport(0, 0, world.now)
    for _ in range(2 * START_SECONDS // TICK_SECONDS):
        world.tick()
    assert world.replicas == 0
    assert world.condition("Stalled") == ("True", "ProgressDeadlineExceeded")
    assert world.condition("Ready") == ("False", "ProgressDeadlineExceeded")
    world.unready, world.report = loading_pod, ActivatorReport(1, 0, world.now)
    assert world.tick(2) == 1
    assert world.condition("Stalled")[0] == "False"


def test_what_is_known_to_be_wrong_is_told_rather_than_the_time() -> None:
    world = woken(pod(engine=ended("Error", 1, restartCount=1)))
    world.tick(2)
    assert world.condition("Stalled")[0] == "False"
    world.tick(START_SECONDS // TICK_SECONDS)
    assert world.condition("Stalled") == ("True", "EngineCrashed")


def test_a_pod_that_replaces_another_one_is_waited_for_as_long_whoever_leads() -> None:
    for seconds, stalled in ((1799, "False"), (1800, "True")):
        led = snapshot(None, unready_for(seconds))
        assert condition(decide(led, NOW), "Stalled")[0] == stalled
        other = replace(led, operator=replace(led.operator, epoch=8))
        assert condition(decide(other, NOW), "Stalled")[0] == stalled


def test_pods_that_are_one_too_many_are_nobodys_trouble() -> None:
    found = snapshot(None, unready_for(9000), ready_pod("demo-2"))
    assert condition(decide(found, NOW), "Stalled")[0] == "False"


def test_one_that_waits_for_a_node_or_is_going_does_not_hang() -> None:
    waiting = pod(scheduled=("False", "Unschedulable", "0/1 nodes: 1 Insufficient x/gpu."))
    assert condition(decide(snapshot(None, waiting), NOW), "Stalled")[0] == "False"
    going = replace(unready_for(9000), deleting=True)
    assert condition(decide(snapshot(None, going), NOW), "Stalled")[0] == "False"


@pytest.mark.parametrize(
    ("hung", "told"),
    [
        (pod(preflight=running(started=False)), "for its container preflight: `kubectl logs"),
        (pod(), "none of its containers has been started"),
        (loading_pod(engine=running()), "a readiness gate of it is not met"),
    ],
)
def test_what_it_waits_for_is_named(hung: PodRecord, told: str) -> None:
    late = replace(hung, unready_since=NOW.unix - 9000)
    if late.containers and all(each.ready for each in late.containers.values()):
        late = replace(late, gated=True)
    assert told in condition(decide(snapshot(None, late), NOW), "Stalled")[2]


def test_a_pod_that_starts_on_a_node_whose_clock_is_far_behind_does_not_hang() -> None:
    body = pod_body(headway_sidecar=running(), engine=running(started=False))
    (ready,) = (each for each in body["status"]["conditions"] if each["type"] == "Ready")
    ready["lastTransitionTime"] = later(-9000).text
    for seconds, stalled in ((10, "False"), (1799, "False"), (1800, "True")):
        body["metadata"]["creationTimestamp"] = later(-seconds).text
        found = snapshot(None, pod_record(body))
        assert condition(decide(found, NOW), "Stalled")[0] == stalled


def test_since_when_a_pod_is_not_ready_is_read_off_its_condition() -> None:
    body = pod_body(ready=False)
    (ready,) = (each for each in body["status"]["conditions"] if each["type"] == "Ready")
    assert pod_record(body).unready_since is None
    ready["lastTransitionTime"] = later(-60).text
    assert pod_record(body).unready_since == NOW.unix - 60
    ready["status"] = "True"
    assert pod_record(body).unready_since is None
