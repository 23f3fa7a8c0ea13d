"""Why a pod has no node, or its node cannot prepare it, or is gone: from the pod's conditions."""

from __future__ import annotations

import re

from headway_operator.api.labels import ENGINE, SIDECAR
from headway_operator.observe.problems import Problem, Tier, shown
from headway_operator.observe.records import ConditionRecord, PodRecord

_MISSING_CLAIM = re.compile(r'persistentvolumeclaim "([^"]{1,253})" not found')
_UNBOUND_CLAIM = "unbound immediate PersistentVolumeClaims"
_NODES = re.compile(r"\b0/([0-9]{1,6}) nodes are available")
_INSUFFICIENT = re.compile(r"\b([0-9]{1,6}) Insufficient ([a-z0-9][-a-z0-9./]{0,127})")


PREPARED_WITHIN_SECONDS = 30
"""Volumes are mounted in a few seconds; after this long something they need is missing."""


def preparation_problem(pod: PodRecord, now: float) -> Problem | None:
    """A pod that has a node but, after some time, neither volumes nor network.

    Which of them is missing is told by events only.
    """
    prepared = pod.prepared
    if prepared is None or prepared.status != "False" or _is_unscheduled(pod):
        return None
    if now - prepared.since < PREPARED_WITHIN_SECONDS:
        return None
    return Problem(
        "VolumesNotMounted",
        "The pod's volumes are not mounted, or it has no network: check that every Secret, "
        "ConfigMap and claim it mounts exists. `kubectl describe pod` says which",
        Tier.TEMPORARY,
        stalls=False,
    )


def node_problem(pod: PodRecord) -> Problem | None:
    """A pod whose node is not heard of any more.

    The node said last that all containers are ready; that the pod is not comes from Kubernetes'
    node controller, which marks the pods of a silent node and gives no reason.
    """
    all_ready = all(each.ready for each in pod.containers.values())
    if pod.gated or not all_ready or not {ENGINE, SIDECAR} <= pod.containers.keys():
        return None
    return Problem(
        "NodeNotReady",
        "The pod's node is not heard of, so nothing is sent to the pod, and it is replaced later: "
        "look at `kubectl get nodes`, and delete a node that does not come back",
        Tier.TEMPORARY,
        stalls=False,
    )


def _is_unscheduled(pod: PodRecord) -> bool:
    return pod.scheduled is None or pod.scheduled.status != "True"


def scheduling_problem(scheduled: ConditionRecord | None) -> Problem | None:
    """What keeps a pod from getting a node, in the scheduler's own figures."""
    if scheduled is None or scheduled.status != "False":
        return None
    message = scheduled.message
    missing = _MISSING_CLAIM.search(message)
    if missing:
        return _missing_claim(shown("name", missing[1]))
    if _UNBOUND_CLAIM in message:
        return Problem(
            "VolumeClaimUnbound",
            "A PersistentVolumeClaim of the pod is not bound to a volume: check its storage class",
            Tier.RESOURCE,
            stalls=False,
        )
    insufficient = _INSUFFICIENT.findall(message)
    if insufficient:
        return _insufficient(message, insufficient)
    return _no_node(scheduled.reason)


def _missing_claim(claim: str) -> Problem:
    return Problem(
        "VolumeClaimNotFound",
        f"PersistentVolumeClaim {claim} does not exist: create it or correct the name",
        Tier.BAD_DATA,
        stalls=True,
    )


def _insufficient(message: str, found: list[tuple[str, str]]) -> Problem:
    """GPUs are named first: they are what is usually short and what matters here."""
    count, resource = min(found, key=lambda each: ("gpu" not in each[1], each[1]))
    nodes = _NODES.search(message)
    total = shown("number", nodes[1]) if nodes else "?"
    resource = shown("resource", resource.rstrip("./"))
    return Problem(
        "InsufficientGPU" if "gpu" in resource else "InsufficientResources",
        f"0/{total} nodes are available: {count} Insufficient {resource}. "
        "Add nodes, free some or lower replicas",
        Tier.RESOURCE,
        stalls=False,
    )


def _no_node(reason: str) -> Problem:
    if reason == "SchedulingGated":
        return Problem(
            "SchedulingGated",
            "A scheduling gate holds the pod back until a queue admits it",
            Tier.TEMPORARY,
            stalls=False,
        )
    return Problem(
        "Unschedulable",
        "No node fits the pod: check nodeSelector, affinity and tolerations",
        Tier.RESOURCE,
        stalls=False,
    )
