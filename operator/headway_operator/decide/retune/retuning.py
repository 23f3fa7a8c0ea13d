"""From what was measured to the next operating point.

metrics -> signals -> theta, background limit, batch size, token budget -> changes with reasons
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headway_operator.decide.retune.background import decide_background, spares_batch
from headway_operator.decide.retune.bounds import Bounds, clamp
from headway_operator.decide.retune.change import Change, What
from headway_operator.decide.retune.max_batch import decide_max_batch
from headway_operator.decide.retune.out_of_reach import (
    TICKS_OUT_OF_REACH,
    has_nothing_left,
    out_of_reach_message,
)
from headway_operator.decide.retune.signals import Signals, read_signals
from headway_operator.decide.retune.situation import counted, streak_after
from headway_operator.decide.retune.targets import ClassTargets
from headway_operator.decide.retune.theta import decide_theta
from headway_operator.decide.retune.token_budget import decide_token_budget
from headway_operator.memory.tuning import OperatingPoint, Tuning
from headway_operator.observe.engine_metrics.sample import ServiceMetrics


@dataclass(frozen=True)
class Retuned:
    """What a tick came to.

    Attributes:
        tuning: what is remembered from now on.
        changes: what changed in its point, each value at most once.
        out_of_reach: a target that has just turned out not to be reachable, in one or two
            sentences; empty if there is none.
        signals: what pods said; None where they said nothing new.
    """

    tuning: Tuning
    changes: tuple[Change, ...]
    out_of_reach: str = ""
    signals: Signals | None = None


def retune(
    tuning: Tuning, metrics: ServiceMetrics, classes: Sequence[ClassTargets], bounds: Bounds
) -> Retuned:
    """The next operating point of a service.

    Without metrics, and a second time for the same collection, nothing changes: what is not known
    is no reason to do anything.
    """
    is_new = metrics.collection > tuning.collection
    if not is_new or not metrics.pods or metrics.source is None or metrics.missing:
        return Retuned(tuning, ())
    within = clamp(tuning, bounds)
    signals = read_signals(metrics, classes, within.point, bounds)
    streaks = counted(within.streaks, within.point, signals, bounds)
    known = replace(within, streaks=streaks, collection=metrics.collection)
    changes = _changes(known, signals, classes, bounds)
    stuck = has_nothing_left(known.point, signals, changes)
    streaks = replace(streaks, out_of_reach=streak_after(streaks.out_of_reach, holds=stuck))
    turned = within.streaks.out_of_reach < TICKS_OUT_OF_REACH <= streaks.out_of_reach
    return Retuned(
        replace(known, streaks=streaks, point=_changed(known.point, changes)),
        changes,
        out_of_reach_message(known.point, signals, bounds) if turned else "",
        signals,
    )


def _changes(
    tuning: Tuning, signals: Signals, classes: Sequence[ClassTargets], bounds: Bounds
) -> tuple[Change, ...]:
    point, streaks = tuning.point, tuning.streaks
    spare = spares_batch(point, signals, classes)
    batch = decide_max_batch(point, streaks, signals, bounds, spare=spare)
    budget = decide_token_budget(point, streaks, signals, bounds)
    if _raises(batch) and _raises(budget):
        # Both make steps longer, and each counts on doing it alone.
        budget = None
    decided = (
        decide_theta(point, signals),
        decide_background(point, streaks, signals, bounds, classes),
        batch,
        budget,
    )
    return tuple(change for change in decided if change is not None)


def _raises(change: Change | None) -> bool:
    if change is None or change.before is None:
        return False
    return change.after is None or change.after > change.before


_FIELDS = {
    What.THETA: "theta_ppm",
    What.TOKEN_BUDGET: "token_budget",
    What.MAX_BATCH: "max_batch_size",
    What.CLASS_LIMIT: "background_limit",
}


def _changed(point: OperatingPoint, changes: Iterable[Change]) -> OperatingPoint:
    return replace(point, **{_FIELDS[change.what]: change.after for change in changes})
