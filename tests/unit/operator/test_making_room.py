"""A rollout whose new pod waits for what the old one holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway_operator.decide import decide
from headway_operator.observe.records import PodRecord
from tests.unit.operator.samples import NOW, ended, loading_pod, pod, ready_pod, snapshot

SPARE_FIRST = {"maxSurge": 1, "maxUnavailable": 0}
IN_PLACE = {"maxSurge": 0, "maxUnavailable": 1}
NEW = pod(
    "demo-new",
    scheduled=("False", "Unschedulable", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu"),
)
FAILING = pod("demo-old", template="old", engine=ended("Error", 1))


def rolls(*pods: PodRecord) -> dict[str, int]:
    plan = decide(snapshot(None, *pods, children={}), NOW)
    (deployment,) = (each.body for each in plan.applications if each.slot == "Deployment")
    found: dict[str, int] = deployment["spec"]["strategy"]["rollingUpdate"]
    return found


def test_a_pod_that_fails_makes_room_for_the_one_that_mends_it() -> None:
    assert rolls(FAILING, NEW) == IN_PLACE


@pytest.mark.parametrize(
    "pods",
    [
        (ready_pod("demo-old", template="old"), NEW),
        (loading_pod("demo-old", template="old"), NEW),
        (FAILING, ready_pod("demo-other", template="old"), NEW),
        (FAILING, loading_pod("demo-other", template="old"), NEW),
        (replace(FAILING, deleting=True), NEW),
        (FAILING,),
        (NEW,),
        (FAILING, loading_pod("demo-new")),
    ],
    ids=[
        "it serves", "it loads", "another serves", "another loads", "it goes already",
        "nothing is new", "nothing is old", "the new one has room",
    ],
)  # fmt: skip
def test_otherwise_the_spare_one_comes_first(pods: tuple[PodRecord, ...]) -> None:
    assert rolls(*pods) == SPARE_FIRST
