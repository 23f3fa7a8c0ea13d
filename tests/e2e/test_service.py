"""The main job on real parts: an answer from a real model, engines retuned while they run."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from headway_runtime.policy import Stamp
from tests.cluster.lab.paths import Paths
from tests.e2e import faults, stack
from tests.e2e.kube import Cluster, KubectlError
from tests.e2e.load import Load, Outcome
from tests.e2e.policies import Sidecar, operators_key, policy_after, sign
from tests.e2e.service import (
    FALLBACKS,
    KIND,
    Service,
    ask,
    condition_of,
    identity,
    pod_metrics,
    total,
)
from tests.e2e.waiting import patiently, polling, wait_until
from tests.scale.audit_tail import Mark

pytestmark = pytest.mark.cluster

OPERATOR_USER = f"system:serviceaccount:{stack.OPERATOR_NAMESPACE}:headway"
OPERATOR_PODS = "app.kubernetes.io/component=operator"
OTHERS = ("poddisruptionbudgets", "networkpolicies")
METRICS_PORT = 8901
MODEL = "smollm2"
SETTLED = {"Ready": "True", "ModelLoaded": "True", "PolicyApplied": "True", "Progressing": "False"}
NARROW, WIDE = {"maxBatchSize": 2, "tokenBudget": 64}, {"maxBatchSize": 8}
READINESS_BEARS_SECONDS = 6
"""The sidecar's readiness probe fails after 9 s; what takes about as long may go either way."""


def base_url(service: Service) -> str:
    return f"http://{service.cluster_ip()}"


def only_pod(service: Service) -> str:
    (pod,) = service.pods()
    return str(pod["metadata"]["name"])


def engine_container(service: Service) -> dict[str, Any]:
    (pod,) = service.pods()
    statuses = pod["status"]["containerStatuses"]
    return dict(next(each for each in statuses if each["name"] == "engine"))


def sidecar_of(service: Service, api_url: str) -> Sidecar:
    return Sidecar(api_url, service.namespace, only_pod(service))


def test_a_ready_service_answers_and_says_what_it_is(chat: Service) -> None:
    assert "Paris" in ask_patiently(base_url(chat))
    stored = wait_until(
        chat.read,
        lambda found: {kind: condition_of(found, kind)["status"] for kind in SETTLED} == SETTLED,
        timeout_s=60,
        what="a service whose conditions say that all is well",
    )
    status = stored["status"]
    assert status["observedGeneration"] == stored["metadata"]["generation"]
    assert status["policyGeneration"] == stored["metadata"]["generation"]
    assert status["replicas"] == 1
    assert "finalizers" not in stored["metadata"]


def test_kubectl_shows_columns_worth_reading(chat: Service) -> None:
    chat.wait_for("Ready", "True", timeout_s=60)
    header, row = chat.cluster.kubectl(
        "get", KIND, "chat", "-n", chat.namespace, "-o", "wide"
    ).splitlines()
    assert header.split() == ["NAME", "READY", "REASON", "REPLICAS", "MODEL", "AGE"]
    assert row.split()[:2] == ["chat", "True"]


def test_scheduling_changes_reach_the_running_engine(chat: Service, api_url: str) -> None:
    (before,) = chat.pods()

    async def retune() -> list[list[dict[str, float]]]:
        async with Load(base_url(chat), MODEL, streams=8, max_tokens=24, patience_s=30) as load:
            seen = []
            for setting in (NARROW, WIDE):
                await asyncio.to_thread(chat.patch, {"spec": {"scheduling": setting}})
                seen.append(await engine_under(setting["maxBatchSize"], chat, api_url))
        assert load.outcomes
        assert load.failed() == []
        return seen

    with chat.restored({"scheduling": NARROW}):
        narrow, wide = asyncio.run(retune())
    for sample in narrow:
        assert total(sample, "headway_max_batch_requests") == 2
        assert total(sample, "headway_token_budget_tokens") == 64
        assert total(sample, "headway_running_requests") <= 2
    assert any(total(sample, "headway_waiting_requests") >= 1 for sample in narrow)
    assert any(total(sample, "headway_running_requests") > 2 for sample in wide)
    (after,) = chat.pods()
    assert identity(after) == identity(before)


async def engine_under(batch: int, chat: Service, api_url: str) -> list[dict[str, float]]:
    """Looks at the running engine from when it has taken a batch size.

    A step whose plan came too late on a busy machine is the engine's own and lets everybody in:
    then it is looked at again, and the third time it counts whatever it did.
    """
    for _ in range(3):
        before = await until_batch_is(batch, chat, api_url)
        seen = await watch_engine(chat, api_url, samples=10)
        if total(seen[-1], FALLBACKS) == total(before, FALLBACKS):
            break
    return seen


async def until_batch_is(batch: int, chat: Service, api_url: str) -> dict[str, float]:
    """The first look at an engine that runs with a batch size and no more requests than that."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        (sample,) = await watch_engine(chat, api_url, samples=1)
        in_force = total(sample, "headway_max_batch_requests") == batch
        if in_force and total(sample, "headway_running_requests") <= batch:
            return sample
    raise TimeoutError(f"the engine does not run with a batch of {batch}")


async def watch_engine(chat: Service, api_url: str, samples: int) -> list[dict[str, float]]:
    pod = await asyncio.to_thread(only_pod, chat)
    seen = []
    for _ in range(samples):
        await asyncio.sleep(0.5)
        seen.append(
            await asyncio.to_thread(pod_metrics, api_url, chat.namespace, pod, METRICS_PORT)
        )
    return seen


@pytest.fixture
def quiet(chat: Service) -> Iterator[Service]:
    """The service without retuning: its policy changes only with its spec."""
    with chat.changed({"scheduling": {"mode": "Off"}}):
        yield chat


def test_a_policy_is_refused_unless_it_is_signed_newer_and_addressed_here(
    quiet: Service, api_url: str, operator: Cluster
) -> None:
    chat = quiet
    sidecar, key = sidecar_of(chat, api_url), operators_key(operator)
    uid = chat.read()["metadata"]["uid"]
    stamp = sidecar.stamp()
    newer = policy_after(stamp, uid, token_budget=1)
    signed = sign(newer, key)
    stranger = Ed25519PrivateKey.generate()
    forged = dataclasses.replace(sign(newer, stranger), key_id=signed.key_id)
    tampered = dataclasses.replace(
        signed, payload=signed.payload.replace(b'"tokenBudget":1,', b'"tokenBudget":9,')
    )
    assert tampered != signed
    older = dataclasses.replace(newer, stamp=Stamp(stamp.generation, 0, 0))
    same_stamp = dataclasses.replace(newer, stamp=stamp)
    bad = {
        "unsigned": (dataclasses.replace(signed, signature=b"").to_json(), 401),
        "signed by a stranger": (sign(newer, stranger).to_json(), 401),
        "forged key id": (forged.to_json(), 401),
        "tampered with": (tampered.to_json(), 401),
        "torn": (signed.to_json()[:-20], 400),
        "no JSON": (b"token_budget=1", 400),
        "for another service": (sign(policy_after(stamp, "another"), key).to_json(), 403),
        "old": (sign(older, key).to_json(), 409),
        "another decision under the stamp in force": (sign(same_stamp, key).to_json(), 409),
    }
    for name, (body, expected) in bad.items():
        status, answer = sidecar.put(body)
        assert status == expected, (name, status, answer)
        assert sidecar.stamp() == stamp, name
    assert "Paris" in ask_patiently(base_url(chat))


def test_a_replayed_policy_is_refused_after_a_newer_one(
    quiet: Service, api_url: str, operator: Cluster
) -> None:
    chat = quiet
    sidecar, key = sidecar_of(chat, api_url), operators_key(operator)
    uid = chat.read()["metadata"]["uid"]
    # Counters far ahead of the operator's; its next decision of a new generation outranks them.
    stamp = sidecar.stamp()
    first = policy_after(dataclasses.replace(stamp, counter=stamp.counter + 1000), uid)
    second = policy_after(first.stamp, uid)
    assert sidecar.put(sign(first, key).to_json())[0] == 200
    assert sidecar.put(sign(second, key).to_json())[0] == 200
    assert sidecar.put(sign(first, key).to_json())[0] == 409
    assert sidecar.put(sign(second, key).to_json())[1]["outcome"] == "AlreadyApplied"
    with chat.changed({"scheduling": {"tokenBudget": 500}}):
        assert sidecar.stamp().generation > stamp.generation


def test_an_idle_service_causes_no_writes(chat: Service) -> None:
    chat.wait_for("Ready", "True", timeout_s=60)
    log = Paths.from_environment(os.environ).audit_log
    for _ in range(4):  # until what the tests before have caused is over
        mark = Mark.now(log)
        time.sleep(45)
        writes = mark.writes(OPERATOR_USER)
        if not writes:
            break
    assert writes == []
    assert mark.lease_writes(OPERATOR_USER) > 0


def test_a_killed_sidecar_costs_no_request_and_no_readiness(chat: Service, api_url: str) -> None:
    before = sidecar_container(chat)["restartCount"]
    for _ in range(3):
        ready_since = wait_until(chat.ready_since, bool, timeout_s=60, what="a ready pod")
        load, killed_s, back_s = asyncio.run(load_over_a_kill(chat, api_url))
        # A machine so busy that the next process takes nearly as long as probes bear says nothing.
        if back_s - killed_s < READINESS_BEARS_SECONDS:
            break
    assert any(each.begun_s < killed_s < each.ended_s for each in load.outcomes)
    assert any(each.begun_s > killed_s for each in load.outcomes)
    assert load.failed() == []
    assert chat.ready_since() == ready_since
    assert sidecar_container(chat)["restartCount"] == before


async def load_over_a_kill(chat: Service, api_url: str) -> tuple[Load, float, float]:
    """A load, when the sidecar's process was killed under it, and when the next one answered."""
    async with Load(base_url(chat), MODEL, streams=4, max_tokens=16, patience_s=30) as load:
        await asyncio.sleep(3)
        pod = await asyncio.to_thread(only_pod, chat)
        killed_s = await asyncio.to_thread(kill_sidecar, chat)
        await asyncio.to_thread(pod_metrics, api_url, chat.namespace, pod, METRICS_PORT)
        back_s = time.monotonic()
        # Longer than it takes until a lost readiness is seen.
        await asyncio.sleep(5)
    return load, killed_s, back_s


def kill_sidecar(chat: Service) -> float:
    """Kill the process that serves, once there is one: on a busy machine it may be replaced."""
    container = sidecar_container(chat)["containerID"]
    killed = wait_until(
        lambda: faults.kill_children(container, "python"), bool, 30, "a process to kill"
    )
    assert killed == 1
    return time.monotonic()


def sidecar_container(service: Service) -> dict[str, Any]:
    (pod,) = service.pods()
    statuses = pod["status"]["initContainerStatuses"]
    return dict(next(each for each in statuses if each["name"] == "headway-sidecar"))


def test_a_killed_engine_is_not_ready_and_comes_back_by_itself(chat: Service) -> None:
    pod, engine = only_pod(chat), engine_container(chat)
    assert faults.kill_children(engine["containerID"], "EngineCore") == 1
    chat.wait_for("Ready", "False", timeout_s=60)
    chat.wait_for("Ready", "True", timeout_s=300)
    assert only_pod(chat) == pod
    assert engine_container(chat)["restartCount"] == engine["restartCount"] + 1
    assert "Paris" in ask_patiently(base_url(chat))


def test_a_running_stream_finishes_when_its_pod_is_deleted(chat: Service) -> None:
    async def delete_under_stream() -> tuple[Outcome, float]:
        outcome = Outcome(time.monotonic())
        async with Load(base_url(chat), MODEL, streams=0, max_tokens=500, patience_s=30) as client:
            stream = asyncio.create_task(client.one("Tell me everything about the sea.", outcome))
            await asyncio.wait_for(outcome.streaming.wait(), 60)
            pod = await asyncio.to_thread(only_pod, chat)
            await asyncio.to_thread(
                chat.cluster.kubectl,
                *("delete", "pod", pod, "-n", chat.namespace, "--wait=false", "--ignore-not-found"),
            )
            deleted_s = time.monotonic()
            await stream
        return outcome, deleted_s

    for _ in range(3):
        outcome, deleted_s = asyncio.run(delete_under_stream())
        chat.wait_for("Ready", "True", timeout_s=300)
        assert outcome.error == ""
        assert outcome.tokens == 500
        # Longer than the drain's minimum: it was the drain that waited for this stream. On a busy
        # machine kubectl may be slower than the stream, which then proves nothing.
        if outcome.ended_s - deleted_s > 6:
            return
    pytest.fail("the stream was over each time before its pod was deleted")


def test_a_rollout_resumes_when_the_operator_is_killed_in_its_middle(
    chat: Service, operator: Cluster
) -> None:
    old = only_pod(chat)
    args = [*chat.read()["spec"]["engine"]["args"], "--max-log-len=10"]
    chat.patch({"spec": {"engine": {"args": args}}})
    chat.wait_for("Progressing", "True", timeout_s=90)
    operator.kubectl(
        *("delete", "pod", "-n", stack.OPERATOR_NAMESPACE, "--force", "--grace-period=0"),
        *("-l", OPERATOR_PODS),
    )
    assert old in [pod["metadata"]["name"] for pod in chat.pods()]
    # The old pod serves until the new one can.
    for pods in polling(chat.pods, 300, period_s=1):
        assert "Paris" in ask_patiently(base_url(chat))
        names = [pod["metadata"]["name"] for pod in pods]
        if names != [old] and len(names) == 1:
            break
        assert old in names
    chat.wait_for("Ready", "True", timeout_s=120)
    chat.wait_for("PolicyApplied", "True", timeout_s=60)
    (pod,) = chat.pods()
    engine = next(each for each in pod["spec"]["containers"] if each["name"] == "engine")
    assert "--max-log-len=10" in engine["args"]


def ask_patiently(url: str) -> str:
    """An answer. On a busy machine a pod may miss two probes and be out of service for a moment."""
    question = "What is the capital of France?"
    return patiently(lambda: ask(url, MODEL, question), tries=4, pause_s=5)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": {"uri": "pvc://models/No-Such-Model"}}, "No-Such-Model"),
        ({"engine": {"args": ["--enforce-eagre"]}}, "--enforce-eagre"),
    ],
    ids=["missing model", "unknown flag"],
)
def test_what_cannot_start_says_why_and_heals_when_mended(
    operator: Cluster, namespace: str, change: dict[str, Any], named: str
) -> None:
    name = f"broken-{next(iter(change))}"
    good = stack.example("chat.yaml")
    good["metadata"]["name"] = name
    bad = json.loads(json.dumps(good))
    for block, fields in change.items():
        bad["spec"][block].update(fields)
    service = Service(operator, namespace, name)
    try:
        operator.apply(yaml.safe_dump(bad), namespace)
        ready = service.wait_for("Stalled", "True", timeout_s=180)
        assert named in ready["message"]
        assert service.condition("Ready")["status"] == "False"
        operator.apply(yaml.safe_dump(good), namespace)
        service.wait_for("Progressing", "True", timeout_s=180)
        for stored in polling(service.read, 90):
            if condition_of(stored, "Stalled")["status"] != "True":
                break
        assert service.condition("Stalled")["status"] != "True"
    finally:
        operator.kubectl(
            "delete", KIND, name, "-n", namespace, "--wait=false", "--ignore-not-found"
        )


def test_deletion_works_with_the_operator_down(chat: Service, operator: Cluster) -> None:
    deployment = ("deployment", stack.RELEASE, "-n", stack.OPERATOR_NAMESPACE)
    operator.kubectl("scale", *deployment, "--replicas=0")
    try:
        operator.kubectl(
            *("wait", "pod", "--for=delete", "--timeout=60s", "-l", OPERATOR_PODS),
            *("-n", stack.OPERATOR_NAMESPACE),
        )
        chat.cluster.kubectl(
            "delete", KIND, "chat", "-n", chat.namespace, "--ignore-not-found", timeout_s=60
        )
        selector = "headway.dev/service=chat"
        for _ in polling(lambda: None, 120, period_s=1):
            left = [
                f"{kind}/{each['metadata']['name']}"
                for kind in ("deployments", "services", "pods", "configmaps", *OTHERS)
                for each in chat.cluster.list(kind, chat.namespace, selector)
            ]
            if not left:
                break
        assert left == []
        with pytest.raises(KubectlError, match="not found"):
            chat.read()
    finally:
        operator.kubectl("scale", *deployment, "--replicas=1")
        operator.kubectl("rollout", "status", *deployment, "--timeout=120s", timeout_s=150)
