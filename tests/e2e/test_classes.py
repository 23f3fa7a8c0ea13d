"""Classes and tenants on real parts: who is refused at once, and who takes turns."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.load import Load
from tests.e2e.service import Service, pod_metrics, polling

pytestmark = pytest.mark.cluster

MODEL = "smollm2"
METRICS_PORT = 8901
SLOTS = 2
KEYS = {"many": "a key of the tenant with many streams", "few": "a key of the other one"}
REFUSED = "headway_refused_requests_total{class=interactive,reason=ObjectiveUnmet}"


def changed(spec: dict[str, Any]) -> dict[str, Any]:
    """Fields of a spec as they are now, so that a test can put them back; None removes one."""
    return {name: spec.get(name) for name in ("classes", "defaultClass", "tenants", "scheduling")}


@pytest.fixture
def shared(chat: Service) -> Iterator[Service]:
    """The service with few slots, a class that sheds and two tenants; afterwards as it was."""
    before = changed(chat.read()["spec"])
    tenants = [
        {"name": name, "apiKeySHA256": hashlib.sha256(key.encode()).hexdigest()}
        for name, key in KEYS.items()
    ]
    chat.patch(
        {
            "spec": {
                "classes": [
                    {"name": "interactive", "ttftMilliseconds": 1500, "whenUnmet": "Shed"},
                    {"name": "batch"},
                ],
                "defaultClass": "batch",
                "tenants": tenants,
                "scheduling": {"maxBatchSize": SLOTS, "fairnessWindow": 1},
            }
        }
    )
    chat.wait_for("PolicyApplied", "True", timeout_s=90)
    yield chat
    chat.patch({"spec": before})
    chat.wait_for("PolicyApplied", "True", timeout_s=90)


def base_url(service: Service) -> str:
    return f"http://{service.cluster_ip()}"


def only_pod(service: Service) -> str:
    (pod,) = service.pods()
    return str(pod["metadata"]["name"])


def refused_in(service: Service, api_url: str) -> float:
    metrics = pod_metrics(api_url, service.namespace, only_pod(service), METRICS_PORT)
    return metrics.get(REFUSED, 0.0)


def test_who_would_wait_too_long_is_told_so_at_once(shared: Service, api_url: str) -> None:
    async def flood() -> Load:
        async with Load(
            base_url(shared),
            MODEL,
            streams=24,
            max_tokens=64,
            traffic_class="interactive",
            patience_s=30,
        ) as load:
            await asyncio.sleep(15)
        return load

    before = refused_in(shared, api_url)
    load = asyncio.run(flood())
    served = [each for each in load.outcomes if not each.error]
    refused = [each for each in load.outcomes if each.error == "HTTP 503"]
    assert served
    assert refused
    assert len(served) + len(refused) == len(load.outcomes), set(load.failed())
    assert all(1 <= int(each.retry_after) <= 60 for each in refused)
    # At once: not after the time in which others are served.
    quickest_s = min(each.ended_s - each.begun_s for each in served)
    slow = [each for each in refused if each.ended_s - each.begun_s > quickest_s]
    assert len(slow) <= len(refused) / 20
    for now in polling(lambda: refused_in(shared, api_url), 20, period_s=1):
        if now - before >= len(refused):
            return
    pytest.fail(f"{len(refused)} were refused, counted are {now - before}")


def test_tenants_take_turns_however_many_streams_they_open(shared: Service) -> None:
    async def compete() -> dict[str, int]:
        loads = {
            name: Load(
                base_url(shared),
                MODEL,
                streams=streams,
                max_tokens=24,
                traffic_class="batch",
                api_key=KEYS[name],
                patience_s=30,
            )
            for name, streams in (("many", 16), ("few", 4))
        }
        async with loads["many"], loads["few"]:
            await asyncio.sleep(5)
            begin_s = time.monotonic()
            await asyncio.sleep(20)
            end_s = time.monotonic()
        assert [each for load in loads.values() for each in load.failed()] == []
        return {
            name: sum(each.tokens for each in load.outcomes if begin_s <= each.ended_s <= end_s)
            for name, load in loads.items()
        }

    tokens = asyncio.run(compete())
    share = tokens["few"] / sum(tokens.values())
    # By streams alone it would be a fifth.
    assert 0.4 <= share <= 0.6, tokens
