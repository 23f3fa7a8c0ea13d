"""How long programs take as a whole. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from headway_runtime.bench.outcome import Ending, Outcome

_PERCENTILES = (50, 95)


def completion_figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Figures of all programs, and of each tenant's.

    - ``programs``, and of those ``unfinished``: not all of their calls are complete.
    - ``completion_s``: ``p50``, ``p95`` and ``mean`` of the time from the first call's sending to
      the last one's end; of unfinished ones to the end of the run, the least that they take.
    """
    end_s = max((o.ended_s for o in outcomes), default=0.0)
    programs: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for each in outcomes:
        if each.program:
            programs[each.tenant, each.program].append(each)
    of_tenants: dict[str, list[list[Outcome]]] = defaultdict(list)
    for (tenant, _), program in programs.items():
        of_tenants[tenant].append(program)
    return {
        **_figures(list(programs.values()), end_s),
        "tenants": {name: _figures(of_tenants[name], end_s) for name in sorted(of_tenants)},
    }


def _figures(programs: Sequence[Sequence[Outcome]], end_s: float) -> dict[str, Any]:
    seconds = [_completion_s(each, end_s) for each in programs]
    return {
        "programs": len(programs),
        "unfinished": sum(not _is_finished(each) for each in programs),
        "completion_s": _percentiles(seconds),
    }


def _is_finished(program: Sequence[Outcome]) -> bool:
    return all(each.ending is Ending.COMPLETE for each in program)


def _completion_s(program: Sequence[Outcome], end_s: float) -> float:
    begin_s = min(each.sent_s for each in program)
    ended_s = max(each.ended_s for each in program)
    return (ended_s if _is_finished(program) else end_s) - begin_s


def _percentiles(seconds: Sequence[float]) -> dict[str, float | None]:
    if not seconds:
        return {**{f"p{each}": None for each in _PERCENTILES}, "mean": None}
    found = np.percentile(seconds, _PERCENTILES, method="inverted_cdf")
    return {
        **{f"p{p}": round(float(v), 3) for p, v in zip(_PERCENTILES, found, strict=True)},
        "mean": round(float(np.mean(seconds)), 3),
    }
