"""Talking to the cluster, native or kind, through kubectl."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .commands import run
from .errors import LabError
from .paths import Paths

# The label of nodes that exist in the API only.
FAKE_KEY, FAKE_VALUE = "type", "kwok"
_FAKE = f"{FAKE_KEY}={FAKE_VALUE}"
_REAL = f"{FAKE_KEY}!={FAKE_VALUE}"

LOST_CONNECTION = (
    "Unable to connect to the server",
    "TLS handshake timeout",
    "http2: client connection lost",
    "etcdserver: request timed out",
    "unexpected EOF",
)
"""Parts of what kubectl says where the API server or etcd was too busy to answer it."""

_TRIES = 3


def kubectl(paths: Paths, *arguments: str | Path, stdin: str | None = None) -> str:
    """Run kubectl as the cluster's administrator and return what it prints.

    A connection that was lost on a busy machine is tried again.
    """
    if not paths.kubeconfig.exists():
        raise LabError(f"there is no cluster ({paths.kubeconfig} is missing): run `up`")
    command = (paths.bin / "kubectl", "--kubeconfig", paths.kubeconfig, "--request-timeout=20s")
    for number in range(1, _TRIES):
        try:
            return run([*command, *arguments], stdin=stdin)
        except LabError as error:
            if not any(text in str(error) for text in LOST_CONNECTION):
                raise
        time.sleep(number)
    return run([*command, *arguments], stdin=stdin)


def apply(paths: Paths, objects: Iterable[dict[str, Any]]) -> None:
    """Server-side apply of objects."""
    items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    kubectl(
        paths,
        *("apply", "--server-side", "--force-conflicts", "--field-manager=headway-lab", "-f", "-"),
        stdin=json.dumps(items),
    )


def get(paths: Paths, *arguments: str) -> dict[str, Any] | None:
    """An object or list as JSON; None where there is no such object."""
    text = kubectl(paths, "get", *arguments, "--ignore-not-found", "-o", "json")
    document: dict[str, Any] | None = json.loads(text) if text.strip() else None
    return document


def node_name(paths: Paths) -> str:
    """The name of the (only) node that runs pods."""
    nodes = _nodes(paths, _REAL)
    if not nodes:
        raise LabError("the cluster has no node yet: wait, or run `down` and `up`")
    return str(nodes[0]["metadata"]["name"])


def node_ready(paths: Paths) -> bool:
    """Whether the node that runs pods exists and is Ready."""
    return any(_is_ready(node) for node in _nodes(paths, _REAL))


def fake_nodes(paths: Paths) -> dict[str, bool]:
    """The nodes that exist in the API only, by name, and whether they are Ready."""
    return {node["metadata"]["name"]: _is_ready(node) for node in _nodes(paths, _FAKE)}


def _nodes(paths: Paths, selector: str) -> list[dict[str, Any]]:
    found = get(paths, "nodes", f"--selector={selector}") or {}
    nodes: list[dict[str, Any]] = found.get("items", [])
    return nodes


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def fake_gpus(paths: Paths, count: int) -> None:
    """Make the node offer `count` GPUs that do not exist, in both places the scheduler looks at."""
    patch = [
        {"op": "add", "path": f"/status/{place}/nvidia.com~1gpu", "value": str(count)}
        for place in ("capacity", "allocatable")
    ]
    kubectl(
        paths,
        *("patch", "node", node_name(paths), "--subresource=status", "--type=json"),
        *("-p", json.dumps(patch)),
    )
