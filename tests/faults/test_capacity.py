"""There is no room for a pod: the others serve on, and it comes as soon as there is."""

from __future__ import annotations

import pytest

from tests.cluster.lab.images import PAUSE
from tests.e2e.service import Service
from tests.e2e.waiting import wait_until
from tests.faults.changing import add_env, create, delete, gpus
from tests.faults.conftest import RecordFault

pytestmark = pytest.mark.cluster

QUOTA_HOLDS_S = 45
REMEDY = "Add nodes, free some or lower replicas"


def test_no_gpu(chat: Service, record: RecordFault) -> None:
    """No GPU free.

    The node has one GPU (a number only, as extended resources are), which the service's pod has. A
    second pod is asked for. Later the node has two.
    """
    gpus(1)
    with record(chat) as fault:
        fault.cause("replicas 1 -> 2, and the node has one GPU")
        chat.patch({"spec": {"replicas": 2}})
        message = fault.shown(chat, "Ready", "False", "InsufficientGPU")
        assert message == f"0/1 nodes are available: 1 Insufficient nvidia.com/gpu. {REMEDY}"
        assert chat.condition("Stalled")["status"] == "False"
        fault.mend("the node has two GPUs")
        gpus(2)
        fault.recovered(chat, pods=2)
    assert fault.recording.lost() == []
    assert fault.seen("event", "Warning InsufficientGPU")


def test_preemption(pair: Service, record: RecordFault) -> None:
    """A pod of a higher priority takes the GPU of one of two pods.

    Two pods on two GPUs; a pod with a PriorityClass above theirs asks for one. It is deleted later.
    """
    create(pair, URGENT_CLASS)
    try:
        with record(pair) as fault:
            fault.cause("the pod `urgent` asks for a GPU")
            create(pair, URGENT_POD)
            fault.shown(pair, "Ready", "False", "InsufficientGPU")
            assert fault.seen("event", "Preempted")
            wait_until(
                lambda: pair.cluster.get("pod", "urgent", pair.namespace)["status"]["phase"],
                lambda phase: phase == "Running",
                timeout_s=120,
                what="the other pod running",
            )
            fault.did("the pod `urgent` runs")
            fault.mend("the pod `urgent` is deleted")
            delete(pair, "pod", "urgent")
            fault.recovered(pair, pods=2)
        assert fault.recording.lost() == []
    finally:
        delete(pair, "pod", "urgent")
        delete(pair, "priorityclass", "urgent")


URGENT_CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 1_000_000,
}
URGENT_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "urgent"},
    "spec": {
        "priorityClassName": "urgent",
        "terminationGracePeriodSeconds": 0,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "pause",
                "image": PAUSE,
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    },
}


def test_quota(chat: Service, record: RecordFault) -> None:
    """A ResourceQuota that is used up.

    The namespace may have one pod, which is there. A second one is asked for. Later the quota
    allows three.
    """
    create(chat, quota(1))
    try:
        with record(chat) as fault:
            fault.cause("replicas 1 -> 2, and a ResourceQuota allows one pod")
            chat.patch({"spec": {"replicas": 2}})
            message = fault.shown(chat, "Ready", "False", "QuotaExceeded")
            assert message == "Quota few-pods is used up: raise it or lower replicas"
            assert chat.condition("Stalled")["status"] == "False"
            # Kubernetes tries again ever more rarely: what that does is part of the fault.
            fault.watch_for(QUOTA_HOLDS_S)
            fault.mend("the ResourceQuota allows three pods")
            create(chat, quota(3))
            fault.recovered(chat, pods=2)
        assert fault.recording.lost() == []
        assert fault.seen("event", "Warning QuotaExceeded")
    finally:
        delete(chat, "resourcequota", "few-pods")


def quota(pods: int) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few-pods"},
        "spec": {"hard": {"pods": str(pods)}},
    }


def test_rollout_without_a_spare_gpu(chat: Service, record: RecordFault) -> None:
    """A rollout without a spare GPU.

    The node has one GPU, which the service's pod has; a new version of the engine is wanted. After
    some time the node has two GPUs.
    """
    gpus(1)
    with record(chat) as fault:
        (old,) = chat.pods()
        fault.cause("engine.env changes, and the node has one GPU")
        add_env(chat, {"name": "NEXT_VERSION", "value": "1"})
        fault.shown(chat, "Ready", "False", "InsufficientGPU")
        names = wait_until(
            lambda: [pod["metadata"]["name"] for pod in chat.pods()],
            lambda names: len(names) == 2,
            timeout_s=30,
            what="a pod of each version",
        )
        assert old["metadata"]["name"] in names
        fault.mend("the node has two GPUs")
        gpus(2)
        fault.recovered(chat)
    assert fault.recording.lost() == []
