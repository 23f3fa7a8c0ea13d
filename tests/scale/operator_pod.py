"""The operator's pod as the cluster and its own metrics show it."""

from __future__ import annotations

import contextlib
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.e2e import stack
from tests.e2e.kube import Cluster
from tests.e2e.service import pod_metrics
from tests.scale.histogram import buckets_of

USER = f"system:serviceaccount:{stack.OPERATOR_NAMESPACE}:headway"
"""As the audit log names it."""

_METRICS_PORT = 8081
_TIMEOUT_S = 30
_ACCEPTED = ("Applied", "AlreadyApplied")


@dataclass(frozen=True)
class OperatorPod:
    """The only pod of the operator."""

    cluster: Cluster
    api_url: str
    name: str
    node: str

    @classmethod
    def find(cls, cluster: Cluster, api_url: str) -> OperatorPod:
        """The pod that runs now."""
        selector = "app.kubernetes.io/component=operator"
        (pod,) = cluster.list("pods", stack.OPERATOR_NAMESPACE, selector)
        return cls(cluster, api_url, pod["metadata"]["name"], pod["spec"]["nodeName"])

    def metrics(self) -> dict[str, float]:
        """Its own metrics."""
        return pod_metrics(self.api_url, stack.OPERATOR_NAMESPACE, self.name, _METRICS_PORT)

    def working_set_bytes(self) -> float | None:
        """Its memory as the kubelet counts it against the limit; None before the first reading."""
        url = f"{self.api_url}/api/v1/nodes/{self.node}/proxy/metrics/resource"
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
            lines = answer.read().decode().splitlines()
        wanted = f'pod="{self.name}"'
        for line in lines:
            if line.startswith("container_memory_working_set_bytes{") and wanted in line:
                # NAME{LABELS} VALUE TIMESTAMP
                return float(line.rpartition("}")[2].split()[0])
        return None

    def endings(self) -> list[str]:
        """Why its container was restarted; empty if it never was."""
        pod = self.cluster.get("pod", self.name, stack.OPERATOR_NAMESPACE)
        (status,) = pod["status"]["containerStatuses"]
        last = status["lastState"].get("terminated", {})
        return [last.get("reason", "unknown")] * status["restartCount"]


@dataclass
class Memory:
    """The operator's memory as it was seen from time to time; the kubelet looks every 10 s or so.

    Attributes:
        seen_bytes: all readings.
    """

    pod: OperatorPod
    seen_bytes: list[float] = field(default_factory=list)

    def look(self) -> None:
        """Take a reading, if there is one."""
        with contextlib.suppress(OSError):
            found = self.pod.working_set_bytes()
            self.seen_bytes += [found] if found is not None else []

    @property
    def peak_mib(self) -> int | None:
        """The most that was seen."""
        return round(max(self.seen_bytes) / 2**20) if self.seen_bytes else None

    @property
    def last_mib(self) -> int | None:
        """The last reading."""
        return round(self.seen_bytes[-1] / 2**20) if self.seen_bytes else None


def cpu_seconds(metrics: Mapping[str, float]) -> float:
    """Processor time it has used."""
    return metrics["process_cpu_seconds_total"]


def reconciliations(metrics: Mapping[str, float]) -> dict[float, float]:
    """How long its successful reconciliations took: counts by upper limit in seconds."""
    return buckets_of(metrics, "headway_operator_reconcile_seconds", "outcome=done")


def pushes(metrics: Mapping[str, float]) -> dict[str, int]:
    """Policies it pushed, by the pod's answer."""
    return by_label(metrics, "headway_operator_pushes_total")


def failed_pushes(metrics: Mapping[str, float]) -> int:
    """Those that no pod took."""
    return sum(count for outcome, count in pushes(metrics).items() if outcome not in _ACCEPTED)


def by_label(metrics: Mapping[str, float], name: str) -> dict[str, int]:
    """A counter with one label, by that label's value."""
    return {
        key.partition("=")[2].rstrip("}"): round(value)
        for key, value in sorted(metrics.items())
        if key.startswith(f"{name}{{")
    }
