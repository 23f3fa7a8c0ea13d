"""The degradation ladder against a real API server; what a kubelet would say is written by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e import stack
from tests.e2e.kube import Cluster
from tests.e2e.service import KIND, Service
from tests.e2e.waiting import wait_until

pytestmark = pytest.mark.cluster

NAMESPACE = "headway-ladder"
NOWHERE = {"nodeSelector": {"headway.dev/no-such-node": "true"}}
A_GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
FALLBACK = {"step": "FallbackModel", "model": {"uri": "hf://org/smaller"}}
WITHIN_S = 60
AGES_AGO = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def namespace(operator: Cluster) -> Iterator[str]:
    operator.kubectl("create", "namespace", NAMESPACE)
    yield NAMESPACE
    operator.kubectl("delete", "namespace", NAMESPACE, timeout_s=120)


@pytest.fixture
def make(operator: Cluster, namespace: str) -> Iterator[Callable[..., Service]]:
    """Makes a service; it is gone afterwards."""

    def make(name: str, engine: dict[str, Any], **spec: Any) -> Service:
        document = {
            "apiVersion": "headway.dev/v1alpha1",
            "kind": "InferenceService",
            "metadata": {"name": name},
            "spec": {
                "model": {"uri": "hf://org/large"},
                "engine": {"image": "docker.io/lab/pause:1", **engine},
                **spec,
            },
        }
        operator.apply(json.dumps(document), namespace)
        return Service(operator, namespace, name)

    yield make
    operator.kubectl("delete", KIND, "--all", "-n", namespace, timeout_s=60)


def arguments(pod: dict[str, Any]) -> list[str]:
    return list(pod["spec"]["containers"][0]["args"])


def one_pod(service: Service, holds: Callable[[list[str]], bool]) -> dict[str, Any]:
    """The only pod, once its engine's arguments are as they should be."""
    (pod,) = wait_until(
        service.pods,
        lambda pods: len(pods) == 1 and holds(arguments(pods[0])),
        WITHIN_S,
        "one pod of the template in force",
    )
    return dict(pod)


def write_status(service: Service, pod: dict[str, Any], status: dict[str, Any]) -> None:
    name, change = pod["metadata"]["name"], json.dumps({"status": status})
    patch = ("patch", "pod", name, "-n", service.namespace, "--subresource=status")
    service.cluster.kubectl(*patch, "--type=merge", "-p", change)


def engine_status(**more: Any) -> dict[str, Any]:
    fields = {"name": "engine", "image": "x", "imageID": "x", "ready": False, "restartCount": 0}
    return {"containerStatuses": [{**fields, **more}]}


def ended(reason: str, message: str = "", restarts: int = 2) -> dict[str, Any]:
    last = {"reason": reason, "exitCode": 1, "message": message}
    times = {"startedAt": AGES_AGO, "finishedAt": AGES_AGO}
    return engine_status(
        restartCount=restarts,
        state={"waiting": {"reason": "CrashLoopBackOff"}},
        lastState={"terminated": {**last, **times}},
    )


def events(service: Service, *reasons: str) -> list[str]:
    found = service.cluster.list("events", service.namespace)
    mine = [each for each in found if each["involvedObject"]["name"] == service.name]
    return [each["message"] for each in mine if each["reason"] in reasons]


def steps(service: Service) -> list[str]:
    found = service.read().get("status", {}).get("degradation", [])
    return [each["step"] for each in found]


def with_fraction(fraction: str) -> Callable[[list[str]], bool]:
    return lambda found: found[-1] == f"--gpu-memory-utilization={fraction}"


def test_memory_is_lowered_then_the_model_changed_and_a_new_spec_takes_all_back(
    operator: Cluster, make: Callable[..., Service]
) -> None:
    service = make("memory", NOWHERE, degradation=[{"step": "SmallerMemory"}, FALLBACK])
    told = json.dumps({"reason": "EngineOutOfMemory", "captures": {}})
    write_status(
        service, one_pod(service, lambda found: "org/large" in found), ended("Error", told)
    )
    for fraction in ("0.720", "0.540", "0.360"):
        pod = one_pod(service, with_fraction(fraction))
        condition = service.wait_for("Degraded", "True", WITHIN_S, reason="SmallerMemory")
        assert condition["message"].startswith("EngineOutOfMemory: ")
        write_status(service, pod, ended("Error", told))
    one_pod(service, lambda found: "org/smaller" in found)
    service.wait_for("Degraded", "True", WITHIN_S, reason="FallbackModel")
    assert steps(service) == ["SmallerMemory", "FallbackModel"]
    assert len(events(service, "Degraded")) == 4

    generation = operator.get("deployment", "memory", NAMESPACE)["metadata"]["generation"]
    deployment = ("deployment/headway", "-n", stack.OPERATOR_NAMESPACE)
    operator.kubectl("rollout", "restart", *deployment)
    operator.kubectl("rollout", "status", *deployment, "--timeout=90s")
    # A change that only touches what is live shows that the new operator has looked.
    service.patch({"spec": {"classes": [{"name": "chat", "ttftMilliseconds": 500}]}})
    service.wait_for("Degraded", "True", WITHIN_S, reason="FallbackModel")
    assert operator.get("deployment", "memory", NAMESPACE)["metadata"]["generation"] == generation
    assert len(events(service, "Degraded")) == 4

    service.patch({"spec": {"engine": {"args": ["--dtype=half"]}}})
    service.wait_for("Degraded", "False", WITHIN_S, reason="AsDeclared")
    # The one that was degraded goes once this one serves.
    wait_until(
        lambda: [arguments(pod) for pod in service.pods()],
        lambda pods: any("org/large" in each and each[-1] == "--dtype=half" for each in pods),
        WITHIN_S,
        "a pod as it is declared now",
    )
    assert steps(service) == []
    assert len(events(service, "Recovered")) == 2


def test_what_no_step_helps_with_is_stalled(make: Callable[..., Service]) -> None:
    service = make("stuck", NOWHERE)
    told = json.dumps({"reason": "KVCacheTooSmall", "captures": {}})
    pod = one_pod(service, lambda _: True)
    service.wait_for("Ready", "False", WITHIN_S, reason="Unschedulable")
    placed = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
    write_status(service, pod, {**ended("Error", told, restarts=3), **placed})
    service.wait_for("Stalled", "True", WITHIN_S, reason="KVCacheTooSmall")
    assert service.condition("Degraded")["status"] == "False"


def test_pods_without_a_gpu_are_given_up_and_one_is_always_kept(
    make: Callable[..., Service],
) -> None:
    stack.lab("fake-gpus", "0")
    ladder = [{"step": "FewerReplicas", "afterSeconds": 5}]
    service = make("room", A_GPU, replicas=2, degradation=ladder)
    first, _ = wait_until(service.pods, lambda pods: len(pods) == 2, WITHIN_S, "two pods")
    service.wait_for("Ready", "False", WITHIN_S, reason="InsufficientGPU")
    assert steps(service) == []
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": AGES_AGO}
    conditions = [*first["status"].get("conditions", []), ready]
    write_status(service, first, {**engine_status(ready=True), "conditions": conditions})
    condition = service.wait_for("Degraded", "True", WITHIN_S, reason="FewerReplicas")
    assert condition["message"].startswith("InsufficientGPU: ")
    (kept,) = wait_until(service.pods, lambda pods: len(pods) == 1, WITHIN_S, "one pod")
    assert kept["metadata"]["uid"] == first["metadata"]["uid"]
    service.wait_for("Ready", "True", WITHIN_S)

    service.patch({"spec": {"replicas": 1}})
    service.wait_for("Degraded", "False", WITHIN_S, reason="AsDeclared")
    assert len(events(service, "Degraded")) == len(events(service, "Recovered")) == 1
