"""Services that need more GPUs than there are: the operator divides them by priority."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e import stack
from tests.e2e.fake_engines import telling
from tests.e2e.kube import Cluster
from tests.e2e.service import KIND, Service
from tests.e2e.waiting import wait_until
from tests.scale.workload import services

pytestmark = pytest.mark.cluster

QUOTA = 4
TICKS_SECONDS = 120
"""Some dozen looks, and what a busy machine adds."""


def document(name: str, **scaling: Any) -> dict[str, Any]:
    """A service on fake nodes whose pods take one GPU each."""
    (found,) = services(1, 1)
    found["metadata"] = {"name": name}
    found["spec"]["engine"]["resources"]["limits"]["nvidia.com/gpu"] = "1"
    found["spec"]["scaling"] = {"mode": "Operator", "minReplicas": 1, **scaling}
    return found


@pytest.fixture
def sharing(operator: Cluster, namespace: str) -> Iterator[tuple[Service, Service]]:
    """Two services that always need more, one of which matters more, under a quota."""
    cluster, images = stack.bring_up()
    names = ("matters", "may-wait")
    stack.lab("kwok", "1")
    try:
        stack.install_chart(cluster, images, f"gpuQuota={QUOTA}")
        with telling(token_load=1.0, step_overhead=0.2):
            wanted = (
                document(names[0], maxReplicas=2, priority=10),
                document(names[1], maxReplicas=6),
            )
            operator.apply(yaml.safe_dump_all(wanted), namespace)
            first, other = (Service(operator, namespace, name) for name in names)
            yield first, other
    finally:
        operator.kubectl("delete", KIND, *names, "-n", namespace, "--ignore-not-found")
        selector = ("-l", f"headway.dev/service in ({','.join(names)})", "-n", namespace)
        operator.kubectl("delete", "pods", "--force", "--grace-period=0", *selector)
        stack.lab("kwok", "0")
        stack.install_chart(cluster, images)


def test_the_higher_priority_gets_its_gpus_and_the_lower_what_is_left(
    sharing: tuple[Service, Service],
) -> None:
    matters, may_wait = sharing

    def pods() -> tuple[int, int]:
        found = [
            each.cluster.get("deployment", each.name, each.namespace)["spec"]["replicas"]
            for each in sharing
        ]
        return found[0], found[1]

    def reach(first: int, other: int) -> None:
        matters.wait_for("Ready", "True", timeout_s=TICKS_SECONDS)
        may_wait.wait_for("Ready", "True", timeout_s=TICKS_SECONDS)
        wanted = first, other
        wait_until(pods, lambda found: found == wanted, TICKS_SECONDS, f"{wanted} pods")
        limited = may_wait.wait_for("ScalingLimited", "True", 30, reason="GpuQuota")
        assert f"it gets {other} of the {QUOTA} GPUs" in limited["message"]

    reach(2, 2)
    matters.wait_for("ScalingLimited", "True", 30, reason="AtMaxReplicas")
    matters.patch({"spec": {"scaling": {"maxReplicas": 3}}})
    reach(3, 1)
