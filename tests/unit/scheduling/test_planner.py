"""Plans of single steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.planner import PlanOverdueError, plan_step
from headway_runtime.scheduling.reason import Reason
from headway_runtime.scheduling.view import Limits, StepView, WaitingRequest

CEILINGS = Limits(8192, 256)


def never() -> bool:
    return False


@st.composite
def views(draw: st.DrawFn) -> StepView:
    ceilings = Limits(draw(st.integers(64, 16384)), draw(st.integers(1, 64)))
    return StepView(
        ceilings=ceilings,
        wanted=Limits(draw(st.integers(1, 40_000)), draw(st.integers(1, 4000))),
        running=draw(st.integers(0, ceilings.max_batch_size)),
        tokens_per_decode=draw(st.integers(1, 5)),
    )


@given(views())
def test_no_plan_exceeds_a_ceiling(view: Any) -> None:
    limits = plan_step(view, never).limits
    assert 1 <= limits.token_budget <= view.ceilings.token_budget
    assert 1 <= limits.max_batch_size <= view.ceilings.max_batch_size


@given(views())
def test_every_running_request_can_have_its_next_token(view: Any) -> None:
    budget = plan_step(view, never).limits.token_budget
    assert budget >= min(view.running * view.tokens_per_decode, view.ceilings.token_budget)


@pytest.mark.parametrize("budget", [1, 3, 4])
def test_an_engine_that_runs_nothing_can_admit_a_request_with_its_draft_tokens(budget: int) -> None:
    view = StepView(CEILINGS, Limits(budget, 8), running=0, tokens_per_decode=4)
    assert plan_step(view, never).limits == Limits(4, 1)


@given(views())
def test_no_plan_exceeds_the_policy_once_the_batch_fits(view: Any) -> None:
    limits = plan_step(view, never).limits
    assert limits.max_batch_size <= view.wanted.max_batch_size
    if max(1, view.running) * view.tokens_per_decode <= view.wanted.token_budget:
        assert limits.token_budget <= view.wanted.token_budget


@pytest.mark.parametrize(
    ("wanted", "running", "limits", "reasons"),
    [
        (CEILINGS, 0, CEILINGS, ()),
        (Limits(99_999, 999), 0, CEILINGS, ()),
        (Limits(512, 256), 10, Limits(512, 256), (Reason.BUDGET_FROM_POLICY,)),
        (Limits(8192, 32), 10, Limits(8192, 32), (Reason.BATCH_FROM_POLICY,)),
        (
            Limits(64, 256),
            100,
            Limits(100, 64),
            (Reason.BUDGET_FROM_POLICY, Reason.BUDGET_COVERS_RUNNING, Reason.BATCH_FITS_BUDGET),
        ),
    ],
)
def test_limits_come_with_their_reasons(
    wanted: Any, running: Any, limits: Any, reasons: Any
) -> None:
    plan = plan_step(StepView(CEILINGS, wanted, running), never)
    assert (plan.limits, plan.reasons) == (limits, reasons)


def test_a_plan_that_moves_nobody_has_no_placements() -> None:
    waiting = (WaitingRequest("a", 1.0), WaitingRequest("b", 2.0))
    assert plan_step(StepView(CEILINGS, CEILINGS, 0, unsettled=waiting), never).placements == ()


def test_a_plan_that_lets_a_request_overtake_says_so() -> None:
    waiting = (WaitingRequest("a", 1.0), WaitingRequest("b", 2.0, TrafficClass("c", ttft_ms=1)))
    plan = plan_step(StepView(CEILINGS, CEILINGS, 0, unsettled=waiting), never)
    assert [each.request_id for each in plan.placements] == ["b", "a"]
    assert Reason.DEADLINE_FIRST in plan.reasons


@pytest.mark.parametrize("stages_in_time", [0, 1])
def test_planning_stops_after_the_stage_that_was_late(stages_in_time: Any) -> None:
    answers = iter([False] * stages_in_time + [True])
    with pytest.raises(PlanOverdueError):
        plan_step(StepView(CEILINGS, CEILINGS, 0), lambda: next(answers))
    assert next(answers, "asked no more") == "asked no more"


def test_a_step_costs_what_has_arrived_and_not_what_is_waiting() -> Any:
    looked_at = []

    class Settled:
        def __len__(self) -> int:
            return 10_000

        def __getitem__(self, index: int) -> tuple[int, float]:
            looked_at.append(index)
            return (1, float(index))

    new = (WaitingRequest("new", 0.0, TrafficClass("c", ttft_ms=1)),)
    plan_step(StepView(CEILINGS, CEILINGS, 0, settled=Settled(), unsettled=new), never)
    assert len(looked_at) <= 14
