"""One InferenceService as a user watches it: its conditions, its pods, its engine's metrics."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.kube import Cluster, KubectlError
from tests.e2e.waiting import patiently, polling

FALLBACKS = "headway_fallbacks_total"
"""Steps that an engine decided alone, as where a plan came too late on a busy machine."""

KIND = "inferenceservices.headway.dev"


@dataclass(frozen=True)
class Service:
    """Handle of an InferenceService."""

    cluster: Cluster
    namespace: str
    name: str

    def read(self) -> dict[str, Any]:
        """The object as stored."""
        return self.cluster.get(KIND, self.name, self.namespace)

    def patch(self, change: dict[str, Any]) -> None:
        """Merge a change into it."""
        self.cluster.patch(KIND, self.name, self.namespace, change)

    @contextlib.contextmanager
    def restored(self, change: Mapping[str, Any]) -> Iterator[None]:
        """Whatever happens to the fields of the spec that a change names, afterwards they are back.

        Raises:
            TimeoutError: the pods did not take what they had before.
        """
        before = undoing(change, self.read()["spec"])
        try:
            yield
        finally:
            self.patch({"spec": before})
            self.wait_for("PolicyApplied", "True", timeout_s=90)

    @contextlib.contextmanager
    def changed(self, change: Mapping[str, Any]) -> Iterator[None]:
        """The service under a changed spec, taken by its pods; afterwards as it was.

        Raises:
            TimeoutError: the pods did not take it, or what they had before.
        """
        with self.restored(change):
            self.patch({"spec": dict(change)})
            self.wait_for("PolicyApplied", "True", timeout_s=90)
            yield

    def pods(self) -> list[dict[str, Any]]:
        """The pods of its engines that are not being deleted."""
        return self._pods_of("engine")

    def routers(self) -> list[dict[str, Any]]:
        """The pods of its router that are not being deleted."""
        return self._pods_of("router")

    def has_pods(self) -> bool:
        """Whether there is any pod of its engines, also one that is still being deleted."""
        return bool(self._all_pods_of("engine"))

    def _pods_of(self, component: str) -> list[dict[str, Any]]:
        found = self._all_pods_of(component)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def _all_pods_of(self, component: str) -> list[dict[str, Any]]:
        selector = f"headway.dev/service={self.name},app.kubernetes.io/component={component}"
        return self.cluster.list("pods", self.namespace, selector)

    def pod_ready(self) -> str:
        """Status of the Ready condition of its only pod."""
        return str(self._ready_of_pod()["status"])

    def ready_since(self) -> str:
        """When its only pod became ready; empty while it is not."""
        found = self._ready_of_pod()
        return str(found["lastTransitionTime"]) if found["status"] == "True" else ""

    def _ready_of_pod(self) -> dict[str, Any]:
        (pod,) = self.pods()
        return next(dict(each) for each in pod["status"]["conditions"] if each["type"] == "Ready")

    def condition(self, kind: str) -> dict[str, Any]:
        """A condition, or an Unknown one while it is not there."""
        return condition_of(self.read(), kind)

    def told(self, reason: str) -> list[str]:
        """What events with this reason say of it; others in its namespace have events too."""
        return [
            each["message"]
            for each in self.cluster.list("events", self.namespace)
            if (each["reason"], each["involvedObject"]["name"]) == (reason, self.name)
        ]

    def cluster_ip(self) -> str:
        """Address of its Service."""
        return str(self.cluster.get("service", self.name, self.namespace)["spec"]["clusterIP"])

    def wait_for(
        self, kind: str, status: str, timeout_s: float, *, reason: str | None = None
    ) -> dict[str, Any]:
        """Wait until a condition of the current generation has a status (and reason).

        Raises:
            TimeoutError: naming the conditions it had instead.
        """
        for stored in polling(self._read_or_empty, timeout_s):
            found = condition_of(stored, kind)
            current = found.get("observedGeneration") == stored.get("metadata", {}).get(
                "generation"
            )
            if current and found["status"] == status and reason in (None, found["reason"]):
                return found
        conditions = self._read_or_empty().get("status", {}).get("conditions", [])
        raise TimeoutError(f"{kind} did not become {status} in {timeout_s:.0f} s: {conditions}")

    def _read_or_empty(self) -> dict[str, Any]:
        try:
            return self.read()
        except KubectlError:
            return {}


def condition_of(stored: dict[str, Any], kind: str) -> dict[str, Any]:
    """A condition of a stored object, or an Unknown one."""
    for condition in stored.get("status", {}).get("conditions", []):
        if condition["type"] == kind:
            return dict(condition)
    return {"type": kind, "status": "Unknown", "reason": "", "message": ""}


def undoing(change: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that takes another one back.

    Args:
        change: the other one.
        now: what it is applied to. A field that is not there becomes None, which removes it.
    """

    def undone(wanted: Any, found: Any) -> Any:
        both = isinstance(wanted, dict) and isinstance(found, dict)
        return undoing(wanted, found) if both else found

    return {name: undone(wanted, now.get(name)) for name, wanted in change.items()}


def identity(pod: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, str, int], ...]]:
    """What is another one when a pod, or one of its containers, was started anew."""
    statuses = pod["status"]["containerStatuses"]
    containers = ((each["name"], each["containerID"], each["restartCount"]) for each in statuses)
    return pod["metadata"]["uid"], tuple(sorted(containers))


def pod_metrics(api_url: str, namespace: str, pod: str, port: int) -> dict[str, float]:
    """Metrics of a pod through the API server: ``name{label="value"}`` to value."""
    url = f"{api_url}/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy/metrics"
    text = fetched(url)
    samples: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            samples[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return samples


def total(metrics: Mapping[str, float], name: str) -> float:
    """The sum of a metric over its labels.

    Raises:
        LookupError: there is none of this name.
    """
    found = [value for key, value in metrics.items() if key.split("{")[0] == name]
    if not found:
        raise LookupError(f"there is no metric {name}")
    return sum(found)


def fetched(url: str) -> str:
    """What a pod answers to a GET, tried a few times."""

    def attempt() -> str:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return str(answer.read().decode())

    return patiently(attempt)


def ask(base_url: str, model: str, question: str, timeout_s: float = 60) -> str:
    """One question to the model at temperature 0, answered whole."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": question}],
        "temperature": 0,
        "max_tokens": 24,
    }
    request = urllib.request.Request(
        f"{base_url}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])
