"""What the benchmark asks the cluster for: many services whose pods go to fake nodes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import aiohttp

from tests.cluster.lab.kubectl import FAKE_KEY, FAKE_VALUE
from tests.cluster.lab.kwok import TAINT
from tests.e2e import stack

NAMESPACE = "headway-scale"
PODS_PER_NODE = 200
"""Below what a fake node offers."""
_APPLIED_AT_ONCE = 16


def nodes_for(pods: int) -> int:
    """Fake nodes that so many pods need."""
    return -(-pods // PODS_PER_NODE)


def services(count: int, replicas: int) -> list[dict[str, Any]]:
    """The services: the repository's example for GPUs, small enough for many on a fake node."""

    def change(document: dict[str, Any]) -> None:
        document["spec"]["replicas"] = replicas
        document["spec"]["engine"] |= {
            "resources": {
                "requests": {"cpu": "100m", "memory": "1Gi"},
                "limits": {"memory": "2Gi"},
            },
            "nodeSelector": {FAKE_KEY: FAKE_VALUE},
            "tolerations": [{**TAINT, "operator": "Equal"}],
        }

    template = stack.example("gpu-chat.yaml", change)
    names = (f"service-{number:04d}" for number in range(count))
    return [{**template, "metadata": {"name": name, "namespace": NAMESPACE}} for name in names]


async def apply(collection_url: str, bodies: Sequence[dict[str, Any]]) -> None:
    """Server-side apply of all, some at a time: one ``kubectl apply`` sends one after the other.

    Raises:
        aiohttp.ClientResponseError: one was refused.
    """
    slots = asyncio.Semaphore(_APPLIED_AT_ONCE)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:

        async def apply_one(body: dict[str, Any]) -> None:
            async with (
                slots,
                session.patch(
                    f"{collection_url}/{body['metadata']['name']}",
                    params={"fieldManager": "bench"},
                    data=json.dumps(body),
                    headers={"Content-Type": "application/apply-patch+yaml"},
                    raise_for_status=True,
                ),
            ):
                pass

        await asyncio.gather(*(apply_one(body) for body in bodies))


def namespace() -> str:
    """The namespace, under the *restricted* pod security profile."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": NAMESPACE, "labels": labels}
    return json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
