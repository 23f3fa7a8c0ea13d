"""The condition Degraded."""

from __future__ import annotations

from headway_operator.decide.degradation.wording import told
from headway_operator.decide.facts import Facts
from headway_operator.decide.verdict import Verdict


def degraded(facts: Facts) -> Verdict | None:
    """Whether something is given up; the reason is the last step of the ladder that is in force.

    None where the spec cannot be read: the condition then stays as it is.
    """
    if facts.spec is None:
        return None
    if not facts.degradation:
        return Verdict("False", "AsDeclared", "Nothing that is declared is given up")
    spec = facts.spec
    text = ". ".join(told(each, spec) for each in reversed(facts.degradation))
    return Verdict("True", facts.degradation[-1].step, text, alarming=True)
