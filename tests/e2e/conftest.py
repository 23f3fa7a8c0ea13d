"""A namespace and one warm engine that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e import stack
from tests.e2e.kube import Cluster
from tests.e2e.service import KIND, Service

NAMESPACE = "headway-test"


@pytest.fixture(scope="session")
def namespace(operator: Cluster) -> Iterator[str]:
    """A namespace under the restricted profile; gone afterwards, with everything in it."""
    stack.make_namespace(operator, NAMESPACE)
    yield NAMESPACE
    # First what has pods: a namespace's own deletion sleeps for half of their grace period.
    operator.kubectl("delete", KIND, "--all", "-n", NAMESPACE, timeout_s=60)
    operator.kubectl(
        "wait", "pod", "--all", "--for=delete", "-n", NAMESPACE, "--timeout=280s", timeout_s=300
    )
    operator.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout_s=300)


def patient(document: dict[str, Any]) -> None:
    """Drain alone protects requests and has time; no target is too tight for a slow machine."""
    document["spec"]["engine"] |= {"drainSeconds": 240, "shutdownTimeoutSeconds": 0}
    for each in document["spec"]["classes"]:
        if "tpotMilliseconds" in each:
            each |= {"ttftMilliseconds": 600_000, "tpotMilliseconds": 600_000}


@pytest.fixture(scope="session")
def chat(operator: Cluster, namespace: str) -> Service:
    """examples/chat.yaml, Ready. The last test of the file deletes it."""
    operator.apply(yaml.safe_dump(stack.example("chat.yaml", patient)), namespace)
    service = Service(operator, namespace, "chat")
    service.wait_for("Ready", "True", timeout_s=600)
    return service


@pytest.fixture(scope="session")
def api_url(cluster: Cluster) -> Iterator[str]:
    """The API server on loopback, through which pods and services are reached."""
    with cluster.proxy() as url:
        yield url
