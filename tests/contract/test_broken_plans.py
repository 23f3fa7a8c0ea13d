"""What becomes of steps whose plans fail, and when planning resumes."""

from __future__ import annotations

from typing import Any

import pytest

from headway_runtime.exchange.step_record import Decision
from headway_runtime.executors.vllm.adapter import Adapter
from headway_runtime.policy import Mode, TrafficClass
from headway_runtime.scheduling import breaker
from headway_runtime.scheduling.planner import PlanOverdueError, plan_step
from tests.contract.engines import BATCH, policy

BUDGET_TOKENS = 64
CEILING_TOKENS = 256


def busy(make: Any, count: Any = 40) -> Any:
    """An engine with more prompts than several steps can compute."""
    engine = make(policy(token_budget=BUDGET_TOKENS))
    for number in range(count):
        engine.add(f"r{number}", "batch", prompt_tokens=100, arrival_s=float(number))
    return engine


def plan_with(engine: Any, planner: Any) -> None:
    engine.scheduler._headway.planner = planner


def decisions(engine: Any) -> list[int]:
    return [each.decision for each in engine.statistics().records]


def overdue(*_: Any) -> Any:
    raise PlanOverdueError


def test_a_late_plan_is_dropped_and_the_engine_decides(make: Any) -> None:
    engine = busy(make)
    plan_with(engine, overdue)
    assert engine.step().total_num_scheduled_tokens == CEILING_TOKENS
    plan_with(engine, plan_step)
    assert engine.step().total_num_scheduled_tokens == BUDGET_TOKENS
    assert decisions(engine) == [Decision.LATE, Decision.ACT]
    assert engine.record.breaker_total == 0


def test_a_step_without_a_plan_computes_no_more_prompt_tokens_than_those_before(make: Any) -> None:
    engine = busy(make)
    planned = [engine.step() for _ in range(3)]
    assert {each.total_num_scheduled_tokens for each in planned} == {BUDGET_TOKENS}
    running = len(engine.scheduler.running)
    plan_with(engine, overdue)
    for _ in range(breaker.FAILURES_TO_OPEN + 1):
        tokens = engine.step().total_num_scheduled_tokens
        assert BUDGET_TOKENS <= tokens <= running + BUDGET_TOKENS
        running = len(engine.scheduler.running)
    assert decisions(engine)[-2:] == [Decision.LATE, Decision.BREAKER]
    engine.publish(policy(mode=Mode.OFF))
    assert engine.step().total_num_scheduled_tokens == CEILING_TOKENS


def test_a_long_prompt_in_front_takes_no_tokens_of_answers_while_planning_is_paused(
    make: Any,
) -> None:
    chat = TrafficClass("chat", ttft_ms=60_000, tpot_ms=40)
    engine = make(policy(token_budget=BUDGET_TOKENS, classes=(chat, BATCH)))
    engine.add("long", "batch", prompt_tokens=2000)
    engine.step()
    names = [f"chat{number}" for number in range(4)]
    for name in names:
        engine.add(name, "chat", prompt_tokens=16, output_tokens=200)
    while any(engine.scheduler.requests[name].num_output_tokens < 1 for name in names):
        engine.step()
    assert engine.running[0] == "long"
    plan_with(engine, overdue)
    for _ in range(breaker.FAILURES_TO_OPEN + 5):
        tokens = engine.step().num_scheduled_tokens
        assert [tokens.get(name) for name in names] == [1] * len(names)
        assert 0 < tokens["long"] <= BUDGET_TOKENS
    assert decisions(engine)[-1] == Decision.BREAKER


def test_planning_resumes_when_the_breaker_closes(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = busy(make)
    plan_with(engine, overdue)
    for _ in range(breaker.FAILURES_TO_OPEN + 1):
        engine.step()
    assert decisions(engine)[-1] == Decision.BREAKER
    plan_with(engine, plan_step)
    control = engine.scheduler._headway
    assert engine.step().total_num_scheduled_tokens == CEILING_TOKENS
    monkeypatch.setattr(control._breaker, "_open_until_s", 0.0)
    assert engine.step().total_num_scheduled_tokens == BUDGET_TOKENS
    assert decisions(engine)[-2:] == [Decision.BREAKER, Decision.ACT]


def test_a_plan_that_fails_half_way_leaves_no_limit_behind(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = busy(make)
    before = {name: value for name, value in vars(engine.scheduler).items() if "max_num" in name}
    with monkeypatch.context() as broken:
        apply = Adapter.apply

        def fail(self: Adapter, plan: Any) -> None:
            apply(self, plan)
            raise ZeroDivisionError

        broken.setattr(Adapter, "apply", fail)
        assert engine.step().total_num_scheduled_tokens == CEILING_TOKENS
    assert vars(engine.scheduler).items() >= before.items()
    assert decisions(engine) == [Decision.FAILED]
    for _ in engine.run():
        pass
    assert engine.record.decision == Decision.ACT
    assert len(engine.admitted) == 40
