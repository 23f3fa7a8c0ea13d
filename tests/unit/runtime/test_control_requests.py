"""What happens around requests, from their arrival to their end."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headway_runtime.exchange import policy_file, statistics_file
from headway_runtime.exchange.policy_watch import PolicyWatch
from headway_runtime.executors.vllm import control as control_module
from headway_runtime.executors.vllm import journal as journal_module
from headway_runtime.executors.vllm.request_histories import RequestHistories
from headway_runtime.executors.vllm.step_account import EngineLoad
from headway_runtime.policy import Mode, TrafficClass, encode
from headway_runtime.scheduling.plan import StepPlan
from tests.unit.runtime.control_bench import Bench
from tests.unit.runtime.engines import core_output, request, scheduler_output
from tests.unit.runtime.policies import policy

CLASSES = (TrafficClass("chat", ttft_ms=60_000), TrafficClass("batch", max_running=1))


class RequestBench(Bench):
    """A bench for requests."""

    def arrive(self, name: str, kind: str = "chat") -> Any:
        made = request(name, time.time(), {"headway_class": kind})
        self.scheduler.waiting.append(made)
        self.control.added(made)
        return made

    def run_step(self, *outputs: Any, new: Any = ()) -> None:
        output = self.control.schedule(lambda: scheduler_output(10, new=new))
        self.control.update(output, lambda: {0: SimpleNamespace(outputs=list(outputs))})

    @property
    def classes(self) -> dict[str, tuple[int, int]]:
        path = self.run_dir / statistics_file.file_name(0)
        found = statistics_file.read(path, 0, with_classes=True).classes
        return {each.name: (each.requests_total, each.attained_total) for each in found}

    @property
    def under_way(self) -> int:
        return self.control._journal.requests_under_way


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan is late, and what has changed is written at once."""
    for name in ("PLAN_CPU_DEADLINE_NS", "PLAN_WALL_DEADLINE_NS"):
        monkeypatch.setattr(control_module, name, 10**15)
    monkeypatch.setattr(journal_module, "CLASSES_PERIOD_NS", 0)


@pytest.fixture
def bench(tmp_path: Path) -> RequestBench:
    made = RequestBench(tmp_path)
    made.publish(1, classes=CLASSES)
    return made


@pytest.mark.parametrize("mode", Mode)
def test_requests_are_held_against_their_class_in_every_mode(bench: Any, mode: Mode) -> None:
    bench.publish(2, classes=CLASSES, mode=mode)
    bench.arrive("r")
    bench.run_step(core_output("r"))
    bench.run_step(core_output("r", reason="STOP"))
    assert bench.classes == {"chat": (1, 1), "batch": (0, 0)}


def test_requests_are_held_against_their_class_in_an_engine_that_runs_stock(tmp_path: Path) -> None:
    bench = RequestBench(tmp_path, supported=False)
    bench.publish(1, classes=CLASSES)
    bench.arrive("r")
    bench.run_step(core_output("r", reason="STOP"))
    assert bench.classes["chat"] == (1, 1)


def test_the_first_request_has_its_class_although_no_step_has_run(bench: Any) -> None:
    bench.arrive("r")
    assert bench.under_way == 1


def test_a_request_that_wakes_an_idle_engine_has_the_class_of_the_newest_policy(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run_step()
    bench.publish(2, classes=(TrafficClass("new"),))
    monkeypatch.setattr(control_module, "ARRIVAL_FOLLOWS_AFTER_NS", 0)
    bench.arrive("r", "new")
    assert (bench.under_way, set(bench.classes)) == (1, {"new"})


def test_arrivals_in_a_busy_engine_do_not_look_for_policies(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_module, "ARRIVAL_FOLLOWS_AFTER_NS", 10**15)
    bench.run_step()
    monkeypatch.setattr(PolicyWatch, "refresh", lambda _: pytest.fail("looked"))
    bench.arrive("r")


def test_requests_that_end_outside_of_a_step_are_told(bench: Any) -> None:
    made = bench.arrive("r")
    made.reason = "ABORT"
    bench.control.ended([made], by_client=False)
    assert (bench.classes["chat"], bench.under_way) == ((1, 0), 0)


def test_the_executor_learns_who_waits_no_more(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    monkeypatch.setattr(bench.adapter, "left", told.extend)
    bench.run_step(new=["admitted"])
    bench.run_step(core_output("finished", reason="STOP"))
    bench.control.ended([request("aborted")], by_client=True)
    assert told == ["admitted", "finished", "aborted"]


def test_an_executor_that_cannot_be_told_costs_no_step(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.adapter, "left", lambda _: 1 / 0)
    bench.run_step(core_output("r", reason="STOP"), new=["r"])
    bench.control.ended([request("r")], by_client=True)


def test_an_error_in_the_accounts_costs_no_request(
    bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench.arrive("before")
    monkeypatch.setattr(RequestHistories, "arrived", lambda *_: 1 / 0)
    for number in range(3):
        bench.arrive(f"r{number}")
    bench.run_step(core_output("before", reason="STOP"))
    assert caplog.text.count("no statistics") == 1
    assert bench.under_way == 0


def test_an_error_in_the_policy_watch_costs_no_step(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run_step()
    monkeypatch.setattr(PolicyWatch, "refresh", lambda _: 1 / 0)
    monkeypatch.setattr(control_module, "ARRIVAL_FOLLOWS_AFTER_NS", 0)
    bench.arrive("r")
    bench.run_step()
    assert bench.record.counter == 1


def test_an_error_while_a_policy_is_adopted_is_tried_again(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(bench.adapter, "adopt", lambda _: 1 / 0)
        bench.run_step()
        assert bench.record.failed_total == 1
    bench.run_step()
    assert (bench.record.failed_total, bench.record.counter) == (1, 1)


def test_classes_are_written_now_and_then_and_when_the_engine_falls_idle(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "CLASSES_PERIOD_NS", 10**15)
    bench.arrive("r")
    bench.run_step(core_output("r", reason="STOP"))
    bench.arrive("s")
    bench.run_step(core_output("s", reason="STOP"))
    assert bench.classes["chat"] != (2, 2)
    bench.load = EngineLoad(running=0, waiting=0)
    bench.run_step()
    assert bench.classes["chat"] == (2, 2)


def test_time_that_arrivals_take_is_in_the_plugins_share(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object) -> None:
        time.sleep(0.01)

    bench.run_step()
    monkeypatch.setattr(RequestHistories, "arrived", slow)
    bench.arrive("r")
    bench.run_step()
    assert bench.record.plugin_ns >= 10_000_000


def test_a_policy_file_is_taken_by_an_engine_that_runs_stock(tmp_path: Path) -> None:
    bench = RequestBench(tmp_path, supported=False)
    policy_file.write(tmp_path / policy_file.FILE_NAME, encode(policy(1, 1, 1, classes=CLASSES)))
    bench.run_step()
    assert (set(bench.classes), bench.record.generation) == ({"chat", "batch"}, 0)


@pytest.mark.parametrize(("mode", "given_up"), [(Mode.ACT, True), (Mode.SHADOW, False)])
def test_a_ttft_that_a_plan_gives_up_is_in_the_history(
    bench: Any, monkeypatch: pytest.MonkeyPatch, mode: Mode, given_up: bool
) -> None:
    bench.publish(2, classes=CLASSES, mode=mode)
    bench.scheduler.requests = {"r": bench.arrive("r")}
    limits = bench.adapter.ceilings
    monkeypatch.setattr(bench.control, "planner", lambda *_: StepPlan(limits, late=("r",)))
    bench.run_step()
    followed = bench.control._journal._histories._under_way.requests["r"]
    assert (followed.history.summary().given_up_ns > 0) == given_up
