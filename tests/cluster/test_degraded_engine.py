"""An engine that the kernel kills for its memory, on a real node: it gets less, and serves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.lab.images import ENGINE
from tests.e2e import stack
from tests.e2e.kube import Cluster
from tests.e2e.service import KIND, Service
from tests.e2e.waiting import wait_until

pytestmark = pytest.mark.cluster

NAMESPACE = "headway-memory"
PROGRAM = Path(__file__).with_name("degraded_engine.py")
PLACES = {
    "vllm/__init__.py": "",
    "vllm/_version.py": '__version__ = "0.32.0"\n',
    "vllm/entrypoints/__init__.py": "",
    "vllm/entrypoints/openai/__init__.py": "",
    "vllm/entrypoints/openai/api_server.py": PROGRAM.read_text(),
    "vllm/v1/core/sched/async_scheduler.py": "",
}
"""What the check before the start looks for, and what is started."""

SOON_S = 300


def cache_of(gib: int) -> list[dict[str, str]]:
    return [
        {"name": "PYTHONPATH", "value": "/stand-in"},
        {"name": "VLLM_CPU_KVCACHE_SPACE", "value": str(gib)},
    ]


def key(place: str) -> str:
    return place.replace("/", ".")


CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "stand-in"},
    "data": {key(place): text for place, text in PLACES.items()},
}


def document(gib: int) -> dict[str, Any]:
    items = [{"key": key(place), "path": place} for place in PLACES]
    return {
        "apiVersion": "headway.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": "large"},
        "spec": {
            "model": {"uri": "pvc://models/SmolLM2-135M-Instruct"},
            "engine": {
                "image": ENGINE,
                "env": cache_of(gib),
                "resources": {"requests": {"memory": "64Mi"}, "limits": {"memory": "3584Mi"}},
                "volumes": [
                    {"name": "stand-in", "configMap": {"name": "stand-in", "items": items}}
                ],
                "volumeMounts": [{"name": "stand-in", "mountPath": "/stand-in"}],
                "drainSeconds": 5,
                "shutdownTimeoutSeconds": 0,
            },
        },
    }


@pytest.fixture
def namespace(operator: Cluster) -> Iterator[str]:
    stack.make_namespace(operator, NAMESPACE)
    yield NAMESPACE
    operator.kubectl("delete", KIND, "--all", "-n", NAMESPACE, timeout_s=60)
    operator.kubectl("delete", "namespace", NAMESPACE, timeout_s=300)


def cache(service: Service) -> list[str]:
    return [
        each["value"]
        for pod in service.pods()
        for each in pod["spec"]["containers"][0]["env"]
        if each["name"] == "VLLM_CPU_KVCACHE_SPACE"
    ]


def test_an_engine_beyond_its_memory_limit_gets_less_of_it_and_serves(
    operator: Cluster, namespace: str
) -> None:
    """4 GiB of cache do not fit into 3.5 GiB; four fifths of it, in whole GiB, are 3."""
    service = Service(operator, namespace, "large")
    operator.apply(json.dumps(CONFIG_MAP), namespace)
    operator.apply(json.dumps(document(gib=4)), namespace)
    message = service.wait_for("Degraded", "True", SOON_S, reason="SmallerMemory")["message"]
    assert message.startswith("OOMKilled: ")
    service.wait_for("Ready", "True", SOON_S)
    assert cache(service) == ["3"]
    assert service.condition("Degraded")["status"] == "True"
    (step,) = service.read()["status"]["degradation"]
    assert (step["reason"], step["memoryPercent"]) == ("OOMKilled", 80)

    service.patch({"spec": {"engine": {"env": cache_of(1)}}})
    service.wait_for("Degraded", "False", SOON_S, reason="AsDeclared")
    service.wait_for("Ready", "True", SOON_S)
    wait_until(lambda: cache(service), lambda found: found == ["1"], SOON_S, "what is declared")
    events = operator.list("events", namespace)
    told = [each["reason"] for each in events if each["involvedObject"]["name"] == "large"]
    assert (told.count("Degraded"), told.count("Recovered")) == (1, 1)
