"""The gauge that replicas are decided by."""

from __future__ import annotations

import pytest

from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.executors.simulated.step import Step
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.timing.step_time_model import Coefficients
from tests.autoscale.token_load import (
    TokenLoad,
    answer_seconds,
    overhead_ratio,
    prompt_seconds,
)

COST = Coefficients(0.02, 1e-3, 1e-2, 1e-5, 0.0)
CHAT = TrafficClass("chat", ttft_ms=1000, tpot_ms=100)


def decoding() -> Step:
    """One request that decodes, with 100 tokens before."""
    request = Request("r", Arrival(0.0, "", 99, 1000))
    request.computed, request.known = 100, 101
    step = Step()
    step.add(request, 1)
    step.begin()
    assert step.decodes == 1
    return step


def test_steady_work_is_told_as_it_is_soon_and_late() -> None:
    load = TokenLoad(0.0)
    for second in range(1, 121):
        load.arrived(500, float(second))
        for _ in range(10):
            load.stepped(decoding(), float(second))
        if second in (5, 120):
            # Half a second of prompt, ten decodes of 11 ms.
            assert load.ratio(COST, 0, second + 0.5) == pytest.approx(0.61, rel=0.12)


def test_what_is_over_fades() -> None:
    load = TokenLoad(0.0)
    load.arrived(10_000, 100.0)
    soon, later = load.ratio(COST, 0, 100.0), load.ratio(COST, 0, 115.0)
    assert later == pytest.approx(soon / 2.718, rel=0.01)


def test_answers_of_those_that_wait_are_expected() -> None:
    load = TokenLoad(0.0)
    for _ in range(10):
        load.stepped(decoding(), 100.0)
    load.ended(101)
    alone = load.ratio(COST, 0, 100.0)
    # Three answers of 100 decodes of 11 ms, spread over what is remembered.
    assert load.ratio(COST, 3, 100.0) - alone == pytest.approx(3 * 100 * 0.011 / 15, rel=0.01)


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
