"""Who is ready, and whom the Service selects."""

from __future__ import annotations

from headway_operator.observe.records import PodRecord
from headway_operator.snapshot import Snapshot


def ready_pods(pods: tuple[PodRecord, ...]) -> int:
    """How many pods are ready and stay."""
    return sum(pod.ready and not pod.deleting for pod in pods)


def has_no_node(pod: PodRecord) -> bool:
    """Whether the scheduler found no node for a pod."""
    told = pod.scheduled
    return told is not None and (told.status, told.reason) == ("False", "Unschedulable")


def points_to(snapshot: Snapshot) -> str:
    """The component whose pods the Service selects; empty while there is no Service."""
    service = snapshot.children.get("Service")
    return service.points_to if service else ""
