"""Pods come and go with the work that requests bring, on real parts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.e2e.kube import KubectlError
from tests.e2e.load import Load
from tests.e2e.service import Service
from tests.e2e.waiting import until, wait_until

pytestmark = pytest.mark.cluster

MODEL = "smollm2"
SCALING = {
    "mode": "Operator",
    "minReplicas": 1,
    "maxReplicas": 2,
    "stabilizationSeconds": 3600,
    "forecastSeconds": 0,
}
SOON_SECONDS = 20
"""So that a test sees pods go."""
CLASSES = [{"name": "interactive", "ttftMilliseconds": 10_000, "tpotMilliseconds": 60}]
"""Steps that keep this are hardly longer than empty ones on two cores: little work fills a pod."""


@pytest.fixture(scope="module")
def scaled(chat: Service) -> Iterator[Service]:
    """The warm service, with its number of pods in the operator's hands; afterwards one pod."""
    change = {"scaling": SCALING, "classes": CLASSES, "defaultClass": "interactive"}
    try:
        with chat.changed(change):
            yield chat
    finally:
        wait_until(
            lambda: len(chat.pods()), lambda pods: pods == 1, timeout_s=180, what="a single pod"
        )
        chat.wait_for("Ready", "True", timeout_s=120)


def test_replicas_are_in_one_hand_only(scaled: Service) -> None:
    with pytest.raises(KubectlError, match=r"set scaling\.minReplicas and scaling\.maxReplicas"):
        scaled.patch({"spec": {"replicas": 5}})


def test_pods_come_with_work_and_go_without_and_no_request_is_lost(scaled: Service) -> None:
    def pods() -> tuple[int, int]:
        return scaled.read().get("status", {}).get("readyReplicas", 0), len(scaled.pods())

    def lacking(wanted: tuple[int, int]) -> str:
        found = pods()
        return "" if found == wanted else f"{found[0]} of {found[1]} pods ready, not {wanted}"

    async def load_and_leave() -> list[Load]:
        base_url = f"http://{scaled.cluster_ip()}"
        heavy = Load(base_url, MODEL, streams=24, max_tokens=48, patience_s=30)
        light = Load(base_url, MODEL, streams=1, max_tokens=8, patience_s=30)
        async with heavy:
            await until(lambda: lacking((1, 2)), timeout_s=120)
        # vLLM's workers are bound to cores here, both to the same one: while the first engine
        # works, the second would hardly start.
        await until(lambda: lacking((2, 2)), timeout_s=300)
        async with light:
            soon = {"scaling": {"stabilizationSeconds": SOON_SECONDS}}
            await asyncio.to_thread(scaled.patch, {"spec": soon})
            await until(lambda: lacking((1, 1)), timeout_s=240)
        return [heavy, light]

    loads = asyncio.run(load_and_leave())
    assert [load.failed() for load in loads] == [[], []]
    (grown,) = wait_until(lambda: scaled.told("ScaledUp"), bool, timeout_s=30, what="ScaledUp")
    assert grown.startswith("Replicas 1 -> 2: ")
    assert "engine-seconds of work a second" in grown
    (shrunk,) = wait_until(lambda: scaled.told("ScaledDown"), bool, timeout_s=30, what="ScaledDown")
    assert shrunk.startswith(f"Replicas 2 -> 1: No more needed for {SOON_SECONDS} s")
