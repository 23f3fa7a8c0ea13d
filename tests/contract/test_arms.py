"""Arms of the benchmark in a real vLLM scheduler."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headway_runtime.bench.arm_scheduler import STEP_LOG_VARIABLE, ArmScheduler
from headway_runtime.bench.arms import APPLIED_FILE, ARM_FILE, Arm, Seating, ablations, parse
from headway_runtime.bench.engine import policy
from headway_runtime.bench.step_log import column, read_steps
from headway_runtime.exchange import policy_file
from headway_runtime.exchange.step_record import Decision
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.planner import plan_step
from headway_runtime.scheduling.timing import pace
from tests.contract.engines import (
    BATCH,
    INTERACTIVE,
    Engine,
    build_engine,
    engine_configuration,
    write_model,
)

SERIALS = iter(range(1, 10_000))
PRIORITIES = {"interactive": 0, "batch": 1}


class Bench:
    """An engine and the runner's side of its run directory."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def seat(self, arm: Arm | str) -> int:
        """Ask for an arm, and knock."""
        serial = next(SERIALS)
        wanted = parse(arm) if isinstance(arm, str) else arm
        if wanted.is_planned:
            path = self.engine.run_dir / policy_file.FILE_NAME
            policy_file.write(path, policy((INTERACTIVE, BATCH), serial))
        seating = Seating(wanted, serial, PRIORITIES)
        (self.engine.run_dir / ARM_FILE).write_text(seating.to_json())
        self.engine.add(f"knock-{serial}")
        list(self.engine.run())
        self.engine.steps.clear()
        return serial

    @property
    def applied(self) -> Any:
        return json.loads((self.engine.run_dir / APPLIED_FILE).read_text())


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    run_dir, model_dir = tmp_path / "run", tmp_path / "model"
    run_dir.mkdir()
    model_dir.mkdir()
    monkeypatch.setenv("HEADWAY_RUN_DIR", str(run_dir))
    monkeypatch.setenv(STEP_LOG_VARIABLE, str(tmp_path / "steps"))
    configuration = engine_configuration(write_model(model_dir))
    made = Bench(build_engine(configuration, run_dir, scheduler_class=ArmScheduler))
    yield made
    made.engine.scheduler.shutdown()


def test_an_arm_is_acknowledged_with_its_run_and_the_engines_version(bench: Bench) -> None:
    serial = bench.seat("stock-64-fcfs")
    assert (bench.applied["arm"], bench.applied["serial"]) == ("stock-64-fcfs", serial)
    assert bench.applied["engine_version"][0].isdigit()
    assert isinstance(bench.applied["async_scheduling"], bool)


def test_no_arm_is_changed_while_requests_are_open(bench: Bench) -> None:
    serial = bench.seat("stock-64-fcfs")
    bench.engine.add("open", output_tokens=50)
    bench.engine.step()
    (bench.engine.run_dir / ARM_FILE).write_text(Seating(parse("static-32"), 10**6).to_json())
    bench.engine.add("late")
    assert bench.applied["serial"] == serial


def test_a_stock_arms_token_budget_bounds_every_step(bench: Bench) -> None:
    bench.seat("stock-64-fcfs")
    for index in range(4):
        bench.engine.add(f"r{index}", prompt_tokens=100)
    steps = list(bench.engine.run())
    assert max(each.total_num_scheduled_tokens for each in steps) == 64


def test_a_long_prefill_threshold_bounds_each_requests_prompt_tokens(bench: Bench) -> None:
    bench.seat("stock-128-fcfs-long32")
    # Later versions let a request that is alone have the whole budget.
    bench.engine.add("long", prompt_tokens=100)
    bench.engine.add("short", prompt_tokens=10)
    assert bench.engine.step().num_scheduled_tokens == {"long": 32, "short": 10}


@pytest.mark.parametrize(
    ("arm", "admitted"),
    [
        ("stock-32-fcfs", ["b", "i"]),
        ("stock-32-priority", ["i", "b"]),
        ("headway", ["i", "b"]),
        ("sarathi-30", ["b", "i"]),
        ("sarathi-30-priority", ["i", "b"]),
        ("niyama", ["i", "b"]),
        ("headway-no-order", ["b", "i"]),
        ("headway-no-graph", ["i", "b"]),
    ],
)
def test_order_of_waiting_requests(bench: Bench, arm: str, admitted: list[str]) -> None:
    bench.seat(arm)
    bench.engine.add("first", prompt_tokens=1000)
    bench.engine.step()
    now_s = time.time()
    bench.engine.add("b", "batch", arrival_s=now_s)
    bench.engine.add("i", "interactive", arrival_s=now_s + 0.001)
    list(bench.engine.run())
    assert bench.engine.admitted[1:] == admitted


def test_arms_can_follow_each_other_in_any_order(bench: Bench) -> None:
    arms = ["headway", "stock-32-priority", "headway", "static-2", "stock-32-fcfs", "headway"]
    for arm in arms:
        bench.seat(arm)
        for index in range(5):
            bench.engine.add(f"{arm}-{index}", ("batch", "interactive")[index % 2])
        list(bench.engine.run())
        assert len(bench.engine.admitted) == 5
        is_planned = bench.engine.scheduler._headway is bench.engine.scheduler._planned
        assert is_planned == (arm == "headway")
    assert bench.engine.scheduler.max_num_scheduled_tokens == 256
    assert bench.engine.record.failed_total == 0
    assert bench.engine.record.decision == Decision.ACT


def test_a_static_batch_is_admitted_when_the_one_before_is_done(bench: Bench) -> None:
    bench.seat("static-2")
    for index, tokens in enumerate((3, 9, 4, 4, 5)):
        bench.engine.add(f"r{index}", output_tokens=tokens)
    together = []
    while bench.engine.scheduler.has_requests():
        bench.engine.step()
        together.append(tuple(bench.engine.running))
    assert [each for each in dict.fromkeys(together) if len(each) == 2] == [
        ("r0", "r1"),
        ("r2", "r3"),
    ]
    assert ("r1",) in together
    assert ("r4",) in together


def test_a_client_that_leaves_does_not_block_a_static_batch(bench: Bench) -> None:
    bench.seat("static-2")
    for index in range(4):
        bench.engine.add(f"r{index}", output_tokens=20)
    bench.engine.step()
    from vllm.v1.request import RequestStatus  # noqa: PLC0415

    bench.engine.scheduler.finish_requests(["r0", "r1"], RequestStatus.FINISHED_ABORTED)
    bench.engine.step()
    assert bench.engine.running == ["r2", "r3"]


def test_the_step_log_tells_what_each_step_computed(bench: Bench, tmp_path: Path) -> None:
    serial = bench.seat("stock-64-fcfs")
    bench.engine.add("a", prompt_tokens=100, output_tokens=3)
    for output in bench.engine.run():
        bench.engine.scheduler.get_grammar_bitmask(output)
    rows = read_steps(tmp_path / "steps", serial)[-4:]
    assert column(rows, "prefill_tokens").tolist() == [64, 36, 0, 0]
    assert column(rows, "decodes").tolist() == [0, 0, 1, 1]
    assert column(rows, "decode_context").tolist() == [0, 0, 100, 101]
    assert column(rows, "attention_pairs").tolist() == [64 * 32, 36 * (64 + 18), 0, 0]
    assert set(column(rows, "token_budget")) == {64}
    assert (column(rows, "update_s") >= column(rows, "scheduled_s")).all()
    assert (column(rows, "scheduled_s") >= column(rows, "schedule_s")).all()


def test_the_step_log_follows_overlapping_steps(bench: Bench, tmp_path: Path) -> None:
    serial = bench.seat("stock-64-fcfs")
    bench.engine.add("a", prompt_tokens=32, output_tokens=4)
    scheduler = bench.engine.scheduler
    first = bench.engine.schedule()
    scheduler.get_grammar_bitmask(first)
    second = bench.engine.schedule()
    scheduler.get_grammar_bitmask(second)
    bench.engine.finish(first)
    bench.engine.finish(second)
    list(bench.engine.run())
    rows = read_steps(tmp_path / "steps", serial)[-4:]
    assert column(rows, "launched_s")[1] < column(rows, "update_s")[0]
    assert column(rows, "prefill_tokens").tolist() == [32, 0, 0, 0]


PLANNED = ["sarathi-30", "sarathi-30-priority", "niyama", "niyama-0"]
PLANNED += [each.name for each in ablations()]


@pytest.mark.parametrize("arm", PLANNED)
def test_what_a_rival_plans_is_what_is_scheduled(bench: Bench, arm: str) -> None:
    bench.seat(arm)
    assert bench.applied["arm"] == arm
    engine, random = bench.engine, Random(3)  # noqa: S311 - no secret
    control = engine.scheduler._headway
    assert control is engine.scheduler._planned
    plans, planner = [], control.planner

    def kept(*seen: Any) -> StepPlan:
        plans.append(planner(*seen))
        return plans[-1]

    control.planner = kept
    for number in range(30):
        engine.add(
            f"r{number}",
            random.choice(("interactive", "batch")),
            prompt_tokens=random.randint(1, 700),
            output_tokens=random.randint(1, 40),
        )
    for output in engine.run():
        tokens, plan = output.num_scheduled_tokens, plans[-1]
        assert output.total_num_scheduled_tokens <= plan.limits.token_budget
        # An engine runs a step without tokens to tell its workers who has ended.
        assert output.total_num_scheduled_tokens or not engine.scheduler.has_unfinished_requests()
        assert {name: tokens.get(name, 0) for name in plan.chunks} == plan.chunks
    assert sum(len(each.chunks) for each in plans) > 10
    assert len(plans) == len(engine.steps)
    assert len(engine.admitted) == 30
    assert engine.record.failed_total == 0
    assert engine.record.decision == Decision.ACT


def test_sarathis_steps_are_as_long_as_the_arms_name_says(bench: Bench) -> None:
    budgets = []
    for arm in ("sarathi-1500", "sarathi-2000"):
        bench.seat(arm)
        # A machine on which a prompt token takes 10 ms.
        slow = bench.engine.scheduler._planned._executor._work.clock.step_time._mixed
        slow.coefficients = replace(slow.coefficients, prefill_token_s=0.01)
        bench.engine.add(arm, prompt_tokens=1000)
        budgets.append(bench.engine.step().total_num_scheduled_tokens)
        list(bench.engine.run())
    assert 130 < budgets[0] < 150
    assert 180 < budgets[1] < 200


def test_rivals_leave_nothing_behind(bench: Bench) -> None:
    scheduler, margin = bench.engine.scheduler, pace.TPOT_MARGIN
    for arm in ("stock-32-priority", "niyama", "headway-no-margin", "headway", "sarathi-30"):
        bench.seat(arm)
        assert (scheduler._planned.planner is plan_step) == (
            arm in ("headway", "stock-32-priority")
        )
        assert (pace.TPOT_MARGIN == 0) == (arm == "headway-no-margin")
        assert scheduler.policy.value == ("priority" if arm == "stock-32-priority" else "fcfs")
        bench.engine.add(arm, "interactive", output_tokens=20)
        list(bench.engine.run())
    bench.seat("stock-64-fcfs")
    assert scheduler._headway is scheduler._stock
    assert margin == pace.TPOT_MARGIN
    assert scheduler.max_num_scheduled_tokens == 64


def test_an_engine_that_shuts_down_takes_its_arm_with_it(bench: Bench) -> None:
    margin = pace.TPOT_MARGIN
    bench.seat("headway-no-margin")
    assert pace.TPOT_MARGIN == 0
    bench.engine.scheduler.shutdown()
    assert margin == pace.TPOT_MARGIN > 0


@pytest.mark.parametrize(
    ("arm", "admitted"),
    [
        ("spf", ["short", "middle", "long"]),
        ("vtc", ["long", "short", "middle"]),
        ("plas", ["long", "short", "middle"]),
        ("stock-32-fcfs", ["long", "short", "middle"]),
    ],
)
def test_a_rule_of_admission_orders_what_waits(bench: Bench, arm: str, admitted: list[str]) -> None:
    bench.seat(arm)
    bench.engine.add("first", prompt_tokens=600)
    bench.engine.step()
    sizes = {"long": ("batch", 900), "short": ("interactive", 10), "middle": ("interactive", 100)}
    for number, (name, (kind, tokens)) in enumerate(sizes.items()):
        bench.engine.add(name, kind, prompt_tokens=tokens, arrival_s=0.001 * number)
    list(bench.engine.run())
    assert bench.engine.admitted[1:] == admitted
