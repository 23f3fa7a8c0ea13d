"""Questions to the signals that more than one limit depends on."""

from __future__ import annotations

from headway_operator.decide.retune.bounds import Bounds
from headway_operator.decide.retune.class_ratios import Worst
from headway_operator.decide.retune.signals import Signals
from headway_operator.memory.tuning import OperatingPoint, Streaks

MISSED = 1.0
ROOM = 0.9
"""Between these ratios of TPOT to its target nothing moves, unless engines plan their steps."""

NEARLY_KEPT = 1.05
"""Up to this ratio an engine that plans its steps is left to it: what it misses by so little, it
misses by less with a larger token budget."""

AIM = 0.95
"""Where a change is meant to bring the worst TPOT: to where nothing moves."""

TTFT_ROOM = 0.8
"""Below this ratio of TTFT to its target, there is time to be given to others."""

TTFT_NEAR = 0.9
"""From this ratio of TTFT to its target on, prefill should go faster."""

KV_FULL = 0.95
KV_ROOM = 0.8
"""Between these shares of KV blocks in use, nothing is lowered or raised for them."""

TAKEN = 0.9
"""Share of the slots for running requests that counts as all of them."""

USED = 0.8
"""Steps that fill this share of their budget on average could take on more."""


def tpot_missed(signals: Signals) -> bool:
    """Whether a class gets its tokens more slowly than promised."""
    return signals.tpot is not None and signals.tpot.ratio > MISSED


def tpot_room(signals: Signals) -> bool:
    """Whether every class gets its tokens well in time; also where nobody was promised any."""
    return _tpot_within(ROOM, signals)


def budget_room(signals: Signals) -> bool:
    """Whether TPOT leaves room for a larger token budget.

    An engine that plans its steps spends all the time that a target leaves, so that its TPOT is
    never far below: there, a target that is nearly kept is room enough. More running requests are
    another thing: each makes every step longer, whatever is planned.
    """
    return _tpot_within(NEARLY_KEPT if signals.planned else ROOM, signals)


def budget_missed(signals: Signals) -> bool:
    """Whether TPOT is missed by so much that a smaller token budget is the answer."""
    most = NEARLY_KEPT if signals.planned else MISSED
    return signals.tpot is not None and signals.tpot.ratio > most


def _tpot_within(ratio: float, signals: Signals) -> bool:
    return signals.tpot.ratio <= ratio if signals.tpot else not signals.tpot_traffic


def ttft_missed(signals: Signals) -> bool:
    """Whether a class waits longer for its first tokens than promised."""
    return signals.ttft is not None and signals.ttft.ratio > MISSED


def kv_pressed(signals: Signals) -> bool:
    """Whether KV blocks run out."""
    return signals.kv_usage > KV_FULL or signals.preempting


def kv_room(signals: Signals) -> bool:
    """Whether KV blocks have been free all the time."""
    return signals.kv_peak < KV_ROOM and not signals.preempted


def is_missed(signals: Signals) -> bool:
    """Whether a class misses a target for its tokens."""
    return tpot_missed(signals) or ttft_missed(signals)


def slots_taken(signals: Signals) -> bool:
    """Whether no slot is free for another request."""
    return signals.batch_use >= TAKEN


def demand(point: OperatingPoint, signals: Signals, bounds: Bounds) -> bool:
    """Whether there is more work than the token budget lets a step take on."""
    return (
        signals.waiting > 0
        or signals.tokens_per_step >= USED * bounds.token_budget(point)
        or (signals.ttft is not None and signals.ttft.ratio > TTFT_NEAR)
    )


def tpot_message(worst: Worst) -> str:
    """One sentence about a class's TPOT."""
    return f"TPOT of class {worst.class_name} is {worst.ratio:.2f} of its target"


def kv_message(signals: Signals) -> str:
    """One sentence about KV blocks that run out."""
    preempted = ", and running requests lose theirs" if signals.preempting else ""
    return f"{signals.kv_usage:.2f} of the KV blocks are in use{preempted}"


def safe_budget(signals: Signals) -> float:
    """A token budget that keeps every TPOT target even if all steps are full.

    Part of a step's time is the same whatever it holds, so the present time for a token, which has
    a share of that, is more than full steps would take for one.
    """
    if signals.tightest_tpot_ms is None:
        return 0.0
    return AIM * signals.tightest_tpot_ms / 1000 * signals.tokens_per_second


def counted(streaks: Streaks, point: OperatingPoint, signals: Signals, bounds: Bounds) -> Streaks:
    """The streaks after another tick."""
    is_safe = safe_budget(signals) > bounds.token_budget(point)
    worthwhile = signals.planned or demand(point, signals, bounds) or is_safe
    room = budget_room(signals) and worthwhile
    starved = ttft_missed(signals) and signals.waiting > 0 and slots_taken(signals)
    return Streaks(
        tpot_missed=streak_after(streaks.tpot_missed, holds=tpot_missed(signals)),
        tpot_room=streak_after(streaks.tpot_room, holds=room),
        ttft_missed=streak_after(streaks.ttft_missed, holds=starved),
        out_of_reach=streaks.out_of_reach,
    )


MOST_COUNTED = 6
"""No streak needs to be longer; counting on would make equal tunings differ."""


def streak_after(streak: int, *, holds: bool) -> int:
    """A streak after another tick."""
    return min(streak + 1, MOST_COUNTED) if holds else 0
