"""Requests that the plug-in can make nothing of, and those that break vLLM's scheduler."""

from __future__ import annotations

from typing import Any

import pytest
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import RequestStatus

from headway_runtime.exchange.fingerprint import Fingerprints
from headway_runtime.exchange.step_record import Decision
from headway_runtime.exchange.suspects_file import file_name as suspects_name
from headway_runtime.exchange.suspects_file import read_told
from headway_runtime.exchange.under_way_file import file_name, read_under_way
from headway_runtime.executors.vllm.origins import Origins
from headway_runtime.executors.vllm.request_class import Classifier
from headway_runtime.executors.vllm.request_histories import RequestHistories
from headway_runtime.executors.vllm.work_watch import WorkWatch
from headway_runtime.policy import Mode
from tests.contract.engines import policy

BUDGET_TOKENS = 64

PLACES = [
    (Classifier, "_seen", 1),
    (Classifier, "_by_promise", 0),
    (Origins, "arrived", 0),
    (WorkWatch, "admitted", 0),
]


def fails_for(name: str, stock: Any, at: int) -> Any:
    """The method, with a fault that only this request shows."""

    def faulty(self: Any, *told: Any, **named: Any) -> Any:
        if told[0].request_id == name:
            raise ZeroDivisionError(at)
        return stock(self, *told, **named)

    return faulty


@pytest.mark.parametrize(("owner", "method", "at"), PLACES)
def test_a_request_that_makes_no_sense_costs_no_other_one_its_plan(
    make: Any, monkeypatch: pytest.MonkeyPatch, owner: Any, method: str, at: int
) -> None:
    monkeypatch.setattr(owner, method, fails_for("bad", getattr(owner, method), at))
    engine = make(policy(token_budget=BUDGET_TOKENS))
    engine.add("bad", "interactive", prompt_tokens=100)
    for number in range(8):
        engine.add(f"r{number}", "batch", prompt_tokens=100, arrival_s=float(number))
    for output in engine.run():
        assert output.total_num_scheduled_tokens <= BUDGET_TOKENS
    assert {each.decision for each in engine.statistics().records} == {Decision.ACT}
    assert sorted(engine.admitted) == ["bad", *(f"r{number}" for number in range(8))]
    assert engine.statistics().header.set_aside_requests == 1


def test_one_whose_history_cannot_be_told_costs_no_other_one_its_own(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow = RequestHistories._follow

    def faulty(self: Any, name: str, *told: Any) -> None:
        if name == "bad":
            raise ZeroDivisionError
        follow(self, name, *told)

    monkeypatch.setattr(RequestHistories, "_follow", faulty)
    engine = make(policy())
    for name in ("bad", "good"):
        engine.add(name, "batch")
    for _ in engine.run():
        pass
    assert engine.totals["batch"] == (1, 1)
    assert engine.under_way == 0


def marked(engine: Any, name: str) -> dict[str, Any]:
    """Arguments of a request as the door writes them."""
    prints = Fingerprints.of_run(engine.run_dir)
    return {"headway_fingerprint": prints.stamped(prints.of(b"", {"prompt": name}))}


def under_way(engine: Any) -> list[bool]:
    return [each.has_token for each in read_under_way(engine.run_dir / file_name(0))]


def add(engine: Any, name: str, **other: Any) -> None:
    engine.add(name, extra_args=marked(engine, name), **other)


def test_who_is_under_way_is_known_from_the_first_step_to_the_last(make: Any) -> None:
    engine = make(policy(max_batch_size=1))
    add(engine, "r", prompt_tokens=300, output_tokens=3)
    assert under_way(engine) == []
    engine.step()
    assert under_way(engine) == [False]
    engine.step()
    assert under_way(engine) == [True]
    for _ in engine.run():
        pass
    assert under_way(engine) == []


@pytest.mark.parametrize("in_force", [None, policy(mode=Mode.SHADOW), policy(mode=Mode.OFF)])
def test_where_nobody_is_tried_nobody_is_suspected(make: Any, in_force: Any) -> None:
    engine = make(in_force)
    add(engine, "r", prompt_tokens=300)
    engine.step()
    assert under_way(engine) == []


def test_an_abort_ends_it_as_well(make: Any) -> None:
    engine = make(policy())
    add(engine, "r", prompt_tokens=300)
    engine.step()
    engine.scheduler.finish_requests(None, RequestStatus.FINISHED_ABORTED)
    assert under_way(engine) == []


@pytest.mark.parametrize("method", [Scheduler.schedule, Scheduler.update_from_output])
def test_vllms_loops_have_the_name_for_a_request_that_is_looked_for(method: Any) -> None:
    code = method.__code__
    assert "request" in code.co_varnames + code.co_cellvars


@pytest.mark.parametrize("where", ["add_request", "schedule", "update_from_output"])
def test_what_breaks_the_scheduler_is_suspected(
    make: Any, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    engine = make(policy())
    add(engine, "beside", prompt_tokens=20, output_tokens=50)
    engine.step()
    stock = getattr(Scheduler, where)

    def faulty(self: Any, *told: Any, **named: Any) -> Any:
        request = self.requests.get("bad") or (told[0] if where == "add_request" else None)
        if getattr(request, "request_id", "") == "bad":
            raise ZeroDivisionError
        return stock(self, *told, **named)

    monkeypatch.setattr(Scheduler, where, faulty)

    def breaks() -> None:
        add(engine, "bad", prompt_tokens=20)
        engine.step()

    with pytest.raises(ZeroDivisionError):
        breaks()
    monkeypatch.undo()
    again = make(policy())
    suspects = read_told(again.run_dir / suspects_name(0)).suspects
    prints = Fingerprints.of_run(again.run_dir)
    held = {name: suspects[prints.of(b"", {"prompt": name})] for name in ("bad", "beside")}
    assert {name: each.before_token for name, each in held.items()} == {"bad": 1, "beside": 0}
