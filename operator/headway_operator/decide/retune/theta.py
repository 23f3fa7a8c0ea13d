"""The switching threshold: a busy GPU can afford less to be switched, an idle one more.

theta = base + sensitivity * (1 - utilisation)
"""

from __future__ import annotations

from headway_operator.decide.retune.change import Change, Reason, What
from headway_operator.decide.retune.signals import Signals
from headway_operator.memory.tuning import OperatingPoint

BASE_PPM = 200_000
SENSITIVITY_PPM = 200_000
STEP_PPM = 20_000
"""Most it moves in a tick."""
DEAD_BAND_PPM = 10_000
"""It stays where it is while it is this close."""


def target_theta_ppm(utilisation: float) -> int:
    """Where the threshold belongs at this utilisation."""
    return round(BASE_PPM + SENSITIVITY_PPM * (1 - min(1.0, max(0.0, utilisation))))


def decide_theta(point: OperatingPoint, signals: Signals) -> Change | None:
    """The next value of the threshold, None to leave it."""
    before, target = point.theta_ppm, target_theta_ppm(signals.utilisation)
    if before is None:
        after = target
    elif abs(target - before) <= DEAD_BAND_PPM:
        return None
    else:
        after = min(max(target, before - STEP_PPM), before + STEP_PPM)
    message = f"GPU utilisation is {signals.utilisation:.2f}"
    return Change(What.THETA, before, after, Reason.UTILISATION, message)
