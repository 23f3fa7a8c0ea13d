"""The token budget: how much prefill may stand in the way of a step's decodes.

A request that decodes gets one token a step, so TPOT is the length of steps, and that is what the
budget bounds: too large, and tokens come late; too small, and throughput is given away. It follows
the worst TPOT of any class, where 1.0 is exactly on target: down above 1.0, up below 0.9, and
otherwise it stays. An engine that plans its steps keeps targets by itself, spending all the time
that they leave; there the budget is a net for when it does not, and goes up whenever they are
nearly kept.

With little to do, TPOT says nothing of what full steps would do to it. What was learned under load
then stays, unless full steps would be short enough by any measure, as after a target was loosened.
"""

from __future__ import annotations

from headway_operator.decide.retune.bounds import Bounds
from headway_operator.decide.retune.change import Change, Reason, What
from headway_operator.decide.retune.class_ratios import Worst
from headway_operator.decide.retune.signals import Signals
from headway_operator.decide.retune.situation import (
    AIM,
    budget_missed,
    demand,
    safe_budget,
    tpot_message,
)
from headway_operator.decide.retune.steps import below_cap, next_value
from headway_operator.memory.tuning import OperatingPoint, Streaks

MOST_DOWN = 0.75
MOST_DOWN_FAR_OVER = 0.6
MOST_UP = 1.1
"""Largest factors of one tick. Too much is felt by every request at once, too little by nobody for
a while: so it goes down fast and up slowly."""

MOST_UP_PLANNED = 1.5
"""Likewise upwards where engines plan their steps: too much is felt by nobody there."""

TICKS_TO_LOWER = 2
TICKS_TO_RAISE = 6
"""Half a minute, as long as a late token counts: with 3 ticks there are twice the changes at steady
load, for nothing."""
FAR_OVER = 1.5
"""Missed by this much, the first tick acts, and it acts more. After a step of load from 30 to 110 %
that keeps 91 instead of 87 % of the requests of the next four minutes inside their targets."""


def decide_token_budget(
    point: OperatingPoint, streaks: Streaks, signals: Signals, bounds: Bounds
) -> Change | None:
    """The next token budget, None to leave it."""
    if point.token_budget is not None and not signals.budget_lowered:
        # No pod at work follows: engines that schedule by themselves, or no work at all. What they
        # do then says nothing of this budget.
        return None
    if signals.tpot is None:
        return None if signals.tpot_traffic else _returned(point, bounds)
    if budget_missed(signals):
        return _lowered(point, streaks, signals.tpot, bounds)
    if streaks.tpot_room >= TICKS_TO_RAISE:
        return _raised(point, signals, signals.tpot, bounds)
    return None


def _lowered(
    point: OperatingPoint, streaks: Streaks, worst: Worst, bounds: Bounds
) -> Change | None:
    far_over = worst.ratio > FAR_OVER
    if streaks.tpot_missed < TICKS_TO_LOWER and not far_over:
        return None
    # A part of a step takes its time whatever the budget: it has to give more than TPOT must.
    factor = max(MOST_DOWN_FAR_OVER if far_over else MOST_DOWN, (AIM / worst.ratio) ** 2)
    return _scaled(point, factor, bounds, Reason.TPOT_MISSED, tpot_message(worst))


def _raised(point: OperatingPoint, signals: Signals, worst: Worst, bounds: Bounds) -> Change | None:
    if signals.planned:
        return _scaled(point, MOST_UP_PLANNED, bounds, Reason.TPOT_KEPT, tpot_message(worst))
    # Steps grow at most in proportion to their tokens, so this cannot pass the aim.
    factor = min(MOST_UP, AIM / worst.ratio) if worst.ratio > 0 else MOST_UP
    if not demand(point, signals, bounds):
        factor = min(factor, safe_budget(signals) / bounds.token_budget(point))
    return _scaled(point, factor, bounds, Reason.TPOT_KEPT, tpot_message(worst))


def _returned(point: OperatingPoint, bounds: Bounds) -> Change | None:
    message = "No class with a TPOT target had requests in the last minute"
    return _scaled(point, MOST_UP, bounds, Reason.NO_TPOT, message)


def _scaled(
    point: OperatingPoint, factor: float, bounds: Bounds, reason: Reason, message: str
) -> Change | None:
    before, cap = bounds.token_budget(point), bounds.token_budget_cap
    wanted = max(before * factor, before + 1) if factor > 1 else before * factor
    after = next_value(before, wanted, bounds.token_budget_floor, cap)
    if after is None:
        return None
    return Change(What.TOKEN_BUDGET, point.token_budget, below_cap(after, cap), reason, message)
