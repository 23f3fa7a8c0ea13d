"""The operating point within caps that have changed."""

from __future__ import annotations

from typing import Any

import pytest

from headway_operator.decide.retune import Bounds, clamp
from headway_operator.memory.tuning import OperatingPoint, Streaks, Tuning


@pytest.mark.parametrize(
    ("point", "bounds", "clamped"),
    [
        (OperatingPoint(1, 500, 50, 20), Bounds(8192, 256), OperatingPoint(1, 500, 50, 20)),
        (OperatingPoint(1, 500, 50, 20), Bounds(500, 20), OperatingPoint(1)),
        (OperatingPoint(1, 10, 1, 0), Bounds(8192, 256), OperatingPoint(1, 64, 4, 1)),
        (OperatingPoint(1, 10, 1), Bounds(32, 2), OperatingPoint(1)),
        (OperatingPoint(), Bounds(64, 4), OperatingPoint()),
    ],
)
def test_other_caps_move_the_point_within_them(point: Any, bounds: Any, clamped: Any) -> None:
    assert clamp(Tuning(point, Streaks(1), 7), bounds) == Tuning(clamped, Streaks(1), 7)
