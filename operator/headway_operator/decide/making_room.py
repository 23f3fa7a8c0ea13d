"""Whether an old pod goes before the new one can come."""

from __future__ import annotations

from headway_operator.decide.pods import has_no_node, ready_pods
from headway_operator.observe.container_problems import container_problem
from headway_operator.observe.records import PodRecord
from headway_operator.snapshot import Snapshot


def makes_room(snapshot: Snapshot) -> bool:
    """Whether a rollout waits for what pods hold that fail.

    A spare pod comes first, so that somebody serves. Where nobody does, and a pod that fails has
    the only GPU, the one that mends it would wait for ever.
    """
    pods = [pod for pod in snapshot.pods if not pod.deleting]
    waiting = {pod.template for pod in pods if has_no_node(pod)}
    older = [pod for pod in pods if not has_no_node(pod) and pod.template not in waiting]
    return bool(waiting and older) and not ready_pods(snapshot.pods) and all(map(_fails, older))


def _fails(pod: PodRecord) -> bool:
    """Whether a container has ended and not come back: a pod that is busy is unready too."""
    return any(container_problem(each) is not None for each in pod.containers.values())
