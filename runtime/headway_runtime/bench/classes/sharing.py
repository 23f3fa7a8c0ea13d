"""Whether tenants got their shares. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headway_runtime.bench.analysis import attained, percentiles
from headway_runtime.bench.classes.service import (
    OUTPUT_TOKEN,
    PROMPT_TOKEN,
    Service,
    first_s,
    most_running_output_tokens,
)
from headway_runtime.bench.outcome import Ending, Outcome
from headway_runtime.policy import Tenant, TrafficClass

WINDOW_S = 5.0
"""Shares are compared over so long."""

_LOOKS_A_WINDOW = 20

BOUND_FACTOR = 4
"""A tenant that waits is behind no other by more than 4 U (theorem 4.9 of arXiv 2401.00588)."""


def jain_index(values: Sequence[float]) -> float | None:
    """Jain's index of fairness: 1 where all are equal, 1/n where one of n has everything."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else None


def sharing_figures(
    outcomes: Sequence[Outcome], tenants: Sequence[Tenant], classes: Sequence[TrafficClass]
) -> dict[str, Any]:
    """Figures of tenants that share an engine.

    - ``jain_index``: of service over weight, mean over all windows of 5 s in which every tenant has
      requests waiting all the time; ``jain_index_worst`` is that of the worst one of
      ``jain_windows``.
    - ``beyond_bound``: requests during whose wait their tenant was served less than its share by
      more than ``bound_tokens`` times its weight; ``longest_lag_tokens`` is the most that was
      missing, over the weight. The bound is 4 U, U being the longest prompt or twice the most
      output tokens of requests that ran together.
    - ``tenants``: of each its weight, requests, share of all service, attainment, waits for the
      first token.

    Args:
        outcomes: one for each offered request.
        tenants: who sent them.
        classes: their classes.
    """
    served = {
        each.name: Service([o for o in outcomes if o.tenant == each.name]) for each in tenants
    }
    weights = {each.name: each.weight for each in tenants}
    promised = {each.name: each for each in classes}
    indexes = _indexes(served, weights)
    lags = _lags(served, weights)
    bound = BOUND_FACTOR * _unit(outcomes)
    total = sum(each.between(-1.0, np.inf) for each in served.values())
    return {
        "jain_index": round(float(np.mean(indexes)), 4) if indexes else None,
        "jain_index_worst": round(min(indexes), 4) if indexes else None,
        "jain_windows": len(indexes),
        "beyond_bound": sum(lag > bound for lag in lags),
        "longest_lag_tokens": round(max(lags, default=0.0)),
        "bound_tokens": round(bound),
        "tenants": {
            name: _tenant(each, weights[name], promised, total) for name, each in served.items()
        },
    }


def _indexes(served: Mapping[str, Service], weights: Mapping[str, int]) -> list[float]:
    last_s = max((first_s(o) for each in served.values() for o in each.outcomes), default=0.0)
    found = []
    for number in range(int(last_s // WINDOW_S)):
        begin_s = number * WINDOW_S
        looks = np.linspace(begin_s, begin_s + WINDOW_S, _LOOKS_A_WINDOW + 1)
        if all(each.waiting(looks).min() > 0 for each in served.values()):
            shares = [
                each.between(begin_s, begin_s + WINDOW_S) / weights[name]
                for name, each in served.items()
            ]
            index = jain_index(shares)
            # Nothing at all was served: nobody got less than another one.
            found.append(1.0 if index is None else index)
    return found


def _lags(served: Mapping[str, Service], weights: Mapping[str, int]) -> list[float]:
    """For each request, how much less than its share its tenant got while it waited.

    In tokens over the weight; negative where it got more.
    """
    share_of_weight = 1 / sum(weights.values())
    lags: list[float] = []
    for name, own in served.items():
        waited = [o for o in own.outcomes if o.ending not in (Ending.REFUSED, Ending.UNSENT)]
        begin = np.array([o.sent_s for o in waited])
        end = np.array([first_s(o) for o in waited])
        everybody = sum(each.until(end) - each.until(begin) for each in served.values())
        got = own.until(end) - own.until(begin)
        lags += (everybody * share_of_weight - got / weights[name]).tolist()
    return lags


def _unit(outcomes: Sequence[Outcome]) -> float:
    """U of the bound."""
    longest = max((o.prompt_tokens for o in outcomes), default=0)
    return max(PROMPT_TOKEN * longest, OUTPUT_TOKEN * most_running_output_tokens(outcomes))


def _tenant(
    served: Service, weight: int, promised: Mapping[str, TrafficClass], total: float
) -> dict[str, Any]:
    outcomes = served.outcomes
    kept = sum(attained(o, promised[o.class_name]) for o in outcomes)
    waits_s = np.array([first_s(o) - o.sent_s for o in outcomes if o.ending is not Ending.UNSENT])
    return {
        "weight": weight,
        "requests": len(outcomes),
        "service_share": round(served.between(-1.0, np.inf) / total, 4) if total else None,
        "attainment": round(kept / len(outcomes), 4) if outcomes else None,
        "wait_s": percentiles(waits_s, digits=2),
        "longest_wait_s": round(float(waits_s.max()), 2) if len(waits_s) else None,
    }
