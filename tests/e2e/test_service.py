"""The main job on real parts: an answer from a real model, engines retuned while they run."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import time
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from headway_runtime.policy import Stamp
from tests.cluster.lab.paths import Paths
from tests.e2e import audit, faults, stack
from tests.e2e.kube import Cluster, KubectlError
from tests.e2e.load import Load, Outcome
from tests.e2e.policies import Sidecar, operators_key, policy_after, sign
from tests.e2e.service import KIND, Service, ask, condition_of, pod_metrics, polling

pytestmark = pytest.mark.cluster

OPERATOR_USER = f"system:serviceaccount:{stack.OPERATOR_NAMESPACE}:headway"
OPERATOR_PODS = "app.kubernetes.io/component=operator"
OTHERS = ("poddisruptionbudgets", "networkpolicies")
METRICS_PORT = 8901
MODEL = "smollm2"


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
    assert "Paris" in ask(base_url(chat), MODEL, "What is the capital of France?")
    stored = chat.read()
    status = stored["status"]
    for kind in ("Ready", "ModelLoaded", "PolicyApplied"):
        assert condition_of(stored, kind)["status"] == "True", kind
    assert condition_of(stored, "Progressing")["status"] == "False"
    assert status["observedGeneration"] == stored["metadata"]["generation"]
    assert status["policyGeneration"] == stored["metadata"]["generation"]
    assert status["replicas"] == 1
    assert "finalizers" not in stored["metadata"]


def test_kubectl_shows_columns_worth_reading(chat: Service) -> None:
    header, row = chat.cluster.kubectl(
        "get", KIND, "chat", "-n", chat.namespace, "-o", "wide"
    ).splitlines()
    assert header.split() == ["NAME", "READY", "REASON", "REPLICAS", "MODEL", "AGE"]
    assert row.split()[:2] == ["chat", "True"]


def test_scheduling_changes_reach_the_running_engine(chat: Service, api_url: str) -> None:
    before = engine_container(chat)

    async def retune() -> list[list[dict[str, float]]]:
        async with Load(base_url(chat), MODEL, streams=8, max_tokens=24, patience_s=30) as load:
            seen = []
            for setting in ({"maxBatchSize": 2, "tokenBudget": 64}, {"maxBatchSize": 8}):
                await asyncio.to_thread(chat.patch, {"spec": {"scheduling": setting}})
                batch = setting["maxBatchSize"]
                await until_batch_is(chat, api_url, batch)
                seen.append(await watch_engine(chat, api_url, samples=10))
        assert load.outcomes
        assert load.failed() == []
        return seen

    narrow, wide = asyncio.run(retune())
    for sample in narrow:
        assert value(sample, "headway_max_batch_requests") == 2
        assert value(sample, "headway_token_budget_tokens") == 64
        assert value(sample, "headway_running_requests") <= 2
    assert any(value(sample, "headway_waiting_requests") >= 1 for sample in narrow)
    assert any(value(sample, "headway_running_requests") > 2 for sample in wide)
    after = engine_container(chat)
    assert (after["containerID"], after["restartCount"]) == (
        before["containerID"],
        before["restartCount"],
    )


async def until_batch_is(chat: Service, api_url: str, batch: int) -> None:
    """Wait until the engine runs with that batch size and what ran before has finished."""
    for _ in range(60):
        (sample,) = await watch_engine(chat, api_url, samples=1)
        in_force = value(sample, "headway_max_batch_requests") == batch
        if in_force and value(sample, "headway_running_requests") <= batch:
            return
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


def value(metrics: dict[str, float], name: str) -> float:
    return next(v for key, v in metrics.items() if key.split("{")[0] == name)


@pytest.fixture
def quiet(chat: Service) -> Iterator[Service]:
    """The service without retuning: its policy changes only with its spec."""
    chat.patch({"spec": {"scheduling": {"mode": "Off"}}})
    chat.wait_for("PolicyApplied", "True", timeout_s=90)
    yield chat
    chat.patch({"spec": {"scheduling": {"mode": "Act"}}})
    chat.wait_for("PolicyApplied", "True", timeout_s=90)


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
    assert "Paris" in ask(base_url(chat), MODEL, "What is the capital of France?")


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
    chat.patch({"spec": {"scheduling": {"tokenBudget": 500}}})
    chat.wait_for("PolicyApplied", "True", timeout_s=90)
    assert sidecar.stamp().generation > stamp.generation


def test_an_idle_service_causes_no_writes(chat: Service) -> None:
    chat.wait_for("Ready", "True", timeout_s=60)
    log = Paths.from_environment(os.environ).audit_log
    for _ in range(4):  # until what the tests before have caused is over
        begin = log.stat().st_size
        time.sleep(45)
        writes = audit.writes_since(log, begin, OPERATOR_USER)
        if not writes:
            break
    assert writes == []
    assert audit.lease_writes_since(log, begin, OPERATOR_USER) > 0


def test_a_killed_sidecar_costs_no_request_and_no_readiness(chat: Service) -> None:
    async def kill_under_load() -> tuple[Load, float, set[str]]:
        async with Load(base_url(chat), MODEL, streams=4, max_tokens=16) as load:
            await asyncio.sleep(3)
            sidecar = await asyncio.to_thread(sidecar_container, chat)
            killed_s = time.monotonic()
            assert faults.kill_children(sidecar["containerID"], "python") == 1
            ready = {await asyncio.to_thread(chat.pod_ready) for _ in range(20)}
            await asyncio.sleep(3)
        return load, killed_s, ready

    before = sidecar_container(chat)["restartCount"]
    load, killed_s, ready = asyncio.run(kill_under_load())
    assert any(each.begun_s < killed_s < each.ended_s for each in load.outcomes)
    assert any(each.begun_s > killed_s for each in load.outcomes)
    assert load.failed() == []
    assert ready == {"True"}
    assert sidecar_container(chat)["restartCount"] == before


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
    assert "Paris" in ask(base_url(chat), MODEL, "What is the capital of France?")


def test_a_running_stream_finishes_when_its_pod_is_deleted(chat: Service) -> None:
    async def delete_under_stream() -> tuple[Outcome, float]:
        outcome = Outcome(time.monotonic())
        async with Load(base_url(chat), MODEL, streams=0, max_tokens=500) as client:
            stream = asyncio.create_task(client.one("Tell me everything about the sea.", outcome))
            await asyncio.wait_for(outcome.streaming.wait(), 60)
            pod = await asyncio.to_thread(only_pod, chat)
            await asyncio.to_thread(
                chat.cluster.kubectl,
                *("delete", "pod", pod, "-n", chat.namespace, "--wait=false"),
            )
            deleted_s = time.monotonic()
            await stream
        return outcome, deleted_s

    for _ in range(3):
        outcome, deleted_s = asyncio.run(delete_under_stream())
        chat.wait_for("Ready", "True", timeout_s=300)
        assert outcome.error == ""
        assert outcome.tokens > 100
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
    killed = operator.kubectl(
        *("delete", "pod", "-n", stack.OPERATOR_NAMESPACE, "--force", "--grace-period=0"),
        *("-l", OPERATOR_PODS),
    )
    assert "deleted" in killed
    assert old in [pod["metadata"]["name"] for pod in chat.pods()]
    # The old pod serves until the new one can.
    for pods in polling(chat.pods, 300, period_s=1):
        assert "Paris" in ask_patiently(base_url(chat))
        names = [pod["metadata"]["name"] for pod in pods]
        if names != [old] and len(names) == 1:
            break
        assert old in names
    assert chat.pod_ready() == "True"
    chat.wait_for("Ready", "True", timeout_s=120)
    chat.wait_for("PolicyApplied", "True", timeout_s=60)
    (pod,) = chat.pods()
    engine = next(each for each in pod["spec"]["containers"] if each["name"] == "engine")
    assert "--max-log-len=10" in engine["args"]


def ask_patiently(url: str) -> str:
    """An answer. On a busy machine a pod may miss two probes and be out of service for a moment."""
    for attempt in range(3):
        time.sleep(5 * attempt)
        with contextlib.suppress(urllib.error.URLError, TimeoutError):
            return ask(url, MODEL, "What is the capital of France?")
    return ask(url, MODEL, "What is the capital of France?")


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
        operator.kubectl("delete", KIND, name, "-n", namespace, "--wait=false")


def test_deletion_works_with_the_operator_down(chat: Service, operator: Cluster) -> None:
    deployment = ("deployment", stack.RELEASE, "-n", stack.OPERATOR_NAMESPACE)
    operator.kubectl("scale", *deployment, "--replicas=0")
    try:
        operator.kubectl(
            *("wait", "pod", "--for=delete", "--timeout=60s", "-l", OPERATOR_PODS),
            *("-n", stack.OPERATOR_NAMESPACE),
        )
        chat.cluster.kubectl("delete", KIND, "chat", "-n", chat.namespace, timeout_s=60)
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
