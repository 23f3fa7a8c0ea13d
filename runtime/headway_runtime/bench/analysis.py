"""What the clients saw in one run, in figures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headway_runtime.bench.outcome import Ending, Outcome
from headway_runtime.policy import TrafficClass

PERCENTILES = (50, 90, 99)
ITL_BOUNDS_MS = (1, 2, 5, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000, 2000, 5000)
"""Upper bounds of the histogram of inter-token times; one more bin holds what is above."""

_MIDDLE = (0.1, 0.8)
_WAITED_FOR = (Ending.COMPLETE, Ending.TIMED_OUT)
"""Endings whose latency counts; without those that were given up the slowest would be missing."""

_BACKLOG_FACTOR = 1.3
_BACKLOG_MARGIN = 10


def attained(outcome: Outcome, promised: TrafficClass) -> bool:
    """Whether a request got all its tokens inside every objective of its class."""
    if outcome.ending is not Ending.COMPLETE:
        return False
    measured = (
        (outcome.ttft_s, promised.ttft_ms and promised.ttft_ms / 1000),
        (outcome.tpot_s, promised.tpot_ms and promised.tpot_ms / 1000),
        (outcome.latency_s, promised.deadline_s),
    )
    return all(value is None or limit is None or value <= limit for value, limit in measured)


def token_deadline_misses(outcome: Outcome, promised: TrafficClass) -> tuple[int, int]:
    """How many tokens came after they were due, of how many that were due.

    Token ``j`` is due at TTFT + ``j`` TPOT after the request was sent: what a reader at that pace
    would notice. Tokens that never came are missed.
    """
    if promised.ttft_ms is None or promised.tpot_ms is None:
        return 0, 0
    first_s = outcome.sent_s + promised.ttft_ms / 1000
    came_s = np.asarray(outcome.token_s)
    due_s = first_s + np.arange(len(came_s)) * promised.tpot_ms / 1000
    return outcome.output_tokens - int(np.count_nonzero(came_s <= due_s)), outcome.output_tokens


def summary(
    outcomes: Sequence[Outcome], classes: Sequence[TrafficClass], duration_s: float
) -> dict[str, Any]:
    """Figures of a run, of all requests together and by class.

    ``together_share`` is the share of tokens that came with the one before: where it is high the
    server's front-end, or the client, cannot follow the engine.

    Args:
        outcomes: one for each offered request.
        classes: their classes.
        duration_s: length of the arrival window.
    """
    promised = {each.name: each for each in classes}
    return {
        **_requests(outcomes, promised),
        **_throughput(outcomes, promised, duration_s),
        **_backlog(outcomes, duration_s),
        "client_lateness_ms": percentiles([1000 * (o.sent_s - o.planned_s) for o in outcomes]),
        "classes": {
            name: _requests([o for o in outcomes if o.class_name == name], promised)
            for name in promised
        },
    }


def _requests(outcomes: Sequence[Outcome], promised: Mapping[str, TrafficClass]) -> dict[str, Any]:
    ended = {each.value: sum(o.ending is each for o in outcomes) for each in Ending}
    kept = sum(attained(o, promised[o.class_name]) for o in outcomes)
    gaps_ms = 1000 * np.concatenate([np.empty(0), *(np.diff(o.token_s) for o in outcomes)])
    missed, due = (
        sum(column)
        for column in zip(
            (0, 0),
            *(token_deadline_misses(o, promised[o.class_name]) for o in outcomes),
            strict=True,
        )
    )
    return {
        "requests": len(outcomes),
        "endings": ended,
        "attained": kept,
        "attainment": _ratio(kept, len(outcomes)),
        "ttft_ms": percentiles(_ms(o.ttft_s for o in outcomes)),
        "tpot_ms": percentiles(_ms(o.tpot_s for o in outcomes)),
        "itl_ms": percentiles(gaps_ms),
        "itl_histogram": histogram(gaps_ms, ITL_BOUNDS_MS),
        "together_share": _ratio(int(np.count_nonzero(gaps_ms == 0)), len(gaps_ms)),
        "longest_stall_ms": _rounded(float(gaps_ms.max()) if len(gaps_ms) else None),
        "latency_s": percentiles(
            [o.latency_s for o in outcomes if o.ending in _WAITED_FOR], digits=3
        ),
        "token_deadline_miss_share": _ratio(missed, due),
    }


def _throughput(
    outcomes: Sequence[Outcome], promised: Mapping[str, TrafficClass], duration_s: float
) -> dict[str, Any]:
    last_s = max((o.token_s[-1] for o in outcomes if o.token_s), default=0.0)
    output = sum(len(o.token_s) for o in outcomes)
    # A prompt is computed when its first token comes.
    prompts = sum(o.prompt_tokens for o in outcomes if o.token_s)
    output_in_window = sum(time_s <= duration_s for o in outcomes for time_s in o.token_s)
    prompts_in_window = sum(
        o.prompt_tokens for o in outcomes if o.token_s and o.token_s[0] <= duration_s
    )
    kept = [o for o in outcomes if attained(o, promised[o.class_name])]
    window_s = duration_s or last_s
    return {
        "drain_s": _rounded(last_s, 3),
        "output_tokens_per_s": _ratio(output, last_s, 1),
        "tokens_per_s": _ratio(prompts + output, last_s, 1),
        "middle_tokens_per_s": _middle_tokens_per_s(outcomes),
        "window_output_tokens_per_s": _ratio(output_in_window, duration_s, 1),
        "window_tokens_per_s": _ratio(prompts_in_window + output_in_window, duration_s, 1),
        "goodput_requests_per_s": _ratio(len(kept), window_s, 3),
        "goodput_tokens_per_s": _ratio(
            sum(o.prompt_tokens + len(o.token_s) for o in kept), window_s, 1
        ),
    }


def _middle_tokens_per_s(outcomes: Sequence[Outcome]) -> float | None:
    """Tokens/s from the first tenth of all tokens to the last fifth, without ramp and tail.

    Offline this is the capacity that loads are shares of.
    """
    served = [o for o in outcomes if o.token_s]
    if not served:
        return None
    times_s = np.concatenate([[o.token_s[0] for o in served], *(o.token_s for o in served)])
    tokens = np.concatenate(
        [[o.prompt_tokens for o in served], np.ones(len(times_s) - len(served))]
    )
    order = np.argsort(times_s, kind="stable")
    share = np.cumsum(tokens[order]) / tokens.sum()
    first, last = np.searchsorted(share, _MIDDLE)
    span_s = float(times_s[order[last]] - times_s[order[first]])
    return _ratio(float(tokens[order[first + 1 : last + 1]].sum()), span_s, 1)


def _backlog(outcomes: Sequence[Outcome], duration_s: float) -> dict[str, Any]:
    """Open requests at half and at the end of the arrival window, and whether they pile up."""
    if not duration_s:
        return {"open_at_half": None, "open_at_end": None, "backlog_grows": None}
    half, end = (
        sum(o.planned_s <= time_s < o.ended_s for o in outcomes)
        for time_s in (duration_s / 2, duration_s)
    )
    return {
        "open_at_half": half,
        "open_at_end": end,
        "backlog_grows": end > _BACKLOG_FACTOR * half + _BACKLOG_MARGIN,
    }


def histogram(values: npt.ArrayLike, bounds: Sequence[float]) -> list[int]:
    """How many values are at most each bound and above the one before, and above the last."""
    bins = np.searchsorted(np.asarray(bounds), np.asarray(values), side="left")
    counts: list[int] = np.bincount(bins, minlength=len(bounds) + 1).tolist()
    return counts


def _ms(values: Iterable[float | None]) -> list[float]:
    return [1000 * value for value in values if value is not None]


def percentiles(values: npt.ArrayLike, digits: int = 1) -> dict[str, float | None]:
    """For each percentage the smallest value that so many of all do not exceed; or None."""
    measured = np.asarray(values)
    if not measured.size:
        return {f"p{each}": None for each in PERCENTILES}
    found = np.percentile(measured, PERCENTILES, method="inverted_cdf")
    return {f"p{p}": round(float(v), digits) for p, v in zip(PERCENTILES, found, strict=True)}


def _rounded(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)


def _ratio(part: float, whole: float, digits: int = 4) -> float | None:
    return round(part / whole, digits) if whole else None
