"""Pure decisions: a snapshot of a service -> a plan, each item of it with a reason."""

from headway_operator.decide.decision import decide
from headway_operator.decide.notices import applied_notices
from headway_operator.decide.plan import Application, Notice, Plan

__all__ = ["Application", "Notice", "Plan", "applied_notices", "decide"]
