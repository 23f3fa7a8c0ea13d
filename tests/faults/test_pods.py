"""Pods that die, are full, or are sent what is made to break them, while clients ask."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.e2e import faults
from tests.e2e.load import Load
from tests.e2e.service import Service, identity, pod_metrics, total
from tests.faults import poison
from tests.faults.conftest import MODEL, RecordFault
from tests.faults.recorder import Fault
from tests.faults.routing import routed, wait_unlisted

pytestmark = pytest.mark.cluster

METRICS_PORT = 8901


def test_pod_killed_under_load(pair: Service, record: RecordFault) -> None:
    """A pod killed under load.

    Two pods without a router; every half a second a request for 32 tokens, so that some always run.
    The engine process of one of them is killed with SIGKILL, as the kernel kills. Nothing is
    repaired by hand.
    """
    with record(pair, **BUSY) as fault:
        fault.watch_for(6)
        kill_engine(pair.pods()[0], fault)
        fault.shown(pair, "Ready", "False", "EngineCrashed")
        fault.recovered(pair, pods=2)
    recording = fault.recording
    killed_s, back_s = recording.marks["caused"], recording.marks["recovered"]
    meanwhile = [each for each in recording.requests if killed_s < each.offered_s < back_s]
    assert any(not each.error for each in meanwhile)
    after = [each.error for each in recording.requests if each.offered_s > back_s]
    assert [error for error in after if error] == []
    assert fault.seen("event", "Warning EngineCrashed")


def test_pod_killed_behind_the_router(pair: Service, record: RecordFault) -> None:
    """A pod killed under load, behind the router.

    The same with spec.router.enabled, so that clients reach the two pods through vllm-router. Its
    list is looked at fifty times a second.
    """
    with routed(pair), record(pair, **BUSY) as fault:
        fault.watch_for(6)
        victim = pair.pods()[0]
        kill_engine(victim, fault)
        wait_unlisted(pair, victim)
        fault.unlisted("the killed pod is off the router's list")
        fault.shown(pair, "Ready", "False", "EngineCrashed")
        fault.recovered(pair, pods=2)
    assert fault.recording.failed_before_they_began() == []
    assert fault.seen("event", "Warning EngineCrashed")


BUSY: Any = {"period_s": 0.5, "max_tokens": 32}


def kill_engine(pod: dict[str, Any], fault: Fault) -> None:
    """SIGKILL for the process that computes."""
    statuses = pod["status"]["containerStatuses"]
    (engine,) = (each for each in statuses if each["name"] == "engine")
    fault.cause("SIGKILL for the EngineCore process of one pod")
    assert faults.kill_children(engine["containerID"], "EngineCore") == 1


def test_poison_request(chat: Service, record: RecordFault) -> None:
    """Requests that are made to break the engine.

    Requests with torn or endless bodies, impossible tokens, parameters and programs are sent one
    after the other, while the client goes on.
    """
    (before,) = chat.pods()
    answers = {}
    with record(chat) as fault:
        fault.cause("the first of the requests is sent")
        for name, (path, body) in poison.requests(MODEL).items():
            answers[name] = poison.answer_to(f"http://{chat.cluster_ip()}{path}", body)
            fault.did(f"{name}: {answers[name]}")
        fault.recovered(chat)
    (after,) = chat.pods()
    assert identity(after) == identity(before)
    assert fault.recording.failed() == []
    assert [name for name, answer in answers.items() if not answer.startswith("HTTP")] == []


def test_kv_cache_full(few_blocks: Service, record: RecordFault, api_url: str) -> None:
    """A KV cache that is full.

    The engine has a KV cache of 12 blocks of 128 tokens. Ten clients each keep a request for 250
    tokens open for 30 s; the blocks of about four fit.
    """
    chat = few_blocks
    (before,) = chat.pods()
    name = before["metadata"]["name"]
    seen: list[dict[str, float]] = []

    async def flood() -> list[str]:
        url = f"http://{chat.cluster_ip()}"
        async with Load(url, MODEL, streams=10, max_tokens=250) as load:
            for _ in range(15):
                await asyncio.sleep(2)
                look = asyncio.to_thread(pod_metrics, api_url, chat.namespace, name, METRICS_PORT)
                seen.append(await look)
        fault.did(f"{len(load.outcomes)} requests of 250 tokens, {len(load.failed())} failed")
        return load.failed()

    with record(chat) as fault:
        fault.cause("ten clients begin")
        failed = asyncio.run(flood())
        fault.recovered(chat)
    (after,) = chat.pods()
    assert identity(after) == identity(before)
    assert failed == []
    assert fault.recording.failed() == []
    assert max(total(each, "headway_waiting_requests") for each in seen) > 0


PROMISED = {
    "classes": [
        {"name": "interactive", "ttftMilliseconds": 200},
        {"name": "spare", "deadlineSeconds": 60, "whenUnmet": "Shed"},
    ],
    "defaultClass": "interactive",
    "degradation": [
        {"step": "ShedClasses", "afterSeconds": 0},
        {"step": "LowerLimits", "afterSeconds": 0},
    ],
}


def test_kv_cache_full_and_missed(few_blocks: Service, record: RecordFault) -> None:
    """A KV cache that is full while a promise is missed.

    As above, but the clients are promised a first token within 200 ms, and another class sheds. The
    ladder of the service has no patience. The clients go when a step is taken.
    """
    chat = few_blocks
    (before,) = chat.pods()

    async def flood() -> None:
        async with Load(f"http://{chat.cluster_ip()}", MODEL, streams=10, max_tokens=250):
            await asyncio.to_thread(chat.wait_for, "Degraded", "True", timeout_s=120)

    with chat.changed(PROMISED), record(chat) as fault:
        fault.cause("ten clients begin")
        asyncio.run(flood())
        message = str(chat.condition("Degraded")["message"])
        fault.mend("the clients go")
        assert "KVCacheFull: " in message
        chat.wait_for("Degraded", "False", timeout_s=400)
        fault.recovered(chat)
    (after,) = chat.pods()
    assert identity(after) == identity(before)
    assert fault.seen("event", "Warning Degraded")
    assert fault.seen("event", "Normal Recovered")
    assert fault.recording.failed() == []
