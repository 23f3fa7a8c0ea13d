"""A target that no operating point brings about."""

from __future__ import annotations

from collections.abc import Sequence

from headway_operator.decide.retune.bounds import Bounds
from headway_operator.decide.retune.change import Change, What
from headway_operator.decide.retune.signals import Signals
from headway_operator.decide.retune.situation import budget_missed, tpot_message
from headway_operator.memory.tuning import OperatingPoint

TICKS_OUT_OF_REACH = 6
"""Half a minute, as long as a late token counts."""


def has_nothing_left(point: OperatingPoint, signals: Signals, changes: Sequence[Change]) -> bool:
    """Whether tokens come too slowly although engines are as far down as they may go."""
    is_followed = (point.token_budget is None or signals.budget_lowered) and (
        point.max_batch_size is None or signals.batch_lowered
    )
    moves = any(change.what is not What.THETA for change in changes)
    return budget_missed(signals) and is_followed and not moves


def out_of_reach_message(point: OperatingPoint, signals: Signals, bounds: Bounds) -> str:
    """What is missed, at which operating point, and what can be done; empty if nothing is."""
    if signals.tpot is None:
        return ""
    return (
        f"{tpot_message(signals.tpot)}, and engines have nothing left to lower: at most "
        f"{bounds.token_budget(point)} tokens in a step and {bounds.max_batch(point)} requests at "
        "once. Raise the class's tpotMilliseconds, or give the model faster or more GPUs"
    )
