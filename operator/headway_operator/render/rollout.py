"""How a Deployment goes from one template of its pods to another: the same for all that we make."""

from __future__ import annotations

from typing import Any

_REVISIONS_KEPT = 3
_SPARE_FIRST = {"maxSurge": 1, "maxUnavailable": 0}
_IN_PLACE = {"maxSurge": 0, "maxUnavailable": 1}


def rolled_out(
    template: dict[str, Any],
    replicas: int,
    selector: dict[str, str],
    deadline_seconds: int,
    *,
    in_place: bool = False,
) -> dict[str, Any]:
    """The Deployment's spec around a pod template.

    Args:
        template: of its pods.
        replicas: how many of them.
        selector: labels that its pods have.
        deadline_seconds: after which a rollout that gets no further is called a failure.
        in_place: an old pod makes room for the new one before that is there.
    """
    surge = _IN_PLACE if in_place else _SPARE_FIRST
    return {
        "replicas": replicas,
        "revisionHistoryLimit": _REVISIONS_KEPT,
        "progressDeadlineSeconds": deadline_seconds,
        "selector": {"matchLabels": selector},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": dict(surge)},
        "template": template,
    }
