"""What a step may take on whose plan is late or fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway_runtime.exchange.step_record import Decision
from headway_runtime.executors.vllm import control as control_module
from headway_runtime.executors.vllm.adapter import Adapter
from headway_runtime.policy import Mode
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.planner import PlanOverdueError
from headway_runtime.scheduling.unplanned import REMEMBERED_PLANS, Unplanned
from headway_runtime.scheduling.view import Limits
from tests.unit.runtime.control_bench import Bench

CEILINGS = (2048, 64)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("PLAN_CPU_DEADLINE_NS", "PLAN_WALL_DEADLINE_NS"):
        monkeypatch.setattr(control_module, name, 10**15)
    made = Bench(tmp_path)
    made.scheduler.running.extend(object() for _ in range(5))
    made.control.planner = giving(300)
    return made


def giving(prompt_tokens: Any) -> Any:
    return lambda *_: StepPlan(Limits(305, 64), prompt_tokens=prompt_tokens)


def overdue(*_: Any) -> Any:
    raise PlanOverdueError


def broken(*_: Any) -> Any:
    raise ZeroDivisionError


@pytest.mark.parametrize(("planner", "word"), [(overdue, Decision.LATE), (broken, Decision.FAILED)])
def test_it_gets_the_prompt_tokens_that_plans_gave_beside_those_of_decodes(
    bench: Any, planner: Any, word: Decision
) -> None:
    bench.publish(1, max_batch_size=32)
    bench.step()
    bench.control.planner = planner
    record = bench.step()
    assert bench.seen == [(305, 64), (305, 32)]
    assert (record.decision, record.token_budget, record.max_batch) == (word, 305, 32)
    assert bench.scheduler.max_num_scheduled_tokens == CEILINGS[0]


def test_it_has_them_while_planning_is_paused(bench: Any) -> None:
    bench.publish(1)
    bench.step()
    bench.control.planner = overdue
    assert [bench.step().decision for _ in range(4)][-1] == Decision.BREAKER
    bench.scheduler.running.append(object())
    bench.step()
    assert bench.seen[-2:] == [(305, 64), (306, 64)]


def test_where_no_plan_gave_any_the_engine_has_its_own_budget(bench: Any) -> None:
    bench.publish(1)
    bench.control.planner = giving(None)
    bench.step()
    bench.control.planner = overdue
    bench.step()
    assert bench.seen[-1] == CEILINGS


@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.OFF])
def test_an_engine_that_is_not_to_be_driven_has_its_own_budget(bench: Any, mode: Mode) -> None:
    bench.publish(1)
    bench.step()
    bench.publish(2, mode=mode)
    bench.control.planner = overdue
    bench.step()
    assert bench.seen[-1] == CEILINGS


def test_a_limit_that_cannot_be_set_costs_nothing(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.publish(1)
    bench.step()
    bench.control.planner = overdue
    monkeypatch.setattr(Adapter, "limit_prompts", broken)
    record = bench.step()
    assert (bench.seen[-1], record.token_budget) == (CEILINGS, CEILINGS[0])


def test_the_most_of_the_last_plans_that_gave_any_counts() -> None:
    unplanned = Unplanned()
    for tokens in (8_000, *(200 + number for number in range(REMEMBERED_PLANS)), 0, None):
        unplanned.planned(StepPlan(Limits(8192, 256), prompt_tokens=tokens))
    assert unplanned.prompt_tokens == 200 + REMEMBERED_PLANS - 1
