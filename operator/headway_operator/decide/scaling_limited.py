"""The condition ScalingLimited."""

from __future__ import annotations

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.degradation import Step
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
        return _given_up(facts, scaled.replicas)
    return (
        _by_the_cluster(facts)
        or _by_others(scaled)
        or _by_the_user(facts.spec, scaled)
        or _given_up(facts, scaled.replicas)
        or Verdict("False", "WithinBounds", "As many pods run as are needed")
    )


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


def _by_the_user(spec: InferenceServiceSpec, scaled: Scaled) -> Verdict | None:
    most = spec.scaling.max_replicas
    if scaled.wanted is not None and scaled.wanted > most:
        text = f"More pods are needed than scaling.maxReplicas allows, which is {most}"
        return Verdict("True", "AtMaxReplicas", text, alarming=True)
    return None


def _given_up(facts: Facts, replicas: int) -> Verdict | None:
    """Pods that were decided on and are given up for now."""
    fewer = next((each for each in facts.degradation if each.step is Step.FEWER_REPLICAS), None)
    if fewer is None:
        return None
    text = f"{facts.ready} pods answer requests, of {replicas} that are to run"
    return Verdict("True", fewer.reason, text, alarming=True)
