"""The condition ScalingLimited."""

from __future__ import annotations

from headway_operator.decide.facts import Facts
from headway_operator.decide.verdict import Verdict


def scaling_limited(facts: Facts) -> Verdict | None:
    """Whether more pods are needed than the user allows, or than the cluster gives.

    None while it is not known how many are: the condition then stays as it is.
    """
    scaled = facts.scaled
    if scaled is None or facts.spec is None:
        return None
    if scaled.memory is None:
        return Verdict("False", "External", "spec.replicas says how many pods run")
    if scaled.wanted is None:
        return None
    if facts.problem is not None and not facts.outdated:
        problem = facts.problem
        text = f"{facts.ready} of {facts.wanted} pods answer requests. {problem.message}"
        return Verdict("True", problem.reason, text, alarming=True)
    most = facts.spec.scaling.max_replicas
    if scaled.wanted > most:
        text = f"More pods are needed than scaling.maxReplicas allows, which is {most}"
        return Verdict("True", "AtMaxReplicas", text, alarming=True)
    return Verdict("False", "WithinBounds", "As many pods run as are needed")
