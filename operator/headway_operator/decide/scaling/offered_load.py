"""The load offered to a service's engines, by what they tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from headway_operator.observe.engine_metrics.sample import ServiceMetrics


@dataclass(frozen=True)
class OfferedLoad:
    """What is asked of all engines together, whether they can do it or not.

    Attributes:
        at: when, as Unix time in seconds.
        engines: engine-seconds of work a second.
        overhead: share of its time that an engine's steps take whatever they hold, 0 to 1.
        is_complete: every pod that answers requests has told; else there is at least so much.
    """

    at: float
    engines: float
    overhead: float
    is_complete: bool


def read_offered_load(metrics: ServiceMetrics, ready: Iterable[str]) -> OfferedLoad | None:
    """What pods tell together; None where none of them tells.

    Args:
        metrics: of the service's living pods.
        ready: uids of those that answer requests.
    """
    newest = {uid: history[-1] for uid, history in metrics.pods.items()}
    told = [each for each in newest.values() if each.token_load is not None]
    if not told:
        return None
    silent = [
        uid for uid in ready if (sample := newest.get(uid)) is None or sample.token_load is None
    ]
    return OfferedLoad(
        at=max(each.at for each in told),
        engines=sum(each.token_load or 0.0 for each in told),
        overhead=_mean([each.step_overhead for each in told if each.step_overhead is not None]),
        is_complete=not silent,
    )


def _mean(overheads: list[float]) -> float:
    """Of engines that have made a step: others have nothing to tell it from."""
    return min(1.0, fmean(overheads)) if overheads else 0.0
