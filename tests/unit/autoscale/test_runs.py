"""What is simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headway_runtime.executors.simulated.request import Arrival
from tests.autoscale import autoscale
from tests.autoscale.arms import HEADWAY, Foreseen
from tests.autoscale.autoscale import by_case, planned
from tests.autoscale.cases import CLASS_NAME, HELD_OUT, SCALED
from tests.autoscale.scalers import Headway
from tests.autoscale.simulation import Outcome, simulate

OUTCOME = Outcome(0.99, 4.0, 0.5, 2.0, 10, (3, 4))


@pytest.fixture(autouse=True)
def foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the traces."""
    found = Foreseen((1.0,), (2,), (2,))
    monkeypatch.setattr(autoscale, "_foreseen", lambda *_: found)


def test_what_is_held_out_goes_step_by_step_and_as_queues() -> None:
    runs = list(planned(Path(), 2, [HELD_OUT[0].name]))
    found = by_case(runs, dict.fromkeys(runs, OUTCOME))
    stepwise = {case for case, is_fluid in found if not is_fluid}
    assert stepwise == {HELD_OUT[0].name}
    name = HELD_OUT[0].name
    assert set(found[name, False]) < set(found[name, True])
    assert len(found[name, False][HEADWAY]) == 2
    assert all((case.name, True) in found for case in (*HELD_OUT, *SCALED))
    assert len(set(runs)) == len(runs)


def test_the_operator_adds_pods_for_requests_that_are_simulated() -> None:
    case = replace(HELD_OUT[0], minutes=(0, 2), is_fluid=True)
    arrivals = [Arrival(each / 4, CLASS_NAME, 1500, 100) for each in range(480)]
    outcome = simulate(case, arrivals, Headway(case, 1), 1, 1)
    assert outcome.pods[0] == 1
    assert outcome.pods[-1] > 1


def test_outcomes_are_in_order_of_their_seeds() -> None:
    runs = [run for run in planned(Path(), 3, []) if run.case == HELD_OUT[0].name]
    outcomes = {run: replace(OUTCOME, decisions=run.seed) for run in reversed(runs)}
    found = by_case(runs, outcomes)
    assert [each.decisions for each in found[HELD_OUT[0].name, True][HEADWAY]] == [1, 2, 3]
