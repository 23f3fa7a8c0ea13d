"""When a step is taken back, and when it is found out whether it may be."""

from __future__ import annotations

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.degradation import Step
from headway_operator.api.status import TakenStep
from headway_operator.decide.degradation.ladder import RULES
from headway_operator.decide.degradation.reading import is_complete
from headway_operator.decide.facts import Facts
from headway_operator.observe.instant import unix_of
from headway_operator.observe.shortage import ShortageWatch

CLEAR_SECONDS = 120
"""There has been enough for so long before a live step is taken back."""

PAUSE_SECONDS = 300
MOST_PAUSE_SECONDS = 900
"""All replicas are tried again after a pause, each time after a longer one. A try costs a pod that
waits, and no request."""


def left(
    taken: TakenStep, facts: Facts, declared: InferenceServiceSpec, watch: ShortageWatch
) -> str:
    """Why a step is taken back now; empty while it is not.

    A step that replaced pods is only taken back with the spec that it was taken for.
    """
    rule = RULES[taken.step]
    if rule.restarts:
        return ""
    if taken.step is Step.FEWER_REPLICAS:
        is_tried = taken.retrying or declared.replicas <= (taken.replicas or 0)
        return "all pods are there" if is_tried and is_complete(facts) else ""
    clear = [watch.of(each).clear_since for each in rule.relieves]
    limit = facts.now.unix - CLEAR_SECONDS
    if any(since is None or since > limit for since in clear):
        return ""
    return f"there has been enough for {CLEAR_SECONDS} s"


def moved_on(taken: TakenStep, facts: Facts) -> TakenStep | None:
    """The step with what changes while it is in force; None while nothing does.

    Once those that are left serve, all replicas are tried again after a pause; and once pods are
    replaced, the next time a spare one comes first again.
    """
    if not is_complete(facts):
        return None
    if taken.in_place:
        return taken.model_copy(update={"in_place": False})
    if taken.step is not Step.FEWER_REPLICAS or taken.retrying:
        return None
    pause = min(PAUSE_SECONDS * taken.tries, MOST_PAUSE_SECONDS)
    if facts.now.unix - unix_of(taken.since) < pause:
        return None
    return taken.model_copy(update={"retrying": True, "since": facts.now.text})
