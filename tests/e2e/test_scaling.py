"""Pods come and go with the work that requests bring, on real parts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.kube import KubectlError
from tests.e2e.load import Load
from tests.e2e.service import Service, condition_of, polling

pytestmark = pytest.mark.cluster

MODEL = "smollm2"
SCALING = {
    "mode": "Operator",
    "minReplicas": 1,
    "maxReplicas": 2,
    "stabilizationSeconds": 20,
    "forecastSeconds": 0,
}
"""Short, so that a test sees pods go."""
CLASSES = [{"name": "interactive", "ttftMilliseconds": 10_000, "tpotMilliseconds": 60}]
"""Steps that keep this are hardly longer than empty ones on two cores: little work fills a pod."""


@pytest.fixture(scope="module")
def scaled(chat: Service) -> Iterator[Service]:
    """The warm service, with its number of pods in the operator's hands."""
    chat.wait_for("Ready", "True", timeout_s=120)
    before = chat.read()["spec"]
    chat.patch({"spec": {"scaling": SCALING, "classes": CLASSES, "defaultClass": "interactive"}})
    try:
        yield chat
    finally:
        kept = {"classes": before.get("classes"), "defaultClass": before.get("defaultClass")}
        chat.patch({"spec": {"scaling": None, **kept}})
        for _ in polling(lambda: None, 180):
            if len(chat.pods()) == 1:
                break
        chat.wait_for("Ready", "True", timeout_s=120)


def events(service: Service, reason: str) -> list[str]:
    found = service.cluster.list("events", service.namespace)
    return [each["message"] for each in found if each["reason"] == reason]


def status_of(service: Service) -> dict[str, Any]:
    status: dict[str, Any] = service.read().get("status", {})
    return status


def test_replicas_are_in_one_hand_only(scaled: Service) -> None:
    with pytest.raises(KubectlError, match=r"set scaling\.minReplicas and scaling\.maxReplicas"):
        scaled.patch({"spec": {"replicas": 5}})


def test_pods_come_with_work_and_go_without_and_no_request_is_lost(scaled: Service) -> None:
    async def until_ready(count: int, timeout_s: float) -> None:
        for _ in range(int(timeout_s)):
            if (await asyncio.to_thread(status_of, scaled)).get("readyReplicas") == count:
                return
            await asyncio.sleep(1)
        raise TimeoutError(f"there were not {count} ready pods within {timeout_s} s")

    async def load_and_leave() -> list[Load]:
        base_url = f"http://{scaled.cluster_ip()}"
        heavy = Load(base_url, MODEL, streams=24, max_tokens=48, patience_s=30)
        light = Load(base_url, MODEL, streams=1, max_tokens=8, patience_s=30)
        async with light:
            async with heavy:
                await until_ready(2, timeout_s=300)
            # Requests still come while a pod goes.
            await until_ready(1, timeout_s=240)
        return [heavy, light]

    loads = asyncio.run(load_and_leave())
    assert [load.failed() for load in loads] == [[], []]
    (grown,) = events(scaled, "ScaledUp")
    assert grown.startswith("Replicas 1 -> 2: ")
    assert "engine-seconds of work a second" in grown
    (shrunk,) = events(scaled, "ScaledDown")
    assert shrunk.startswith("Replicas 2 -> 1: No more needed for 20 s")
    assert condition_of(scaled.read(), "ScalingLimited")["status"] in {"True", "False"}
