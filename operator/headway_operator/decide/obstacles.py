"""What stands in the way of a service, from the most to the least fundamental."""

from __future__ import annotations

from headway_operator.api import ConditionType
from headway_operator.api.labels import child_name
from headway_operator.decide.facts import Facts
from headway_operator.decide.late import told_late
from headway_operator.decide.verdict import Check, Verdict
from headway_operator.memory.refusal import Refusal

_FORBIDDEN = 403

_NO_PODS = frozenset({"InvalidSpec", "NameTaken", "ObjectRefused", "Forbidden"})
"""Reasons of what is found out without pods."""


def invalid_spec(facts: Facts) -> Verdict | None:
    """The stored spec cannot be read: it predates the CRD or was written around it."""
    if facts.spec is not None:
        return None
    text = f"{facts.snapshot.spec_problem}. Running pods are left as they are"
    return Verdict("False", "InvalidSpec", text, alarming=True)


def name_taken(facts: Facts) -> Verdict | None:
    """An object of the service's name belongs to somebody else."""
    if not facts.snapshot.foreign:
        return None
    name = facts.snapshot.service.key.name
    taken = ", ".join(f"{slot} {child_name(slot, name)}" for slot in facts.snapshot.foreign)
    text = f"{taken} belongs to somebody else: delete it or rename the InferenceService"
    return Verdict("False", "NameTaken", text, alarming=True)


def refused(facts: Facts) -> Verdict | None:
    """The API server does not take one of the service's objects."""
    for refusal in facts.refusals:
        if refusal.status == _FORBIDDEN:
            return _forbidden(refusal)
        fields = f": {', '.join(refusal.fields)}" if refusal.fields else ""
        text = (
            f"The API server refused the {refusal.kind} (HTTP {refusal.status}){fields}. "
            f"Correct the spec; if somebody else changed the {refusal.kind}, delete it"
        )
        return Verdict("False", "ObjectRefused", text, alarming=True)
    return None


def _forbidden(refusal: Refusal) -> Verdict:
    text = (
        f"The operator is not allowed to write the {refusal.kind} (HTTP {refusal.status}): check "
        "the operator's role, quotas and admission policies, and that the namespace is not being "
        "deleted. It is tried again every minute"
    )
    return Verdict("False", "Forbidden", text, alarming=True)


def broken(facts: Facts) -> Verdict | None:
    """Something is wrong with the pods."""
    problem = facts.problem
    if problem is None:
        return None
    return Verdict("False", problem.reason, problem.message, alarming=True)


def overdue(facts: Facts) -> Verdict | None:
    """The rollout, or a pod, took longer than an engine may take to start."""
    if facts.ready >= facts.wanted or facts.spec is None:
        return None
    seconds = facts.spec.engine.startup_timeout_seconds
    if facts.late is not None:
        text = told_late(facts.late, seconds)
    elif facts.overdue:
        text = f"No progress for {seconds} s (engine.startupTimeoutSeconds)"
    else:
        return None
    return Verdict("False", "ProgressDeadlineExceeded", text, alarming=True)


def left_behind(facts: Facts) -> Verdict | None:
    """What kept the last pods from serving, while there are none that could show it is mended.

    What is no matter of pods is seen without them.
    """
    if facts.wanted > 0 or facts.spec is None or not facts.spec.scaling.may_be_zero:
        return None
    service = facts.snapshot.service
    for each in service.status.conditions:
        told = each.type == ConditionType.STALLED and each.status == "True"
        if told and each.observed_generation == service.generation and each.reason not in _NO_PODS:
            return Verdict("False", each.reason, each.message, alarming=True)
    return None


FUNDAMENTAL: tuple[Check, ...] = (invalid_spec, name_taken, refused)
"""Nothing can be right while one of these holds."""
