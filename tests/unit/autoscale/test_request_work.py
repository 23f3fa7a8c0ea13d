"""Work of single requests."""

from __future__ import annotations

import pytest

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.timing.step_time_model import Coefficients
from tests.autoscale.request_work import (
    answer_seconds,
    overhead_ratio,
    prompt_seconds,
)

COST = Coefficients(0.02, 1e-3, 1e-2, 1e-5, 0.0)
CHAT = TrafficClass("chat", ttft_ms=1000, tpot_ms=100)


@pytest.mark.parametrize(
    ("promised", "expected"),
    [
        (CHAT, 0.02 / 0.098),
        (TrafficClass("c", ttft_ms=200, tpot_ms=100), 0.02 / 0.05),
        (TrafficClass("c", ttft_ms=100), 0.02 / 0.04),
        (TrafficClass("c", tpot_ms=10), 1.0),
        (TrafficClass("c"), 0.02),
    ],
)
def test_overhead_is_what_passes_in_steps_as_long_as_promised(
    promised: TrafficClass, expected: float
) -> None:
    assert overhead_ratio(COST, promised) == pytest.approx(expected)


def test_work_of_one_request() -> None:
    assert prompt_seconds(COST, 1000) == pytest.approx(1.0)
    # Two decodes after the first token, with 11 and 12 tokens before them.
    assert answer_seconds(COST, 10, 3) == pytest.approx(0.02 + 1e-5 * 23)
