"""Engines that are queues: nearly the same figures as those that go step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway_runtime.bench.traces import read_azure
from headway_runtime.executors.simulated.request import Arrival
from tests.autoscale.cases import CLASS_NAME, Case
from tests.autoscale.fluid_pod import FluidPod
from tests.autoscale.scalers import Planned
from tests.autoscale.simulation import simulate

CASE = Case("short", "none", read_azure, slower=5, ttft_ms=2000, tpot_ms=100, minutes=(0, 2))
FLUID = replace(CASE, is_fluid=True)


def requests(each_s: float, prompt: int = 800, answer: int = 60) -> list[Arrival]:
    count = int(CASE.duration_s / each_s)
    return [Arrival(number * each_s, CLASS_NAME, prompt, answer) for number in range(count)]


def pod() -> FluidPod:
    return FluidPod("pod", CASE, 0.0, 0.0, seed=1)


def test_a_request_alone_gets_all_its_tokens_in_time() -> None:
    made = pod()
    made.send(Arrival(1.0, CLASS_NAME, 1000, 100))
    made.run(1.001)
    assert (made.open, len(made.answered)) == (1, 0)
    made.run(60.0)
    (answered,) = made.answered
    assert made.open == 0
    assert answered.attained
    # 1,000 tokens of 5 times 21.6 us, and steps of 5 times 3.2 ms around them.
    assert 0.108 < answered.ttft_s < 0.4
    assert 100 * 0.026 < made.ended_s - 1.0 < 100 * 0.1


def test_one_who_cannot_be_in_time_gives_way_and_is_answered_late() -> None:
    made = pod()
    made.send(Arrival(0.0, CLASS_NAME, 15_000, 2))  # 1.7 s of work
    for _ in range(4):
        made.send(Arrival(0.0, CLASS_NAME, 2000, 2))
    made.run(30.0)
    assert len(made.answered) == 5
    assert sum(each.attained for each in made.answered) == 4


def test_what_is_asked_for_is_told_also_beyond_what_can_be_done() -> None:
    told = []
    for each_s in (1.0, 0.1):
        made = pod()
        for request in requests(each_s):
            made.send(request)
        made.run(60.0)
        told.append(made.tell(60.0))
    quiet, full = told
    assert quiet.report.waiting == 0 < full.report.waiting
    assert quiet.token_load < 0.3
    assert full.token_load > 1.0
    assert full.report.utilisation == 1.0


@pytest.mark.parametrize("each_s", [2.0, 0.4, 0.2])
def test_attainment_and_gpu_hours_are_as_in_steps(each_s: float) -> None:
    arrivals = requests(each_s)
    stepwise, fluid = (simulate(case, arrivals, Planned((2,)), 2, seed=1) for case in (CASE, FLUID))
    assert fluid.attainment == pytest.approx(stepwise.attainment, abs=0.03)
    assert fluid.gpu_hours == pytest.approx(stepwise.gpu_hours, rel=0.03)


def test_a_pod_that_loads_takes_none_of_the_requests() -> None:
    outcome = simulate(FLUID, requests(0.06), Planned((1, 4)), 1, seed=1)
    enough = simulate(FLUID, requests(0.06), Planned((4,)), 4, seed=1)
    assert outcome.attainment < 0.8 < enough.attainment
