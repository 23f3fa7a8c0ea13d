"""When theta is changed, and by how much."""

from __future__ import annotations

from typing import Any

import pytest

from headway_operator.decide.retune import Reason, What
from tests.unit.operator.retune.situations import Situation, moved, settled


@pytest.mark.parametrize(
    ("before", "utilisation", "after"),
    [
        (None, 1.0, 200_000),
        (None, 0.0, 400_000),
        (None, 0.5, 300_000),
        (300_000, 0.55, None),  # 290,000 is close enough
        (300_000, 0.40, 320_000),
        (300_000, 0.58, 284_000),
        (300_000, 1.0, 280_000),  # no further in one tick
        (300_000, 1.7, 280_000),
    ],
)
def test_theta_follows_utilisation_in_bounded_steps(
    before: Any, utilisation: Any, after: Any
) -> None:
    found = moved(What.THETA, settled(theta_ppm=before), Situation(utilisation=utilisation))
    assert found == (None if after is None else (before, after, Reason.UTILISATION))
