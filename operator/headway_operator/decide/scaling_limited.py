"""The condition ScalingLimited."""

from __future__ import annotations

from headway_operator.api import InferenceServiceSpec
from headway_operator.decide.facts import Facts
from headway_operator.decide.scaling import Scaled
from headway_operator.decide.verdict import Verdict


def scaling_limited(facts: Facts) -> Verdict | None:
    """Whether more pods are needed than the user allows, or than the cluster or others leave.

    None while it is not known how many are: the condition then stays as it is.
    """
    scaled = facts.scaled
    if scaled is None or facts.spec is None:
        return None
    if scaled.memory is None:
        return Verdict("False", "External", "spec.replicas says how many pods run")
    if scaled.wanted is None and scaled.limited is None:
        return None
    return _by_the_cluster(facts) or _by_others(scaled) or _by_the_user(facts.spec, scaled)


def _by_the_cluster(facts: Facts) -> Verdict | None:
    problem = facts.problem
    if problem is None or facts.outdated:
        return None
    text = f"{facts.ready} of {facts.wanted} pods answer requests. {problem.message}"
    return Verdict("True", problem.reason, text, alarming=True)


def _by_others(scaled: Scaled) -> Verdict | None:
    if scaled.limited is None:
        return None
    text = f"More pods are needed than the {scaled.replicas} that run: {scaled.limited}"
    return Verdict("True", "GpuQuota", text, alarming=True)


def _by_the_user(spec: InferenceServiceSpec, scaled: Scaled) -> Verdict:
    most = spec.scaling.max_replicas
    if scaled.wanted is not None and scaled.wanted > most:
        text = f"More pods are needed than scaling.maxReplicas allows, which is {most}"
        return Verdict("True", "AtMaxReplicas", text, alarming=True)
    return Verdict("False", "WithinBounds", "As many pods run as are needed")
