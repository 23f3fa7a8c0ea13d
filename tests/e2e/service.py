"""One InferenceService as a user watches it: its conditions, its pods, its engine's metrics."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.kube import Cluster, KubectlError

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

    def pods(self) -> list[dict[str, Any]]:
        """Its pods that are not being deleted."""
        found = self.cluster.list("pods", self.namespace, f"headway.dev/service={self.name}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def pod_ready(self) -> str:
        """Status of the Ready condition of its only pod."""
        (pod,) = self.pods()
        return next(str(c["status"]) for c in pod["status"]["conditions"] if c["type"] == "Ready")

    def condition(self, kind: str) -> dict[str, Any]:
        """A condition, or an Unknown one while it is not there."""
        return condition_of(self.read(), kind)

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


def polling(read: Any, timeout_s: float, period_s: float = 0.25) -> Iterator[Any]:
    """Yield what ``read()`` returns again and again until the time is over."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        yield read()
        time.sleep(period_s)


def pod_metrics(api_url: str, namespace: str, pod: str, port: int) -> dict[str, float]:
    """Metrics of a pod through the API server: ``name{label="value"}`` to value."""
    url = f"{api_url}/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy/metrics"
    text = _get(url)
    samples: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            samples[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return samples


def _get(url: str, tries: int = 3) -> str:
    """What a pod answers. On a busy machine the way to it may be closed for a moment."""
    for _ in range(tries - 1):
        with contextlib.suppress(urllib.error.URLError):
            return _get(url, tries=1)
        time.sleep(1)
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read().decode())


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
