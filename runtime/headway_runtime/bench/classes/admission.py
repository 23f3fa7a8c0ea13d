"""What became of requests that were let in, and how soon the others were told. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headway_runtime.bench.analysis import attained, percentiles
from headway_runtime.bench.outcome import Ending, Outcome
from headway_runtime.policy import TrafficClass, WhenUnmet


def admission_figures(
    outcomes: Sequence[Outcome], classes: Sequence[TrafficClass]
) -> dict[str, Any]:
    """Figures of all requests, of each class, and of the classes that are shed.

    Each has ``accepted`` and ``refused`` requests, ``accepted_attainment``, the share of accepted
    ones inside their objectives, and ``refusal_ms``, percentiles of the time to a refusal, which
    on a simulated engine is always 0.
    """
    shed = {each.name for each in classes if each.when_unmet is WhenUnmet.SHED}
    promised = {each.name: each for each in classes}
    return {
        **_figures(outcomes, promised),
        "shed": _figures([o for o in outcomes if o.class_name in shed], promised),
        "classes": {
            name: _figures([o for o in outcomes if o.class_name == name], promised)
            for name in promised
        },
    }


def _figures(outcomes: Sequence[Outcome], promised: dict[str, TrafficClass]) -> dict[str, Any]:
    refused = [o for o in outcomes if o.ending is Ending.REFUSED]
    accepted = [o for o in outcomes if o.ending not in (Ending.REFUSED, Ending.UNSENT)]
    kept = sum(attained(o, promised[o.class_name]) for o in accepted)
    return {
        "accepted": len(accepted),
        "refused": len(refused),
        "accepted_attainment": round(kept / len(accepted), 4) if accepted else None,
        "refusal_ms": percentiles(np.array([1000 * o.latency_s for o in refused])),
    }
