"""Arms of the benchmark in a real vLLM scheduler."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from headway_runtime.bench.arm_scheduler import STEP_LOG_VARIABLE, ArmScheduler
from headway_runtime.bench.arms import APPLIED_FILE, ARM_FILE, Arm, Seating, parse
from headway_runtime.bench.engine import policy
from headway_runtime.bench.step_figures import column
from headway_runtime.bench.step_log import read_steps
from headway_runtime.exchange import policy_file
from headway_runtime.exchange.step_record import Decision
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
        if wanted.name == "headway":
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
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    run_dir, model_dir = tmp_path / "run", tmp_path / "model"
    run_dir.mkdir()
    model_dir.mkdir()
    monkeypatch.setenv("HEADWAY_RUN_DIR", str(run_dir))
    monkeypatch.setenv(STEP_LOG_VARIABLE, str(tmp_path / "steps"))
    configuration = engine_configuration(write_model(model_dir))
    return Bench(build_engine(configuration, run_dir, scheduler_class=ArmScheduler))


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
