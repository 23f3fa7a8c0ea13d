"""Headway's planner with a part off: the part is off, and on again afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway_runtime.bench.hidden import HIDING
from headway_runtime.bench.rivals.ablations import ABLATIONS, _replacing
from headway_runtime.scheduling import (
    candidates,
    decode_only,
    lateness,
    planner,
    prefill_budget,
    reserve,
    step_size,
)
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.planner import PlanOverdueError, plan_step
from headway_runtime.scheduling.reason import Reason
from headway_runtime.scheduling.timing import decode_clock, pace, slack
from headway_runtime.scheduling.timing.pace import aimed_tpot_s
from headway_runtime.scheduling.timing.step_shape import StepShape
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.view import (
    Carried,
    Prefill,
    StepView,
)
from tests.unit import planned
from tests.unit.planned import BATCH, CEILINGS, CHAT, NOW, batch, chat, due

MODULES = (
    *(candidates, decode_clock, lateness, pace, planner),
    *(decode_only, prefill_budget, reserve, slack, step_size),
)


def view(waiting: Any = (), **fields: Any) -> StepView:
    """An engine with these requests waiting and this in hand."""
    return planned.view(planned.work(**fields), waiting)


def ours(seen: StepView) -> StepPlan:
    return plan_step(seen, lambda: False)


def without(part: str, seen: StepView) -> StepPlan:
    rival = ABLATIONS[part]
    with rival.in_force():
        return rival.planner(seen, lambda: False)


def taught() -> StepTimeModel:
    """A model of a machine that is three times as slow as the prior says."""
    model, prior = StepTimeModel(), StepTimeModel()
    for number in range(200):
        shape = StepShape(256 + number, 10, 1000, 1000.0 * number)
        model.learn(shape, 3 * prior.seconds(shape))
    return model


LATE = view([chat("long", 30_000, NOW - 0.9), chat("short", 100, NOW - 0.8)])
A_TIGHT_STEP = view([chat("c", 5000)], decodes=50, due=due(0.03))
A_LARGE_STEP = view(
    [chat("c", 5000)], decodes=50, due=due(0.03), graph_tokens=512, eager_launch_s=0.05
)
A_SHARE_DUE = view(
    [chat("c", 3000), batch("b", 200)],
    decodes=10,
    due=due(0.03),
    carried=Carried(background_credit_tokens=500.0),
)
FULL_BLOCKS = view([batch("b", 500)], decodes=10, tightest_ttft_s=1.0, kv_usage=0.95)
FULL_SLOTS = view([batch("b", 500)], decodes=245, tightest_ttft_s=1.0)
NOTHING_DUE = view([batch("b", 8000), batch("c", 8000)], tightest_ttft_s=0.3)
NO_TIME = view(prefills=(Prefill("c", 0, 5000, NOW - 0.9, CHAT),), decodes=50, due=due(0.001))
MIXED = view([batch("b", 9000, NOW - 2), chat("c", 300, NOW - 0.5)])
ON_A_SLOW_MACHINE = view([chat("c", 5000)], decodes=50, due=due(0.06), step_time=taught())
A_SLOW_LAUNCH = view(
    [chat("c", 300)], decodes=50, due=due(0.02), graph_tokens=512, graph_launch_s=0.05
)
_LAUNCHES: dict[str, Any] = {
    "decodes": 128,
    "graph_tokens": 512,
    "decode_launch_s": 0.003,
    "graph_launch_s": 0.014,
    "eager_launch_s": 0.04,
}
A_SHARED_LAUNCH = view([chat("c", 100)], due=due(0.2), arrivals_per_s=80.0, **_LAUNCHES)
SOMEBODY_HAS_JUST_BEGUN = view(
    [chat("c", 3000)], due=due(0.035), decode_context=130_000, **_LAUNCHES
)
VIEWS = (
    *(LATE, A_TIGHT_STEP, A_LARGE_STEP, A_SHARE_DUE, FULL_BLOCKS, FULL_SLOTS, NOTHING_DUE),
    *(NO_TIME, MIXED, ON_A_SLOW_MACHINE, A_SLOW_LAUNCH, A_SHARED_LAUNCH),
    SOMEBODY_HAS_JUST_BEGUN,
)


def test_without_the_clock_the_engine_is_free_now() -> None:
    later = without("clock", A_TIGHT_STEP)
    assert later.limits.token_budget > ours(A_TIGHT_STEP).limits.token_budget
    assert A_TIGHT_STEP.work is not None
    free_now = replace(A_TIGHT_STEP, work=replace(A_TIGHT_STEP.work, free_s=NOW))
    assert later == ours(free_now)


def test_without_the_margin_tokens_are_aimed_at_as_promised() -> None:
    with ABLATIONS["margin"].in_force():
        assert aimed_tpot_s(CHAT, is_late=False) == pytest.approx(0.03)
    assert aimed_tpot_s(CHAT, is_late=False) == pytest.approx(0.0294)


def test_the_margin_comes_back_whatever_happens() -> None:
    kept = pace.TPOT_MARGIN
    with pytest.raises(KeyError), ABLATIONS["margin"].in_force():
        raise KeyError
    assert kept == pace.TPOT_MARGIN > 0


def test_plans_without_the_margin_are_refused_while_it_is_there() -> None:
    with pytest.raises(RuntimeError, match="in force"):
        ABLATIONS["margin"].planner(A_TIGHT_STEP, lambda: False)


def test_without_the_graph_rule_steps_may_be_a_little_too_large() -> None:
    assert Reason.GRAPH_SIZE in ours(A_LARGE_STEP).reasons
    assert ours(A_LARGE_STEP).limits.token_budget == 512
    found = without("graph", A_LARGE_STEP)
    assert Reason.GRAPH_SIZE not in found.reasons
    assert found.limits.token_budget > 512


def test_without_a_share_background_prompts_wait() -> None:
    assert ours(A_SHARE_DUE).first == "b"
    found = without("share", A_SHARE_DUE)
    assert found.first is None
    assert found.carried.background_credit_tokens == 0
    assert Reason.BACKGROUND_SHARE not in found.reasons


def test_without_lateness_nobody_is_given_up() -> None:
    assert ours(LATE).late == ("long",)
    assert not without("lateness", LATE).late


@pytest.mark.parametrize("seen", [FULL_BLOCKS, FULL_SLOTS])
def test_without_a_reserve_background_work_takes_all(seen: StepView) -> None:
    assert ours(seen).limits.max_batch_size < CEILINGS.max_batch_size
    found = without("reserve", seen).limits.max_batch_size
    assert found == CEILINGS.max_batch_size
    assert isinstance(found, int)


def test_without_the_cap_steps_are_longer_than_arrivals_can_wait() -> None:
    assert ours(NOTHING_DUE).limits.token_budget < CEILINGS.token_budget
    assert without("ttftcap", NOTHING_DUE).limits == CEILINGS
    # What is due still counts.
    pressed = view([chat("c", 5000)], decodes=50, due=due(0.03), tightest_ttft_s=0.3)
    assert without("ttftcap", pressed).limits.token_budget < 2000


def test_without_a_floor_a_prompt_gets_one_token() -> None:
    assert Reason.PREFILL_FLOOR in ours(NO_TIME).reasons
    assert ours(NO_TIME).limits.token_budget > 50 + 16
    assert without("floor", NO_TIME).limits.token_budget == 50 + 1


def test_without_an_order_prompts_go_as_they_came() -> None:
    assert [each.request_id for each in ours(MIXED).placements] == ["c", "b"]
    assert not without("order", MIXED).placements
    held_back = view(
        [chat("c", 9000)],
        prefills=[Prefill("r", 10, 5000, NOW - 3, BATCH)],
        decodes=10,
        due=due(0.05),
    )
    assert ours(held_back).chunks == {"r": 0}
    found = without("order", held_back)
    assert found.chunks["r"] == found.limits.token_budget - 10 > 0
    assert not found.admits


def test_without_learning_plans_come_from_the_prior() -> None:
    assert ON_A_SLOW_MACHINE.work is not None
    prior = replace(ON_A_SLOW_MACHINE.work, step_time=StepTimeModel())
    found = without("learning", ON_A_SLOW_MACHINE)
    assert found == ours(replace(ON_A_SLOW_MACHINE, work=prior))
    assert found.limits.token_budget > 2 * ours(ON_A_SLOW_MACHINE).limits.token_budget


@pytest.mark.parametrize("part", sorted(ABLATIONS.keys() - HIDING.keys()))
def test_each_part_makes_a_difference_somewhere(part: str) -> None:
    if part not in ("margin", "early"):
        assert any(without(part, each) != ours(each) for each in VIEWS)


@pytest.mark.parametrize("part", ABLATIONS)
@pytest.mark.parametrize("overdue_at", [1, 2, 3, None])
def test_everything_is_put_back_after_a_plan(part: str, overdue_at: int | None) -> None:
    before = [dict(vars(module)) for module in MODULES]
    plans = [ours(each) for each in VIEWS]
    asked = 0

    def is_overdue() -> bool:
        nonlocal asked
        asked += 1
        return asked == overdue_at

    for seen in VIEWS:
        asked = 0
        with ABLATIONS[part].in_force():
            try:
                ABLATIONS[part].planner(seen, is_overdue)
            except PlanOverdueError:
                assert overdue_at is not None
    assert [dict(vars(module)) for module in MODULES] == before
    assert [ours(each) for each in VIEWS] == plans


@pytest.mark.parametrize("part", sorted(set(ABLATIONS) - {"order", "reserve"}))
def test_without_sight_of_the_work_all_plan_alike(part: str) -> None:
    seen = replace(MIXED, work=None)
    assert without(part, seen) == ours(seen)


def test_a_part_that_is_no_more_is_not_overlooked() -> None:
    with pytest.raises(AttributeError):
        _replacing(lateness, MOORE_HODGSON=False)


def test_the_settled_queue_stays_as_it_came_without_an_order() -> None:
    front = [batch("b", 300, NOW - 3)]
    seen = replace(
        view([chat("c", 300)]), front=tuple(front), settled=[each.urgency for each in front]
    )
    assert [each.position for each in ours(seen).placements] == [0]
    assert not without("order", seen).placements
