"""The batch size: how many requests share the KV blocks, and the decodes of a step.

When KV blocks run out, an engine takes them from running requests and computes those again later.
Where targets are missed with it, fewer are let in. Where nobody misses anything it is left alone: a
full engine that computes a little twice does more work than one that keeps blocks free. The batch
is also what is left to lower when TPOT is missed and the token budget cannot help.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway_operator.decide.retune.bounds import Bounds
from headway_operator.decide.retune.change import Change, Reason, What
from headway_operator.decide.retune.signals import Signals
from headway_operator.decide.retune.situation import (
    AIM,
    TTFT_ROOM,
    is_missed,
    kv_message,
    kv_pressed,
    kv_room,
    slots_taken,
    tpot_message,
    tpot_missed,
    tpot_room,
    ttft_missed,
)
from headway_operator.decide.retune.steps import below_cap, next_value
from headway_operator.decide.retune.token_budget import TICKS_TO_LOWER
from headway_operator.memory.tuning import OperatingPoint, Streaks

MOST_DOWN = 0.75
MOST_UP = 1.5
"""Largest factors of one tick."""

KV_AIM_DOWN = 0.9
KV_AIM_UP = 0.85
"""KV usage that lowering aims at, and that growing aims at."""

DECODES_ONLY = 1.25
"""Steps with at most so many tokens for each running request hold next to no prefill."""

LEAST_FOR_TPOT = 16
"""TPOT lowers the batch no further: with so few requests a step mostly reads weights, and takes as
long for one. A target below that is missed with any batch, and must not cost all throughput."""

OVERFULL = 1.05
"""More requests than the limit by this share: the last decision is still being carried out."""


@dataclass(frozen=True)
class _Wanted:
    batch: float
    reason: Reason
    message: str


def decide_max_batch(
    point: OperatingPoint, streaks: Streaks, signals: Signals, bounds: Bounds, *, spare: bool
) -> Change | None:
    """The next batch size, None to leave it.

    Args:
        point: what is in force.
        streaks: what has held for how long.
        signals: what the pods say.
        bounds: caps.
        spare: background work is held back first, KV blocks are no reason to lower the batch yet.
    """
    if point.max_batch_size is not None and not signals.batch_lowered:
        # No pod at work follows, so what they do says nothing of this batch size.
        return None
    fewer = (
        None if spare else _fewer_for_kv(point, signals, bounds),
        _fewer_for_tpot(point, streaks, signals, bounds),
    )
    wanted = min(filter(None, fewer), key=lambda each: each.batch, default=None)
    wanted = wanted or _more(point, signals, bounds)
    if wanted is None or (signals.batch_use > OVERFULL and wanted.batch < bounds.max_batch(point)):
        return None
    cap = bounds.max_batch_cap
    after = next_value(bounds.max_batch(point), wanted.batch, bounds.max_batch_floor, cap)
    if after is None:
        return None
    return Change(
        What.MAX_BATCH, point.max_batch_size, below_cap(after, cap), wanted.reason, wanted.message
    )


def _fewer_for_kv(point: OperatingPoint, signals: Signals, bounds: Bounds) -> _Wanted | None:
    if not (kv_pressed(signals) and (is_missed(signals) or signals.thrashing)):
        return None
    usage = 1.0 if signals.preempting else signals.kv_usage
    batch = _present(point, signals, bounds) * max(MOST_DOWN, KV_AIM_DOWN / usage)
    return _Wanted(batch, Reason.KV_PRESSURE, kv_message(signals))


def _fewer_for_tpot(
    point: OperatingPoint, streaks: Streaks, signals: Signals, bounds: Bounds
) -> _Wanted | None:
    """Where a smaller token budget cannot help, as long as TTFT can afford it."""
    if signals.tpot is None or streaks.tpot_missed < TICKS_TO_LOWER:
        return None
    at_floor = bounds.token_budget(point) <= bounds.token_budget_floor
    decodes_only = signals.tokens_per_step <= DECODES_ONLY * signals.running
    affordable = signals.ttft is None or signals.ttft.ratio < TTFT_ROOM
    present = _present(point, signals, bounds)
    batch = max(LEAST_FOR_TPOT, present * max(MOST_DOWN, AIM / signals.tpot.ratio))
    if not (affordable and (at_floor or decodes_only)) or batch >= present:
        return None
    return _Wanted(batch, Reason.TPOT_MISSED, tpot_message(signals.tpot))


def _more(point: OperatingPoint, signals: Signals, bounds: Bounds) -> _Wanted | None:
    """More, where requests wait for nothing but a slot."""
    if not (signals.waiting > 0 and slots_taken(signals) and _kv_room(signals)):
        return None
    before = bounds.max_batch(point)
    factor = min(MOST_UP, KV_AIM_UP / signals.kv_peak) if signals.kv_peak > 0 else MOST_UP
    if tpot_missed(signals) and ttft_missed(signals):
        # Fewer slots did not bring TPOT and cost TTFT: with neither kept, throughput counts.
        reason = Reason.TTFT_MISSED
    elif tpot_room(signals):
        reason = Reason.KV_ROOM
        if signals.tpot is not None and signals.tpot.ratio > 0:
            factor = min(factor, AIM / signals.tpot.ratio)
    else:
        return None
    message = (
        f"{signals.waiting:.0f} requests wait for a slot while at most {signals.kv_peak:.2f} of "
        "the KV blocks are in use"
    )
    return _Wanted(max(before + 1, before * factor), reason, message)


def _kv_room(signals: Signals) -> bool:
    """Whether KV blocks are free, and will be when all that runs now has grown."""
    return signals.running_settled and kv_room(signals)


def _present(point: OperatingPoint, signals: Signals, bounds: Bounds) -> float:
    """Where lowering begins: a limit above what runs limits nothing."""
    return min(bounds.max_batch(point), signals.running)
