"""What the runs come to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.autoscale.arms import CLAIRVOYANT, HEADWAY
from tests.autoscale.figures import (
    Summary,
    as_one_setting,
    at_equal_attainment,
    best_hpa,
    compared,
    fluid_error,
    summary,
    worst,
)
from tests.autoscale.report import page
from tests.autoscale.simulation import Outcome

OUTCOME = Outcome(0.99, 4.0, 0.5, 2.0, 10, (3, 4))


def arm(attainment: float, gpu_hours: float) -> Summary:
    return summary([replace(OUTCOME, attainment=attainment, gpu_hours=gpu_hours)])


ARMS = {
    HEADWAY: arm(0.98, 4.0),
    CLAIRVOYANT: arm(0.99, 3.2),
    "fixed-2": arm(1.0, 1.0),
    "hpa-queue-1": arm(0.99, 8.0),
    "hpa-queue-4": arm(0.98, 6.0),
    "hpa-busy-0.8": arm(0.97, 2.0),
}


def test_the_best_hpa_is_the_cheapest_that_attains_as_much() -> None:
    assert best_hpa(ARMS) == "hpa-queue-4"
    assert best_hpa(ARMS, "hpa-busy") == "hpa-busy-0.8"


def test_if_none_attains_as_much_it_is_the_one_that_attains_most() -> None:
    assert best_hpa(ARMS | {HEADWAY: arm(0.999, 4.0)}) == "hpa-queue-1"


def test_ours_is_compared_with_the_best_and_the_worst_trace_counts() -> None:
    found = compared(ARMS)
    assert found["attainment_minus_hpa"] == 0.0
    assert found["gpu_hours_ratio_vs_hpa"] == pytest.approx(4 / 6, abs=1e-3)
    assert found["attainment_minus_clairvoyant"] == -0.01
    assert found["gpu_hours_ratio_vs_clairvoyant"] == 1.25
    better = {**found, "attainment_minus_hpa": 0.2, "gpu_hours_ratio_vs_hpa": 0.9}
    assert worst([found, better])["attainment_minus_hpa"] == 0.0
    assert worst([found, better])["gpu_hours_ratio_vs_hpa"] == 0.9


def test_at_equal_attainment_an_hpa_is_between_two_targets() -> None:
    two = {"hpa-busy-0.8": arm(0.98, 5.0), "hpa-busy-0.9": arm(0.96, 3.0)}
    assert at_equal_attainment({HEADWAY: arm(0.97, 3.0), **two}) == pytest.approx(3 / 4)
    assert at_equal_attainment({HEADWAY: arm(0.99, 3.0), **two}) is None
    assert at_equal_attainment({HEADWAY: arm(0.95, 3.0), **two}) == 1.0
    assert at_equal_attainment({HEADWAY: arm(0.98, 4.0), **two}) == pytest.approx(4 / 5)


def test_what_queues_are_off_by_is_told_apart_for_hpas_on_the_queue() -> None:
    other = ARMS | {HEADWAY: arm(0.97, 4.4), "hpa-queue-1": arm(0.95, 4.0)}
    found = fluid_error({"chat": ARMS}, {"chat": other})
    assert found["others"]["attainment_most"] == 0.01
    assert found["others"]["attainment_median"] == 0.0
    assert found["others"]["gpu_hours_most"] == 0.1
    assert found["hpa-queue"]["gpu_hours_most"] == 0.5


def test_one_setting_is_held_against_one_target_for_all_traces() -> None:
    dear = ARMS | {HEADWAY: arm(0.95, 8.0), "hpa-queue-1": arm(0.97, 8.0)}
    found = as_one_setting([ARMS, dear])["hpa-queue-1"]
    assert found == {"worst_attainment_minus": -0.02, "gpu_hours_ratio": 12 / 16}


def test_a_run_whose_requests_never_came_is_not_averaged_away() -> None:
    found = summary([OUTCOME, replace(OUTCOME, ttft_p99_s=None, attainment=0.97)])
    assert found.ttft_p99_s is None
    assert found.ttft_p50_s == 0.5
    assert found.attainment == pytest.approx(0.98)


def test_the_page_shows_every_arm_and_marks_the_best_hpa() -> None:
    about = {"requests": 9, "minutes": [0, 2], "slower": 5, "ttft_ms": 1000, "tpot_ms": 100}
    trace = {
        "about": about,
        **compared(ARMS),
        "needed_by_minute": [2, 3],
        "arms": {name: each.as_figures() for name, each in ARMS.items()},
    }
    text = page(
        {
            "held_out": {"chat": trace},
            "held_out_as_queues": {"chat as queues": trace},
            "seen": {"code": trace},
            "vs_one_hpa_for_all_traces": as_one_setting([ARMS]),
            "most_replicas": 900,
            "fluid_error": fluid_error({"chat": ARMS}, {"chat": ARMS}),
            "scaled": {"chat-x10": trace},
        }
    )
    places = [text.index(f"## {name}") for name in ("chat\n", "code\n", "chat-x10\n")]
    assert places == sorted(places)
    assert "| **hpa-queue-4** | 98.00 | 6.00 | 0.50 | 2.00 | 10 |" in text
    assert all(name in text for name in ARMS)
