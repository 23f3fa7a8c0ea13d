"""Mode External under Kubernetes' own HPA controller, which goes through the scale subresource."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e import stack
from tests.e2e.custom_metrics import METRIC, Metrics, served
from tests.e2e.kube import Cluster
from tests.e2e.service import KIND, Service
from tests.e2e.waiting import wait_until
from tests.scale.workload import services

pytestmark = pytest.mark.cluster

NAME = "autoscaled"
TARGET = 0.5
SYNC_SECONDS = 120
"""Many of the controller's looks, and what it takes to find a new metrics API."""


class Work:
    """What requests bring all pods together, in pods; each of them tells its part."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.total = 0.4

    def of_pods(self, namespace: str, selector: str) -> dict[str, float]:
        """The part of each pod that is selected."""
        pods = self.cluster.list("pods", namespace, selector)
        return {each["metadata"]["name"]: self.total / len(pods) for each in pods}


@pytest.fixture
def autoscaled(operator: Cluster, namespace: str) -> Iterator[Service]:
    """A service of one pod on a node that exists in the API only, with an HPA."""
    (document,) = services(1, 1)
    document["metadata"] = {"name": NAME}
    stack.lab("kwok", "1")
    service = Service(operator, namespace, NAME)
    try:
        operator.apply(yaml.safe_dump(document), namespace)
        service.wait_for("Ready", "True", timeout_s=120)
        yield service
    finally:
        operator.kubectl("delete", "hpa", NAME, "-n", namespace, "--ignore-not-found")
        operator.kubectl("delete", KIND, NAME, "-n", namespace)
        selector = ("-l", f"headway.dev/service={NAME}", "-n", namespace)
        operator.kubectl("delete", "pods", "--force", "--grace-period=0", *selector)
        stack.lab("kwok", "0")


def autoscaler() -> dict[str, Any]:
    target = {"apiVersion": "headway.dev/v1alpha1", "kind": "InferenceService", "name": NAME}
    value = {"type": "AverageValue", "averageValue": f"{round(1000 * TARGET)}m"}
    at_once = {"stabilizationWindowSeconds": 0}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": NAME},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": 5,
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": METRIC}, "target": value}}],
            "behavior": {"scaleDown": at_once, "scaleUp": at_once},
        },
    }


def test_an_hpa_sets_the_replicas_and_the_operator_follows(
    autoscaled: Service, namespace: str
) -> None:
    cluster = autoscaled.cluster
    work = Work(cluster)
    metrics = Metrics(work.of_pods)

    def replicas() -> tuple[int, int, int, int]:
        """By the HPA's will, the operator's, those that run, and those of the status."""
        stored = autoscaled.read()
        deployment = cluster.get("deployment", NAME, namespace)
        ready = stored["status"].get("readyReplicas", 0)
        return (
            stored["spec"]["replicas"],
            deployment["spec"]["replicas"],
            ready,
            len(autoscaled.pods()),
        )

    def reach(pods: int) -> None:
        wanted = (pods,) * 4
        wait_until(
            replicas, lambda found: found == wanted, timeout_s=SYNC_SECONDS, what=f"{pods} pods"
        )

    with served(cluster, namespace, metrics):
        cluster.apply(json.dumps(autoscaler()), namespace)
        work.total = 1.4
        reach(3)  # 1.4 / 0.5, and 1.4 / 3 is within a tenth of 0.5
        selector = autoscaled.read()["status"]["selector"]
        assert metrics.selectors == {selector}
        selected = {each["metadata"]["name"] for each in cluster.list("pods", namespace, selector)}
        assert selected == {each["metadata"]["name"] for each in autoscaled.pods()}
        told = {each["type"]: each["status"] for each in conditions(cluster, namespace)}
        assert told["AbleToScale"] == told["ScalingActive"] == "True"
        work.total = 0.4
        reach(1)
    limited = autoscaled.condition("ScalingLimited")
    assert (limited["status"], limited["reason"]) == ("False", "External")


def conditions(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cluster.get("hpa", NAME, namespace)["status"]["conditions"]
    return found
