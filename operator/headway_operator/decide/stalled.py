"""The condition Stalled: tools that wait for a service stop waiting when it is true."""

from __future__ import annotations

from headway_operator.api.degradation import Step
from headway_operator.decide.facts import Facts
from headway_operator.decide.obstacles import FUNDAMENTAL, broken, left_behind, overdue
from headway_operator.decide.verdict import Verdict


def stalled(facts: Facts) -> Verdict:
    """Whether something is wrong that will not heal by itself."""
    for check in (*FUNDAMENTAL, _needs_a_change, _overdue, left_behind):
        verdict = check(facts)
        if verdict is not None:
            return Verdict("True", verdict.reason, verdict.message, alarming=True)
    return Verdict("False", "AsExpected", "Nothing needs to be changed by hand")


def _needs_a_change(facts: Facts) -> Verdict | None:
    gave_up = any(each.step is Step.FEWER_REPLICAS for each in facts.degradation)
    if gave_up and facts.ready >= facts.least:
        # Pods that are given up are only tried again.
        return None
    return broken(facts) if facts.problem is not None and facts.problem.stalls else None


def _overdue(facts: Facts) -> Verdict | None:
    """Overdue because of a problem: the problem is what has to be dealt with."""
    late = overdue(facts)
    return (broken(facts) or late) if late is not None else None
