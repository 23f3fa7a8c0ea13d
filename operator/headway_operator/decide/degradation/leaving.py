"""When a step is taken back, and when it is found out whether it may be."""

from __future__ import annotations

from collections.abc import Iterable

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.degradation import Step
from headway_operator.api.status import TakenStep
from headway_operator.decide.degradation.ladder import RULES
from headway_operator.decide.degradation.reading import is_complete, serving
from headway_operator.decide.facts import Facts
from headway_operator.memory.shortage import ShortageWatch
from headway_operator.observe.instant import Instant, unix_of

CLEAR_SECONDS = 120
"""There has been enough for so long before a live step is taken back."""

PAUSE_SECONDS = 300
MOST_PAUSE_SECONDS = 900
"""All replicas are tried again after a pause, each time after a longer one. A try costs a pod that
waits, and no request; it lasts for as long as pods are waited for in the first place, since nodes
are added for pods that wait and for no others."""

MOST_RESTART_PAUSE_SECONDS = 3600
"""Where nobody serves, what is declared is tried again after pauses that grow up to this."""


def left(
    taken: TakenStep, facts: Facts, declared: InferenceServiceSpec, watch: ShortageWatch
) -> str:
    """Why a step is taken back now; empty while it is not.

    Those that replaced pods are taken back together, see :func:`had_again`.
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


def had_again(standing: Iterable[TakenStep], facts: Facts) -> tuple[TakenStep, ...]:
    """The steps that replaced pods, if all pods serve while what is declared is tried again."""
    found = _replacing(standing)
    tried = facts.ready > 0 and is_complete(facts) and all(each.retrying for each in found)
    return found if tried else ()


def tried_again(standing: Iterable[TakenStep], facts: Facts) -> tuple[TakenStep, ...]:
    """The same steps while what is declared is tried again, if it is time for that; else none.

    Only for a service of which no pod serves, and for which no further step is left: a restart
    costs nobody anything then, and what was short may be back.
    """
    found = _replacing(standing)
    if serving(facts) or all(each.retrying for each in found):
        return ()
    pause = PAUSE_SECONDS * max(each.tries for each in found)
    since = max(unix_of(each.since) for each in found)
    if facts.now.unix - since < min(pause, MOST_RESTART_PAUSE_SECONDS):
        return ()
    changes = {"retrying": True, "since": facts.now.text, "in_place": True}
    return tuple(each.model_copy(update=changes) for each in found)


def not_ahead(taken: TakenStep, now: Instant) -> TakenStep:
    """The step, begun now if it claims to begin later: it was timed by a clock that was set back.

    So no pause lasts for longer than it may from now on. After a clock that was set forwards one
    may end too early, once.
    """
    if unix_of(taken.since) <= now.unix:
        return taken
    return taken.model_copy(update={"since": now.text})


def with_wanted(taken: TakenStep, declared: InferenceServiceSpec) -> TakenStep:
    """The step with the pods that are to run without it: the next operator goes on from there."""
    wanted = max(1, declared.replicas)
    if taken.step is not Step.FEWER_REPLICAS or taken.wanted_replicas == wanted:
        return taken
    return taken.model_copy(update={"wanted_replicas": wanted})


def _replacing(standing: Iterable[TakenStep]) -> tuple[TakenStep, ...]:
    return tuple(each for each in standing if RULES[each.step].restarts)


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
