"""Fake nodes, for measuring at scale: kwok says of their pods that they are ready, and runs none.

They are tainted, so only pods that tolerate the taint go there; kwok leaves the real node alone.
"""

from pathlib import Path
from typing import Any

from .credentials import KWOK_USER
from .kubectl import FAKE_KEY, FAKE_VALUE, apply, fake_nodes, kubectl
from .paths import Paths
from .rbac import cluster_role

COMPONENT = "kwok"
TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
ROLE = cluster_role(
    COMPONENT,
    KWOK_USER,
    [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/status", "pods/status"], "verbs": ["patch"]},
        {
            "apiGroups": [""],
            "resources": ["pods"],
            "verbs": ["get", "list", "watch", "patch", "delete"],
        },
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["get", "list", "watch", "create", "update", "patch"],
        },
    ],
)

_ANNOTATION = "kwok.x-k8s.io/node"
_RESOURCES = {"cpu": "192", "memory": "2Ti", "pods": "250", "nvidia.com/gpu": "8"}


def kwok_command(paths: Paths, pod_network: str) -> list[str | Path]:
    """The command that runs kwok, without a server of its own: nothing listens.

    `pod_network` is where pods of fake nodes get their addresses, counting up from the one given,
    such as 10.200.0.1/16.
    """
    return [
        paths.bin / COMPONENT,
        f"--kubeconfig={paths.pki / 'kwok.kubeconfig'}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={_ANNOTATION}=fake",
        f"--cidr={pod_network}",
        # Renewed well within the controller manager's grace of 50 s, also on a busy machine.
        "--node-lease-duration-seconds=40",
    ]


def fake_node(number: int) -> dict[str, Any]:
    """A node as large as a usual GPU server."""
    name = f"fake-{number:04d}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {_ANNOTATION: "fake"},
            "labels": {FAKE_KEY: FAKE_VALUE, "kubernetes.io/hostname": name},
        },
        "spec": {"taints": [TAINT]},
        "status": {"capacity": _RESOURCES, "allocatable": _RESOURCES},
    }


def set_fake_nodes(paths: Paths, count: int) -> None:
    """Create or delete fake nodes until there are `count`."""
    nodes = [fake_node(number) for number in range(count)]
    wanted = {node["metadata"]["name"] for node in nodes}
    surplus = [name for name in fake_nodes(paths) if name not in wanted]
    if surplus:
        kubectl(paths, "delete", "node", *surplus, "--ignore-not-found")
    if nodes:
        apply(paths, nodes)
