"""What happens around a step when things go well and when they do not."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import pytest

from headway_runtime.exchange import policy_file
from headway_runtime.exchange.statistics_record import NOT_TOLD, EngineState
from headway_runtime.exchange.step_record import Decision
from headway_runtime.executors.vllm import control as control_module
from headway_runtime.executors.vllm.adapters import ActiveLimitAdapter
from headway_runtime.executors.vllm.step_account import EngineLoad
from headway_runtime.policy import Mode
from headway_runtime.scheduling.timing.token_load import LoadRatios
from tests.unit.runtime.control_bench import Bench
from tests.unit.runtime.engines import scheduler_output


@pytest.fixture(autouse=True)
def _no_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy this machine is, no plan is late unless a test says so."""
    for name in ("PLAN_CPU_DEADLINE_NS", "PLAN_WALL_DEADLINE_NS"):
        monkeypatch.setattr(control_module, name, 10**15)


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    return Bench(tmp_path)


def test_act_runs_the_step_under_the_plan_and_restores(bench: Any) -> None:
    bench.publish(1, token_budget=512, max_batch_size=8)
    record = bench.step()
    assert bench.seen == [(512, 8)]
    assert (bench.scheduler.max_num_scheduled_tokens, bench.scheduler.max_num_active_reqs) == (
        2048,
        64,
    )
    assert (record.decision, record.token_budget, record.max_batch) == (Decision.ACT, 512, 8)


def test_shadow_records_the_plan_and_runs_the_step_without(bench: Any) -> None:
    bench.publish(1, mode=Mode.SHADOW, token_budget=512)
    record = bench.step()
    assert bench.seen == [(2048, 64)]
    assert (record.decision, record.planned_token_budget, record.token_budget) == (
        Decision.SHADOW,
        512,
        2048,
    )


def test_off_takes_effect_at_the_next_step_and_makes_no_plan(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.publish(1, token_budget=512)
    bench.step()
    bench.publish(2, mode=Mode.OFF, token_budget=512)
    monkeypatch.setattr(bench.control, "planner", lambda *_: pytest.fail("planned"))
    assert bench.step().decision == Decision.OFF
    assert bench.seen[-1] == (2048, 64)


@pytest.mark.parametrize("is_on", [True, False])
def test_no_garbage_is_collected_while_a_step_is_planned(
    bench: Any, monkeypatch: pytest.MonkeyPatch, *, is_on: bool
) -> None:
    bench.publish(1)
    seen: list[bool] = []

    def planner(*_: Any) -> Any:
        seen.append(gc.isenabled())
        raise ValueError

    monkeypatch.setattr(bench.control, "planner", planner)
    (gc.enable if is_on else gc.disable)()
    try:
        bench.step()
        assert (seen, gc.isenabled()) == ([False], is_on)
    finally:
        gc.enable()


def test_without_a_policy_the_engine_decides(bench: Any) -> None:
    assert bench.step().decision == Decision.NO_POLICY


def test_an_unsupported_engine_is_recorded_and_left_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path, supported=False)
    bench.publish(1, token_budget=512)
    record = bench.step()
    assert (record.decision, record.generation, bench.seen) == (Decision.STOCK, 0, [(2048, 64)])


def test_an_error_in_the_engine_is_passed_on_after_the_limits_are_restored(bench: Any) -> None:
    bench.publish(1, token_budget=512)

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.control.schedule(fail)
    assert bench.scheduler.max_num_scheduled_tokens == 2048


def test_an_error_in_planning_costs_the_plan_and_not_the_step(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.publish(1, token_budget=512)
    monkeypatch.setattr(bench.control, "planner", lambda *_: 1 / 0)
    record = bench.step()
    assert (record.decision, record.failed_total, bench.seen) == (Decision.FAILED, 1, [(2048, 64)])


def test_an_error_while_a_plan_is_put_in_force_leaves_no_limit_changed(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.publish(1, token_budget=512)
    set_limits = ActiveLimitAdapter._set

    def fail_half_way(self: Any, token_budget: Any, max_batch_size: Any) -> None:
        self._scheduler.max_num_scheduled_tokens = token_budget
        if token_budget == 512:
            raise ZeroDivisionError
        set_limits(self, token_budget, max_batch_size)

    monkeypatch.setattr(ActiveLimitAdapter, "_set", fail_half_way)
    assert bench.step().decision == Decision.FAILED
    assert bench.seen == [(2048, 64)]


@pytest.mark.parametrize("deadline", ["PLAN_CPU_DEADLINE_NS", "PLAN_WALL_DEADLINE_NS"])
def test_a_late_plan_is_not_used(
    bench: Any, monkeypatch: pytest.MonkeyPatch, deadline: str
) -> None:
    bench.publish(1, token_budget=512)
    monkeypatch.setattr(control_module, deadline, -1)
    record = bench.step()
    assert (record.decision, record.late_total, bench.seen) == (Decision.LATE, 1, [(2048, 64)])


def _late(monkeypatch: pytest.MonkeyPatch, _: Any) -> None:
    monkeypatch.setattr(control_module, "PLAN_CPU_DEADLINE_NS", -1)


def _broken(monkeypatch: pytest.MonkeyPatch, bench: Any) -> None:
    monkeypatch.setattr(bench.control, "planner", lambda *_: 1 / 0)


@pytest.mark.parametrize(("fails", "seconds"), [(_late, 1.0), (_broken, 10.0)])
def test_three_failures_pause_planning(
    bench: Any, monkeypatch: pytest.MonkeyPatch, fails: Any, seconds: float
) -> None:
    bench.publish(1, token_budget=512)
    now_ns = time.monotonic_ns()
    monkeypatch.setattr(control_module.time, "monotonic_ns", lambda: now_ns)
    with monkeypatch.context() as broken:
        fails(broken, bench)
        for _ in range(3):
            bench.step()
    for later_s in (0.0, 0.9 * seconds):
        later_ns = now_ns + int(later_s * 1e9)
        monkeypatch.setattr(control_module.time, "monotonic_ns", lambda ns=later_ns: ns)
        paused = bench.step()
        assert (paused.decision, paused.breaker_open) == (Decision.BREAKER, 1)
    later_ns = now_ns + int(seconds * 1e9)
    monkeypatch.setattr(control_module.time, "monotonic_ns", lambda: later_ns)
    assert bench.step().decision == Decision.ACT


def test_off_is_obeyed_while_planning_is_paused(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.publish(1)
    monkeypatch.setattr(bench.control, "planner", lambda *_: 1 / 0)
    for _ in range(4):
        bench.step()
    bench.publish(2, mode=Mode.OFF)
    assert bench.step().decision == Decision.OFF


def test_planned_and_actual_tokens_are_kept_apart_and_totals_add_up(bench: Any) -> None:
    bench.publish(1, token_budget=512)
    bench.step()
    record = bench.step()
    assert (record.planned_token_budget, record.scheduled_tokens) == (512, 10)
    assert (record.step, record.scheduled_tokens_total, record.generated_tokens_total) == (2, 20, 6)
    assert (record.preemptions_total, record.kv_usage_ppm) == (2, 500_000)
    assert (record.generation, record.epoch, record.counter) == (1, 1, 1)


def test_share_of_the_plugin_is_measured(bench: Any) -> Any:
    bench.publish(1)

    def slow() -> Any:
        time.sleep(0.01)
        return bench.stock()

    bench.finish(bench.control.schedule(slow))
    record = bench.record
    assert record.step_ns >= 10_000_000
    assert record.plan_ns <= record.plugin_ns < record.step_ns


def test_steps_that_overlap_are_matched_with_their_outputs(bench: Any) -> None:
    bench.publish(1, token_budget=512)
    first = bench.control.schedule(bench.stock)
    bench.publish(2, token_budget=256)
    second = bench.control.schedule(bench.stock)
    bench.finish(first)
    assert bench.record.token_budget == 512
    bench.finish(second)
    assert bench.record.token_budget == 256
    assert [each.step for each in bench.statistics.records] == [1, 2]


def test_time_of_overlapping_steps_is_counted_once(bench: Any) -> None:
    started_ns = time.monotonic_ns()
    first, second = (bench.control.schedule(bench.stock) for _ in range(2))
    time.sleep(0.01)
    bench.finish(first)
    time.sleep(0.01)
    bench.finish(second)
    assert bench.record.step_ns_total <= time.monotonic_ns() - started_ns


def test_what_is_in_hand_shows_while_a_step_is_under_way(bench: Any) -> None:
    bench.control.schedule(bench.stock)
    load = bench.statistics.load
    assert (load.steps, load.running, load.waiting) == (0, 1, 2)


def test_what_a_step_left_in_hand_shows_while_the_next_one_is_under_way(bench: Any) -> None:
    first = bench.control.schedule(bench.stock)
    bench.control.schedule(bench.stock)
    bench.load = EngineLoad(running=3, waiting=4)
    bench.finish(first)
    load = bench.statistics.load
    assert (load.steps, load.running, load.waiting) == (1, 3, 4)


@pytest.mark.parametrize(
    ("ratios", "told"),
    [(LoadRatios(0.75, 0.08), (750_000, 80_000)), (None, (NOT_TOLD, NOT_TOLD))],
)
def test_what_is_offered_is_told_where_it_is_known(
    bench: Any, ratios: LoadRatios | None, told: tuple[int, int]
) -> None:
    bench.load = EngineLoad(running=1, waiting=2, ratios=ratios)
    output = bench.control.schedule(bench.stock)
    load = bench.statistics.load
    assert (load.token_load_ppm, load.step_overhead_ppm) == told
    bench.load = EngineLoad(running=0, waiting=0)
    bench.finish(output)
    assert bench.statistics.load.token_load_ppm == NOT_TOLD


def test_a_step_without_tokens_is_no_step_but_shows_that_nothing_is_left(bench: Any) -> None:
    output = bench.control.schedule(lambda: scheduler_output(0))
    bench.load = EngineLoad(running=0, waiting=0)
    bench.finish(output)
    load = bench.statistics.load
    assert (bench.record, load.running, load.waiting) == (None, 0, 0)


def test_refused_policy_files_show_in_the_header(bench: Any) -> None:
    (bench.run_dir / policy_file.FILE_NAME).write_bytes(b"foreign")
    bench.step()
    assert bench.statistics.header.refused_policies == 1


def test_an_engine_that_stops_says_so(bench: Any) -> None:
    bench.load = EngineLoad(running=1, waiting=0, ratios=LoadRatios(0.5, 0.1))
    bench.control.schedule(bench.stock)
    bench.control.stopped()
    found = bench.statistics
    assert (found.header.state, found.load.running) == (EngineState.STOPPED, 0)
    assert found.load.token_load_ppm == NOT_TOLD


def test_an_error_in_the_statistics_costs_them_and_not_the_step(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bench.publish(1, token_budget=512)
    bench.load = None
    for _ in range(2):
        assert bench.finish(bench.control.schedule(bench.stock))
    assert len(bench.seen) == 2
    # Once and not every step: it would fill the engine's log.
    assert caplog.text.count("no statistics") == 1
