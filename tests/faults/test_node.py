"""A node dies: its pods are no longer counted, and come again elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.lab import kwok
from tests.cluster.lab.addresses import FAKE_POD_NETWORK
from tests.cluster.lab.paths import Paths
from tests.cluster.lab.processes import start_component, stop_components
from tests.e2e import stack
from tests.e2e.kube import Cluster
from tests.e2e.service import Service
from tests.faults.conftest import RecordFault
from tests.scale.workload import services

pytestmark = pytest.mark.cluster

FAKE_NODES = 2


@pytest.fixture
def on_fake_nodes(operator: Cluster, namespace: str) -> Iterator[Service]:
    """A service of two pods on nodes that exist in the API only; nothing of it serves."""
    (document,) = services(1, 2)
    document["metadata"] = {"name": "faked"}
    stack.lab("kwok", str(FAKE_NODES))
    service = Service(operator, namespace, "faked")
    try:
        operator.apply(yaml.safe_dump(document), namespace)
        service.wait_for("Ready", "True", timeout_s=120)
        yield service
    finally:
        operator.kubectl("delete", "inferenceservices.headway.dev", "faked", "-n", namespace)
        selector = ("-l", "headway.dev/service=faked", "-n", namespace)
        operator.kubectl("delete", "pods", "--force", "--grace-period=0", *selector)
        stack.lab("kwok", "0")


def unplug(cluster: Cluster, node: str) -> None:
    """Have kwok do nothing for a node any more: it looks at the annotation when it starts."""
    paths = Paths.from_environment(os.environ)
    cluster.kubectl("annotate", "node", node, "kwok.x-k8s.io/node-")
    stop_components(paths, [kwok.COMPONENT])
    start_component(paths, kwok.kwok_command(paths, FAKE_POD_NETWORK))


def test_node_gone(on_fake_nodes: Service, record: RecordFault) -> None:
    """A node that is gone.

    Two pods on kwok's nodes, which exist in the API only: the pods are as Kubernetes sees them and
    serve nobody, so there is no client. One node says nothing any more, as with its cable pulled;
    later its object is deleted, as a cloud's controller does.
    """
    service = on_fake_nodes
    with record(service, period_s=None) as fault:
        node = service.pods()[0]["spec"]["nodeName"]
        fault.cause("a node with pods of the service says nothing any more")
        unplug(service.cluster, node)
        message = fault.shown(service, "Ready", "False", "NodeNotReady")
        assert "delete a node that does not come back" in message
        fault.mend("the node's object is deleted")
        service.cluster.kubectl("delete", "node", node)
        service.wait_for("Ready", "True", timeout_s=240)
        fault.recording.marks["recovered"] = fault.now_s()
    nodes = {pod["spec"]["nodeName"] for pod in service.pods()}
    assert node not in nodes
