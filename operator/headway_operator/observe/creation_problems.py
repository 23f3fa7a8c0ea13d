"""Why pods are not even created: from the Deployment's ReplicaFailure condition."""

from __future__ import annotations

import re

from headway_operator.observe.problems import Problem, Tier, shown
from headway_operator.observe.records import ConditionRecord

_QUOTA = re.compile(r"exceeded quota: ([^\s,]{1,253})")
_MISSING = (
    (re.compile(r'serviceaccount "([^"]{1,253})" not found'), "ServiceAccount"),
    (re.compile(r"no PriorityClass with name (\S{1,253}) was found"), "PriorityClass"),
    (re.compile(r'RuntimeClass "([^"]{1,253})" not found'), "RuntimeClass"),
)


def creation_problem(failure: ConditionRecord | None) -> Problem | None:
    """What keeps the Deployment from creating pods, or None."""
    if failure is None or failure.status != "True":
        return None
    message = failure.message
    quota = _QUOTA.search(message)
    if quota:
        text = f"Quota {shown('name', quota[1])} is used up: raise it or lower replicas"
        return Problem("QuotaExceeded", text, Tier.RESOURCE, stalls=False)
    if "violates PodSecurity" in message:
        text = "The namespace's pod security level refuses the pods: check engine.volumes"
        return Problem("PodSecurityViolated", text, Tier.BAD_DATA, stalls=True)
    for pattern, kind in _MISSING:
        found = pattern.search(message)
        if found:
            name = shown("name", found[1].rstrip("."))
            text = f"{kind} {name} does not exist: create it or correct the name"
            return Problem("ReferenceNotFound", text, Tier.BAD_DATA, stalls=True)
    text = "Pods cannot be created: `kubectl describe replicaset` says why"
    return Problem("PodCreationFailed", text, Tier.SYSTEM, stalls=False)
