"""A service that nobody uses goes to zero, and a request brings it back, on real parts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp
import pytest

from tests.e2e.service import Service, ask
from tests.e2e.waiting import until, wait_until

pytestmark = pytest.mark.cluster

MODEL = "smollm2"
IDLE_SECONDS = 30
MOST_HELD = 2
ZERO = {
    "scaling": {
        "mode": "Operator",
        "minReplicas": 0,
        "maxReplicas": 1,
        "idleSeconds": IDLE_SECONDS,
        "activator": {"replicas": 1, "maxHeldRequests": MOST_HELD, "holdSeconds": 400},
    }
}
QUESTION = "What is the capital of France?"


def points_to(service: Service) -> str:
    found = service.cluster.get("service", service.name, service.namespace)
    return str(found["spec"]["selector"]["app.kubernetes.io/component"])


@dataclass
class Watcher:
    """Asks for the service's health all the time, each time over a new connection.

    Attributes:
        url: of the service.
        asked: how often it was asked.
        failures: what went wrong.
    """

    url: str
    asked: int = 0
    failures: list[str] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        self._asking = asyncio.create_task(self._ask())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._asking.cancel()
        await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self) -> None:
        timeout = aiohttp.ClientTimeout(total=60)
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            while True:
                try:
                    async with session.get(f"{self.url}/health") as response:
                        if response.status != 200:
                            self.failures.append(f"status {response.status}")
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    self.failures.append(f"{type(error).__name__}: {error}")
                self.asked += 1
                await asyncio.sleep(0.1)


@pytest.fixture(scope="module")
def sleepy(chat: Service) -> Iterator[Service]:
    """The warm service, which may go to zero; afterwards as it was, with one pod."""
    try:
        with chat.changed(ZERO):
            chat.wait_for("ActivatorReady", "True", timeout_s=120)
            yield chat
    finally:
        wait_until(lambda: points_to(chat), lambda to: to == "engine", 300, what="the engine used")
        wait_until(lambda: len(chat.pods()), lambda pods: pods == 1, 180, what="a single pod")
        chat.wait_for("Ready", "True", timeout_s=300)


async def post(url: str, question: str) -> tuple[int, str]:
    """Status and Retry-After of a question's answer."""
    body: dict[str, Any] = {"model": MODEL, "prompt": question, "max_tokens": 2}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/completions", json=body) as response,
    ):
        await response.read()
        return response.status, response.headers.get("Retry-After", "")


def test_without_use_it_goes_to_zero_and_the_first_requests_bring_it_back(sleepy: Service) -> None:
    url = f"http://{sleepy.cluster_ip()}"

    def lacking_zero() -> str:
        # One that is being deleted answers until it knows, and wakes nobody.
        found, is_there = sleepy.condition("Ready"), sleepy.has_pods()
        is_idle = (found["status"], found["reason"]) == ("True", "Idle")
        return "" if is_idle and not is_there else f"Ready: {found}, a pod: {is_there}"

    async def fall_asleep_and_wake() -> Watcher:
        async with Watcher(url) as watcher:
            await until(lacking_zero, timeout_s=300)
            assert points_to(sleepy) == "activator"
            # Held until an engine is there, and answered by it.
            asked = [
                asyncio.create_task(asyncio.to_thread(ask, url, MODEL, QUESTION, 400))
                for _ in range(MOST_HELD)
            ]
            await until(lambda: "" if sleepy.pods() else "a pod", timeout_s=60)
            status, retry_after = await post(url, "Too many")
            assert status == 503
            assert 1 <= int(retry_after) <= 600
            assert not any(each.done() for each in asked)
            assert all("Paris" in answer for answer in await asyncio.gather(*asked))
            await until(
                lambda: "" if points_to(sleepy) == "engine" else "turned back", timeout_s=60
            )
            assert (await post(url, "One more"))[0] == 200
        return watcher

    watcher = asyncio.run(fall_asleep_and_wake())
    assert watcher.failures == []
    assert watcher.asked > 100
    sleepy.wait_for("Ready", "True", timeout_s=120, reason="PodsReady")
    (slept,) = sleepy.told("ScaledToZero")
    assert slept.startswith("Replicas 1 -> 0: No request for ")
    (woken,) = sleepy.told("Woken")
    assert woken.startswith("Replicas 0 -> 1: ")
