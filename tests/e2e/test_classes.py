"""Classes and tenants on real parts: who is refused at once, and who takes turns."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.load import Load, Outcome
from tests.e2e.service import FALLBACKS, Service, pod_metrics, total
from tests.e2e.waiting import until, wait_until

pytestmark = pytest.mark.cluster

MODEL = "smollm2"
METRICS_PORT = 8901
SLOTS = 2
KEYS = {"many": "a key of the tenant with many streams", "few": "a key of the other one"}
REFUSED = "headway_refused_requests_total{class=interactive,reason=ObjectiveUnmet}"
REFUSALS = 25
SLOW_REFUSALS = 2
"""So many may be under way when a busy machine stands still."""
ANSWERS_BEFORE, ANSWERS = 10, 60


def shared_by(*classes: dict[str, Any]) -> dict[str, Any]:
    """Few slots, two tenants and these classes, which ``batch`` must be among."""
    tenants = [
        {"name": name, "apiKeySHA256": hashlib.sha256(key.encode()).hexdigest()}
        for name, key in KEYS.items()
    ]
    return {
        "classes": list(classes),
        "defaultClass": "batch",
        "tenants": tenants,
        "scheduling": {"maxBatchSize": SLOTS, "fairnessWindow": 1},
    }


@pytest.fixture
def shedding(chat: Service) -> Iterator[Service]:
    """The service with few slots and a class that sheds; afterwards as it was."""
    sheds = {"name": "interactive", "ttftMilliseconds": 1500, "whenUnmet": "Shed"}
    with chat.changed(shared_by(sheds, {"name": "batch"})):
        yield chat


@pytest.fixture
def sharing(chat: Service) -> Iterator[Service]:
    """The service with few slots, two tenants and no target to retune for; afterwards as it was."""
    with chat.changed(shared_by({"name": "batch"})):
        yield chat


def base_url(service: Service) -> str:
    return f"http://{service.cluster_ip()}"


def metrics_of(service: Service, api_url: str) -> dict[str, float]:
    (pod,) = service.pods()
    return pod_metrics(api_url, service.namespace, str(pod["metadata"]["name"]), METRICS_PORT)


def refused_in(service: Service, api_url: str) -> float:
    return metrics_of(service, api_url).get(REFUSED, 0.0)


def test_who_would_wait_too_long_is_told_so_at_once(shedding: Service, api_url: str) -> None:
    async def flood() -> Load:
        async with Load(
            base_url(shedding),
            MODEL,
            streams=24,
            max_tokens=32,
            traffic_class="interactive",
            patience_s=30,
        ) as load:

            def lacking() -> str:
                served, refused = len(served_of(load)), len(refused_of(load))
                enough = served and refused >= REFUSALS
                return "" if enough else f"{served} served, {refused} refused"

            await until(lacking, timeout_s=240)
        return load

    before = refused_in(shedding, api_url)
    load = asyncio.run(flood())
    served, refused = served_of(load), refused_of(load)
    assert len(served) + len(refused) == len(load.outcomes), set(load.failed())
    assert all(1 <= int(each.retry_after) <= 60 for each in refused)
    # At once: not after the time in which others are served.
    quickest_s = min(each.ended_s - each.begun_s for each in served)
    slow = [each for each in refused if each.ended_s - each.begun_s > quickest_s]
    assert len(slow) <= max(SLOW_REFUSALS, len(refused) / 20)
    wait_until(
        lambda: refused_in(shedding, api_url) - before,
        lambda counted: counted >= len(refused),
        timeout_s=30,
        what=f"{len(refused)} counted refusals",
        period_s=1,
    )


def served_of(load: Load) -> list[Outcome]:
    return [each for each in load.outcomes if not each.error]


def refused_of(load: Load) -> list[Outcome]:
    return [each for each in load.outcomes if each.error == "HTTP 503"]


def test_tenants_take_turns_however_many_streams_they_open(sharing: Service, api_url: str) -> None:
    # A step whose plan came too late on a busy machine is the engine's own and lets everybody in:
    # then tokens are counted again, and the third time they count whatever they are.
    for _ in range(3):
        before = total(metrics_of(sharing, api_url), FALLBACKS)
        tokens = asyncio.run(compete(sharing))
        if total(metrics_of(sharing, api_url), FALLBACKS) == before:
            break
    share = tokens["few"] / sum(tokens.values())
    # By streams alone it would be a fifth.
    assert 0.4 <= share <= 0.6, tokens


async def compete(service: Service) -> dict[str, int]:
    """Tokens of both tenants' answers, of so many in a row while both have requests waiting."""
    url = base_url(service)
    loads = {
        name: Load(
            url,
            MODEL,
            streams=streams,
            max_tokens=12,
            traffic_class="batch",
            api_key=KEYS[name],
            patience_s=30,
        )
        for name, streams in (("many", 16), ("few", 4))
    }

    async def ended(answers: int) -> dict[str, int]:
        def lacking() -> str:
            count = sum(len(load.outcomes) for load in loads.values())
            return "" if count >= answers else f"{count} of {answers} answers"

        await until(lacking, timeout_s=180, period_s=0.1)
        return {name: len(load.outcomes) for name, load in loads.items()}

    async with loads["many"], loads["few"]:
        begin = await ended(ANSWERS_BEFORE)
        end = await ended(sum(begin.values()) + ANSWERS)
    assert [each for load in loads.values() for each in load.failed()] == []
    return {
        name: sum(each.tokens for each in load.outcomes[begin[name] : end[name]])
        for name, load in loads.items()
    }
