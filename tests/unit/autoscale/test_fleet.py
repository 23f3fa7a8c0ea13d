"""Pods as a Deployment keeps them."""

from __future__ import annotations

from headway_runtime.bench.traces import read_azure
from headway_runtime.executors.simulated.request import Arrival
from tests.autoscale.cases import CLASS_NAME, Case
from tests.autoscale.fleet import START_SECONDS, Fleet
from tests.autoscale.scalers import Planned
from tests.autoscale.simulation import simulate

CASE = Case("short", "none", read_azure, slower=5, ttft_ms=2000, tpot_ms=100, minutes=(0, 2))


def request(at: float, output_tokens: int = 20) -> Arrival:
    return Arrival(at, CLASS_NAME, 100, output_tokens)


def test_a_pod_takes_requests_only_when_it_has_loaded() -> None:
    fleet = Fleet(CASE, 1, seed=1)
    fleet.scale(2)
    old, new = fleet.pods
    fleet.run(START_SECONDS - 5, [request(float(second)) for second in range(50)])
    assert (len(old.answered) + old.open, new.open) == (50, 0)
    fleet.run(START_SECONDS, [])
    assert fleet.ready == [old, new]
    fleet.run(START_SECONDS + 60, [request(START_SECONDS + second) for second in range(50)])
    assert new.answered
    assert len(fleet.answered) + fleet.open == 100


def test_a_pod_that_is_removed_drains_and_costs_until_its_last_request_ends() -> None:
    fleet = Fleet(CASE, 1, seed=1)
    fleet.run(5.0, [request(1.0, output_tokens=400)])
    fleet.scale(0)
    assert len(fleet.draining) == 1
    while fleet.open:
        fleet.run(fleet.now_s + 5.0, [])
    assert not fleet.draining
    (answered,) = fleet.answered
    assert answered.attained
    assert 400 * 0.02 < fleet.gpu_seconds <= fleet.now_s


def test_pods_that_load_go_first_and_cost_what_they_loaded() -> None:
    fleet = Fleet(CASE, 2, seed=1)
    kept = list(fleet.pods)
    fleet.scale(3)
    fleet.run(20.0, [])
    fleet.scale(2)
    assert fleet.pods == kept
    assert fleet.gpu_seconds == 20.0


def test_idle_pods_cost_all_of_the_time() -> None:
    outcome = simulate(CASE, [request(1.0)], Planned((3,)), 3, seed=1)
    assert outcome.gpu_hours * 3600 == 3 * CASE.duration_s
    assert (outcome.attainment, outcome.decisions, outcome.pods) == (1.0, 0, (3, 3))


def test_the_same_seed_gives_the_same_run() -> None:
    arrivals = [request(second / 4) for second in range(400)]
    first, again, other = (
        simulate(CASE, arrivals, Planned((2, 3)), 2, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
