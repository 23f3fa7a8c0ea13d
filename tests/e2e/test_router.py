"""The router on real parts: turned on and off under load, and an engine that is killed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from tests.e2e import faults
from tests.e2e.load import Load, Outcome
from tests.e2e.service import Service, ask, fetched
from tests.e2e.waiting import patiently, until, wait_until

pytestmark = pytest.mark.cluster

MODEL = "smollm2"
COMPONENT = "app.kubernetes.io/component"
ON = {"router": {"enabled": True, "replicas": 1}, "replicas": 2}


def base_url(service: Service) -> str:
    return f"http://{service.cluster_ip()}"


def points_to(service: Service) -> str:
    found = service.cluster.get("service", service.name, service.namespace)
    return str(found["spec"]["selector"][COMPONENT])


def container_of(pod: dict[str, object], name: str) -> str:
    status = pod["status"]
    assert isinstance(status, dict)
    found = next(each for each in status["containerStatuses"] if each["name"] == name)
    return str(found["containerID"])


def lost_before_they_began(outcomes: list[Outcome]) -> list[str]:
    """What clients saw of requests that failed before their first token."""
    return [each.error for each in outcomes if each.error and each.first_token_s is None]


@pytest.fixture(scope="module")
def routed(chat: Service) -> Iterator[Service]:
    """The warm service with two engines and a router in front; afterwards as it was."""
    with chat.changed(ON):
        chat.wait_for("RouterReady", "True", timeout_s=180)
        chat.wait_for("Ready", "True", timeout_s=400)
        yield chat
    wait_until(lambda: points_to(chat), lambda to: to == "engine", 60, what="no router in use")
    wait_until(lambda: len(chat.routers()), lambda pods: pods == 0, 60, what="no router")
    wait_until(lambda: len(chat.pods()), lambda pods: pods == 1, 180, what="a single pod")
    chat.wait_for("Ready", "True", timeout_s=120)


def both_listed(service: Service, api_url: str) -> None:
    """Wait until the router has both engines."""
    (router,) = service.routers()
    pod = f"namespaces/{service.namespace}/pods/{router['metadata']['name']}:8000"
    url = f"{api_url}/api/v1/{pod}/proxy/list_workers"
    wait_until(
        lambda: len(json.loads(fetched(url))["urls"]),
        lambda count: count == 2,
        timeout_s=60,
        what="both engines in the router's list",
    )


def test_requests_go_through_the_router_once_it_is_ready(routed: Service) -> None:
    assert points_to(routed) == "router"
    assert "Paris" in patiently(
        lambda: ask(base_url(routed), MODEL, "What is the capital of France?")
    )
    assert routed.told("RouterInUse")


def test_a_killed_engine_costs_no_request_that_had_not_begun(routed: Service, api_url: str) -> None:
    both_listed(routed, api_url)
    victim = routed.pods()[0]

    async def kill_under_load() -> Load:
        load = Load(base_url(routed), MODEL, streams=6, max_tokens=32)
        async with load:
            await until(lambda: "" if len(load.outcomes) >= 6 else "answers", timeout_s=120)
            assert await asyncio.to_thread(faults.kill, container_of(victim, "engine")) > 0
            after = len(load.outcomes)
            await until(
                lambda: "" if len(load.outcomes) >= after + 12 else "answers after the death",
                timeout_s=240,
            )
        return load

    load = asyncio.run(kill_under_load())
    assert lost_before_they_began(load.outcomes) == []
    # One pod has half of the streams at most; what it had begun is lost.
    assert len(load.failed()) <= 6
    routed.wait_for("Ready", "True", timeout_s=400)


def test_a_router_that_is_gone_is_gone_round_and_comes_back(routed: Service, api_url: str) -> None:
    both_listed(routed, api_url)
    (router,) = routed.routers()
    assert faults.kill(container_of(router, "router")) > 0

    async def asked() -> list[Outcome]:
        load = Load(base_url(routed), MODEL, streams=1, max_tokens=4, patience_s=60)
        async with load:
            await until(lambda: "" if len(load.outcomes) >= 3 else "answers", timeout_s=120)
        return load.outcomes

    outcomes = asyncio.run(asked())
    assert any(not each.error for each in outcomes)
    wait_until(lambda: points_to(routed), lambda to: to == "router", 120, what="the router in use")
