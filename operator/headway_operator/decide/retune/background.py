"""The background limit: how many requests that nobody waits for may hold slots and KV blocks.

Waiting requests with a target are admitted first whatever waits with them, but a slot that a batch
job holds is held until its last token. The limit keeps slots free for those promised a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headway_operator.decide.retune.bounds import LEAST_BACKGROUND, Bounds
from headway_operator.decide.retune.change import Change, Reason, What
from headway_operator.decide.retune.signals import Signals
from headway_operator.decide.retune.situation import (
    TAKEN,
    TTFT_ROOM,
    is_missed,
    kv_message,
    kv_pressed,
    kv_room,
)
from headway_operator.decide.retune.steps import below_cap, next_value
from headway_operator.decide.retune.targets import ClassTargets, is_background, is_mixed
from headway_operator.memory.tuning import OperatingPoint, Streaks
from headway_runtime.policy import TrafficClass

FIRST = 0.5
"""Share of what runs that the first limit leaves to each class."""

MOST_DOWN = 0.75
MOST_UP = 1.25
"""Factors of one tick."""

TICKS_TO_LOWER = 2


def limit_background(
    classes: tuple[TrafficClass, ...], limit: int | None
) -> tuple[TrafficClass, ...]:
    """A policy's classes with the limit on those it is for."""
    return tuple(
        replace(each, max_running=limit) if is_background(each.ttft_ms, each.tpot_ms) else each
        for each in classes
    )


def spares_batch(point: OperatingPoint, signals: Signals, classes: Sequence[ClassTargets]) -> bool:
    """Whether background work gives way before everybody does, while KV blocks run out."""
    can_give_way = is_mixed(classes) and point.background_limit != LEAST_BACKGROUND
    return can_give_way and is_missed(signals)


def decide_background(
    point: OperatingPoint,
    streaks: Streaks,
    signals: Signals,
    bounds: Bounds,
    classes: Sequence[ClassTargets],
) -> Change | None:
    """The next background limit, None to leave it."""
    if kv_pressed(signals) and spares_batch(point, signals, classes):
        return _lowered(point, signals, bounds, Reason.KV_PRESSURE, kv_message(signals))
    if is_mixed(classes) and signals.ttft is not None and streaks.ttft_missed >= TICKS_TO_LOWER:
        message = (
            f"TTFT of class {signals.ttft.class_name} is {signals.ttft.ratio:.2f} of its target "
            f"while {signals.waiting:.0f} requests wait for a slot"
        )
        return _lowered(point, signals, bounds, Reason.TTFT_MISSED, message)
    if point.background_limit is None:
        return None
    return _relaxed(point.background_limit, point, signals, bounds, classes)


def _lowered(
    point: OperatingPoint, signals: Signals, bounds: Bounds, reason: Reason, message: str
) -> Change | None:
    before, most = point.background_limit, bounds.slots(point)
    if before is None:
        # A limit that all of what runs would still be within limits nothing.
        wanted, most = FIRST * min(most, signals.running), most - 1
    else:
        wanted = MOST_DOWN * min(most, before)
    after = min(max(LEAST_BACKGROUND, int(wanted)), most)
    if after in (before, 0):
        return None
    return Change(What.CLASS_LIMIT, before, after, reason, message)


def _relaxed(
    before: int,
    point: OperatingPoint,
    signals: Signals,
    bounds: Bounds,
    classes: Sequence[ClassTargets],
) -> Change | None:
    if not (is_mixed(classes) and (signals.ttft_traffic or signals.tpot_traffic)):
        reason, message = (
            Reason.NO_OBJECTIVES,
            "No class with a TTFT or TPOT target had requests in the last minute",
        )
    elif _has_room(signals):
        reason = Reason.TTFT_KEPT
        message = f"At most {signals.batch_peak:.2f} of the slots were taken in the last minute"
    else:
        return None
    cap = bounds.slots(point)
    after = next_value(before, max(before + 1, before * MOST_UP), LEAST_BACKGROUND, cap)
    if after is None:
        return None
    return Change(What.CLASS_LIMIT, before, below_cap(after, cap), reason, message)


def _has_room(signals: Signals) -> bool:
    """Whether more background work would take nothing from those who are promised a time.

    Free slots count, not the TTFT alone: with none, TTFT is kept because background work is held
    back. And they must have been free for a minute: between two bursts there always are some. The
    same goes for KV blocks.
    """
    in_time = signals.ttft.ratio < TTFT_ROOM if signals.ttft else not signals.ttft_traffic
    return in_time and signals.batch_peak < TAKEN and kv_room(signals)
